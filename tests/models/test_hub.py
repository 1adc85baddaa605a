"""Downloads from a Hub of our own on loopback: what arrives, in how many bytes, how it resumes."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from models.errors import SourceError
from models.hub import (
    FetchProgress,
    fetch_config,
    fetch_repository,
    fetch_tokenizer,
    find_cached_repository,
)
from models.hub_cache import cache_folder, is_complete_snapshot
from models.hub_transfer import ProgressMeter
from tests.models.hub_server import (
    COMMIT,
    FIRST_NAME,
    FIRST_SHARD,
    MODEL,
    SECOND_SHARD,
    SHARDED,
    SHARDS,
    SINGLE,
    SMALL_FILES,
    HubServer,
    Repository,
    etag_of,
    failure_of,
    fetch,
    prepared_hub,
)

UNWANTED = {
    "README.md": b"# words",
    "modeling_tiny.py": b"raise SystemExit('remote code ran')",
    "pytorch_model.bin": b"pickle",
    "consolidated.safetensors": b"twice",
    "onnx/model.safetensors": b"in a folder",
    "tokenizer/../../evil.json": b"outside",
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with prepared_hub(tmp_path, monkeypatch) as server:
        yield server


def partial_files() -> list[Path]:
    return sorted(cache_folder().rglob("*.incomplete"))


def test_shards_and_small_files_arrive_and_nothing_else(hub: HubServer) -> None:
    hub.repositories[MODEL] = Repository(SHARDED | UNWANTED)
    snapshot = fetch()
    arrived = {path.name: path.read_bytes() for path in snapshot.iterdir()}
    assert arrived == SHARDED
    assert snapshot == cache_folder() / "models--org--tiny-model" / "snapshots" / COMMIT
    assert not partial_files()
    assert find_cached_repository(MODEL) == snapshot


def test_a_second_fetch_transfers_no_file(hub: HubServer) -> None:
    first = fetch()
    hub.requests.clear()
    assert fetch() == first
    assert [method for method, path, _ in hub.requests if "/api/" not in path] == []


def test_one_weight_file_is_preferred_to_shards_and_index(hub: HubServer) -> None:
    hub.repositories[MODEL] = Repository(SHARDED | SINGLE)
    assert {path.name for path in fetch().iterdir()} == set(SINGLE)


def test_tekken_is_fetched_where_there_is_no_other_tokenizer(hub: HubServer) -> None:
    tekken = {"tekken.json": b"{}"}
    assert "tokenizer.json" in SINGLE
    hub.repositories["org/both"] = Repository(SINGLE | tekken)
    assert not (fetch("org/both") / "tekken.json").exists()
    without = {name: data for name, data in SINGLE.items() if name != "tokenizer.json"}
    hub.repositories["org/tekken"] = Repository(without | tekken)
    assert (fetch("org/tekken") / "tekken.json").read_bytes() == b"{}"


def test_other_names_of_weights_count_but_consolidated_only_alone(hub: HubServer) -> None:
    weights = {"weights.safetensors": FIRST_SHARD, "consolidated.safetensors": SECOND_SHARD}
    hub.repositories[MODEL] = Repository(SMALL_FILES | weights)
    assert {path.name for path in fetch().glob("*.safetensors")} == {"weights.safetensors"}
    alone = {"consolidated.safetensors": SECOND_SHARD}
    hub.repositories["org/alone"] = Repository(SMALL_FILES | alone)
    assert (fetch("org/alone") / "consolidated.safetensors").read_bytes() == SECOND_SHARD


def test_progress_counts_all_files_and_ends_at_the_total(hub: HubServer) -> None:
    reports: list[FetchProgress] = []
    fetch(on_progress=reports.append)
    total = sum(len(contents) for contents in SHARDED.values())
    assert {report.total_bytes for report in reports} == {total}
    done = [report.done_bytes for report in reports]
    assert done == sorted(done)
    assert done[-1] == total
    assert set(SHARDS) <= {report.file for report in reports}


def test_speed_and_time_left_come_from_the_last_seconds() -> None:
    times = iter([0.0, 1.0, 1.0, 10.0, 10.0, 12.0, 12.0])
    reports: list[FetchProgress] = []
    meter = ProgressMeter(100, 1100, reports.append, clock=lambda: next(times))
    meter.add("a", 200)  # 200 bytes in the first second
    meter.add("a", 100)  # slower: the first second is left behind
    meter.add("a", 100)
    assert reports[0] == FetchProgress("a", 300, 1100, 200.0, 4.0)
    assert reports[-1] == FetchProgress("a", 500, 1100, 50.0, 12.0)


def test_speed_is_unknown_before_bytes_arrive() -> None:
    reports: list[FetchProgress] = []
    ProgressMeter(100, 1100, reports.append, clock=lambda: 5.0).report("a")
    assert reports == [FetchProgress("a", 100, 1100, 0.0, None)]


def test_a_cut_is_resumed_where_it_was_and_no_byte_is_sent_twice(hub: HubServer) -> None:
    hub.cuts = [30_000]
    reports: list[FetchProgress] = []
    snapshot = fetch(on_progress=reports.append)
    assert (snapshot / FIRST_NAME).read_bytes() == FIRST_SHARD
    ranges = [request[2].get("range") for request in hub.requests_with("/storage/")]
    assert ranges == [None, "bytes=30000-", None]
    assert hub.served(FIRST_SHARD) == len(FIRST_SHARD)
    assert reports[-1].done_bytes == reports[-1].total_bytes


def test_a_cut_is_noticed_where_the_server_tells_no_length(hub: HubServer) -> None:
    hub.untold_lengths = True
    hub.cuts = [30_000]
    assert (fetch() / FIRST_NAME).read_bytes() == FIRST_SHARD
    assert hub.served(FIRST_SHARD) == len(FIRST_SHARD)


def test_cuts_with_new_bytes_in_between_do_not_use_up_the_attempts(hub: HubServer) -> None:
    hub.cuts = [10_000] * 8
    snapshot = fetch(retries=1)
    assert (snapshot / FIRST_NAME).read_bytes() == FIRST_SHARD


def test_too_many_cuts_are_an_error_and_the_next_call_continues(hub: HubServer) -> None:
    hub.cuts = [30_000, 0, 0, 0]
    error = failure_of(retries=3)
    assert error.code == "hub-interrupted"
    assert error.facts["file"] == FIRST_NAME
    assert "continues from there" in error.message
    assert [path.stat().st_size for path in partial_files()] == [30_000]
    assert find_cached_repository(MODEL) is None
    snapshot = fetch()
    assert hub.served(FIRST_SHARD) == len(FIRST_SHARD)
    assert (snapshot / FIRST_NAME).read_bytes() == FIRST_SHARD


def test_a_server_without_ranges_starts_the_file_anew(hub: HubServer) -> None:
    hub.cuts = [30_000]
    hub.ignore_ranges = True
    reports: list[FetchProgress] = []
    snapshot = fetch(on_progress=reports.append)
    assert (snapshot / FIRST_NAME).read_bytes() == FIRST_SHARD
    assert reports[-1].done_bytes == reports[-1].total_bytes
    assert max(report.done_bytes for report in reports) == reports[-1].total_bytes


def test_cancel_keeps_what_arrived_and_the_next_call_resumes(hub: HubServer) -> None:
    def part_is_there() -> bool:
        return any(path.stat().st_size > 0 for path in partial_files())

    error = failure_of(cancelled=part_is_there)
    assert error.code == "download-cancelled"
    (partial,) = partial_files()
    kept = partial.stat().st_size
    assert 0 < kept < len(FIRST_SHARD)
    assert find_cached_repository(MODEL) is None
    hub.requests.clear()
    reports: list[FetchProgress] = []
    snapshot = fetch(on_progress=reports.append)
    assert (snapshot / FIRST_NAME).read_bytes() == FIRST_SHARD
    assert hub.requests_with("/storage/")[0][2]["range"] == f"bytes={kept}-"
    assert reports[0].done_bytes >= kept


def test_cancel_ends_the_pause_before_a_new_attempt(hub: HubServer) -> None:
    hub.cuts = [30_000]
    with pytest.raises(SourceError, match="cancelled"):
        fetch_repository(
            MODEL,
            cancelled=lambda: bool(partial_files()),
            retry_delays_s=(3600.0,),
        )


def test_cancel_before_the_start_asks_nothing(hub: HubServer) -> None:
    assert failure_of(cancelled=lambda: True).code == "download-cancelled"
    assert hub.requests == []


def test_a_damaged_part_is_found_and_thrown_away(hub: HubServer) -> None:
    hub.cuts = [30_000, 0]
    failure_of(retries=0)
    (partial,) = partial_files()
    partial.write_bytes(bytes(30_000))  # what a power cut can leave
    error = failure_of()
    assert error.code == "hub-wrong-contents"
    assert partial_files() == []
    assert is_complete_snapshot(fetch())


def test_a_part_longer_than_the_file_is_thrown_away(hub: HubServer) -> None:
    blob = cache_folder() / "models--org--tiny-model" / "blobs" / etag_of(FIRST_SHARD)
    blob.parent.mkdir(parents=True)
    blob.with_name(blob.name + ".incomplete").write_bytes(FIRST_SHARD * 2)
    assert (fetch() / FIRST_NAME).read_bytes() == FIRST_SHARD


def test_two_calls_at_once_transfer_each_file_once(hub: HubServer) -> None:
    results: list[Path] = []
    threads = [threading.Thread(target=lambda: results.append(fetch())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2
    assert hub.served(FIRST_SHARD) == len(FIRST_SHARD)


def test_the_module_imports_no_torch() -> None:
    code = "import sys, models.hub; sys.exit('torch' in sys.modules)"
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0


def test_the_config_comes_alone_and_is_not_fetched_again(hub: HubServer) -> None:
    folder = fetch_config(MODEL)
    assert (folder / "config.json").read_bytes() == SMALL_FILES["config.json"]
    assert [path.name for path in folder.iterdir()] == ["config.json"]
    assert find_cached_repository(MODEL) is None  # weights are missing
    hub.requests.clear()
    assert fetch() == folder
    sent = [path for method, path, _ in hub.requests if method == "GET"]
    assert not [path for path in sent if path.endswith("/config.json")]


def test_the_config_of_what_could_not_be_opened_is_not_fetched(hub: HubServer) -> None:
    hub.repositories[MODEL] = Repository({"config.json": b"{}", "pytorch_model.bin": b"pickle"})
    with pytest.raises(SourceError, match="can run code"):
        fetch_config(MODEL)
    assert not [path for _, path, _ in hub.requests if path.endswith("/config.json")]


# ------------------------------------------------------------------------- the tokenizer alone
def test_the_tokenizer_comes_without_the_weights(hub: HubServer) -> None:
    folder = fetch_tokenizer(MODEL)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == SMALL_FILES
    assert hub.requests_with("/storage/") == hub.requests_with("safetensors") == []
    assert find_cached_repository(MODEL) is None  # nobody takes it for the model
    hub.requests.clear()
    assert fetch_tokenizer(MODEL) == folder
    assert [method for method, path, _ in hub.requests if "/api/" not in path] == []
    assert {path.name for path in fetch().iterdir()} == set(SHARDED)


def test_a_tokenizer_without_a_model_and_a_model_without_a_tokenizer(hub: HubServer) -> None:
    hub.repositories["org/alone"] = Repository({"tokenizer.json": b"{}", "pytorch_model.bin": b"p"})
    assert [path.name for path in fetch_tokenizer("org/alone").iterdir()] == ["tokenizer.json"]
    hub.repositories["org/none"] = Repository(dict(SHARDS) | {"config.json": b"{}"})
    for repository, code in (("org/none", "hub-no-tokenizer"), ("org/nobody", "hub-not-found")):
        with pytest.raises(SourceError) as caught:
            fetch_tokenizer(repository, retry_delays_s=())
        assert caught.value.code == code


def test_a_fetched_tokenizer_is_there_offline(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch_tokenizer(MODEL)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch_tokenizer(MODEL) == folder
    with pytest.raises(SourceError) as caught:
        fetch_tokenizer("org/other")
    assert caught.value.code == "hub-offline"
