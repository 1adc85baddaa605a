"""The shared cache: what counts as complete, and how ids and pasted addresses are read."""

from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download

from models.hub import find_cached_repository
from models.hub_cache import cache_folder, is_complete_snapshot, parse_repository
from tests.models.hub_server import (
    COMMIT,
    FIRST_SHARD,
    MODEL,
    SECOND_NAME,
    SHARDED,
    SHARDS,
    SINGLE,
    SMALL_FILES,
    HubServer,
    Repository,
    failure_of,
    fetch,
    prepared_hub,
)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with prepared_hub(tmp_path, monkeypatch) as server:
        yield server


def test_the_cache_is_found_with_the_server_off(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.repositories[MODEL] = Repository(dict(SINGLE))
    snapshot = fetch()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    hub.requests.clear()
    assert find_cached_repository(MODEL) == snapshot
    assert find_cached_repository(MODEL, revision=COMMIT) == snapshot
    assert find_cached_repository(MODEL, revision="other") is None
    assert find_cached_repository("org/other") is None
    assert hub.requests == []


@pytest.mark.parametrize("lost", ["config.json", *SHARDS, "model.safetensors.index.json"])
def test_a_partial_cache_is_not_complete(hub: HubServer, lost: str) -> None:
    snapshot = fetch()
    (snapshot / lost).resolve().unlink()  # the blob goes, the link stays and leads nowhere
    assert find_cached_repository(MODEL) is None
    assert fetch() == snapshot
    assert (snapshot / lost).read_bytes() == SHARDED[lost]


def test_weights_of_another_name_are_found_again(hub: HubServer) -> None:
    files = {**SMALL_FILES, "weights.safetensors": FIRST_SHARD, "consolidated.safetensors": b"x"}
    hub.repositories[MODEL] = Repository(files)
    snapshot = fetch()
    assert find_cached_repository(MODEL) == snapshot
    (snapshot / "weights.safetensors").resolve().unlink()
    assert find_cached_repository(MODEL) is None


@pytest.mark.parametrize(
    "index", [b"[" * 100_000, b'{"weight_map": ' + b"9" * 5_000 + b"}", b"{}", b'{"weight_map": 1}']
)
def test_a_damaged_index_is_not_complete(hub: HubServer, index: bytes) -> None:
    hub.repositories[MODEL] = Repository(SHARDED | {"model.safetensors.index.json": index})
    assert failure_of().code == "hub-damaged"
    assert find_cached_repository(MODEL) is None


def test_a_new_commit_is_fetched_and_found_only_when_complete(hub: HubServer) -> None:
    old = fetch()
    newer = {
        "config.json": b'{"model_type": "llama", "new": 1}',
        SECOND_NAME: FIRST_SHARD[::-1],
    }
    hub.repositories[MODEL] = Repository(SHARDED | newer, commit="f" * 40)
    hub.cuts = [0]
    failure_of(retries=0)
    assert find_cached_repository(MODEL) == old
    assert find_cached_repository(MODEL, revision="main") == old
    new = fetch()
    assert new.name == "f" * 40
    assert find_cached_repository(MODEL) == new
    assert hub.served(FIRST_SHARD) == len(FIRST_SHARD)  # unchanged files are shared


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", ("org/name", None)),
        ("  org/name\n", ("org/name", None)),
        ("gpt2", ("gpt2", None)),
        ("https://huggingface.co/org/name", ("org/name", None)),
        ("https://huggingface.co/org/name/?library=transformers#top", ("org/name", None)),
        ("huggingface.co/org/name/tree/main", ("org/name", "main")),
        ("https://hf.co/org/name/tree/refs%2Fpr%2F1", ("org/name", "refs/pr/1")),
        ("https://huggingface.co/org/name/blob/v1/config.json", ("org/name", "v1")),
        ("https://huggingface.co/org/name/discussions/3", ("org/name", None)),
        ("https://huggingface.co/gpt2/tree/main", ("gpt2", "main")),
    ],
)
def test_ids_and_pasted_addresses_are_read(text: str, expected: tuple[str, str | None]) -> None:
    assert parse_repository(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "../x", "a/../b", "", " ", "org/na me", "a/b/c", "/etc/passwd", "org/..", "org\\name",
        "https://example.com/org/name", "https://huggingface.co/datasets/org/name",
        "https://huggingface.co/", "http://[", "org/name\0", "x" * 200, "<script>",
    ],
)  # fmt: skip
def test_other_texts_are_no_ids(hub: HubServer, text: str) -> None:
    error = failure_of(text)
    assert error.code == "hub-invalid-id"
    assert "owner/name" in error.message
    assert hub.requests == []


def test_a_pasted_address_is_fetched(hub: HubServer) -> None:
    assert fetch(f"{hub.url}/{MODEL}/tree/main") == find_cached_repository(MODEL)


def test_huggingface_hub_reads_what_we_downloaded(hub: HubServer) -> None:
    fetch()
    for name, contents in SHARDED.items():
        path = hf_hub_download(MODEL, name, cache_dir=cache_folder(), local_files_only=True)
        assert Path(path).read_bytes() == contents


def test_the_server_speaks_the_protocol(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its user-agent would ask the real Hub for a list of programs.
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    for name in ("config.json", *SHARDS):
        path = hf_hub_download(MODEL, name, cache_dir=cache_folder(), endpoint=hub.url)
        assert Path(path).read_bytes() == SHARDED[name]
    before = dict(hub.served_bytes)
    snapshot = fetch()  # finds the same blobs and names: only the rest is transferred
    assert {name: hub.served_bytes[name] for name in before if "/api/" not in name} == {
        name: count for name, count in before.items() if "/api/" not in name
    }
    assert is_complete_snapshot(snapshot)
