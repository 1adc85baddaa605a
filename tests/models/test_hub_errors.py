"""Each way in which a download can fail says what was asked, what was found and what to do."""

import json
import os
import shutil
import socket
import string
from collections import namedtuple
from pathlib import Path

import pytest
from huggingface_hub import constants

from models.hub import find_cached_repository
from models.hub_cache import cache_folder
from models.hub_errors import MESSAGES
from tests.models.hub_server import (
    FIRST_SHARD,
    MODEL,
    SECOND_NAME,
    SHARDED,
    SMALL_FILES,
    HubServer,
    Repository,
    etag_of,
    failure_of,
    fetch,
    prepared_hub,
)


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with prepared_hub(tmp_path, monkeypatch) as server:
        yield server


def test_the_token_goes_to_the_hub_and_not_to_the_storage_host(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "good")
    hub.repositories[MODEL].gated = True
    fetch()
    assert all("authorization" in request[2] for request in hub.requests_with("/resolve/"))
    assert not any("authorization" in request[2] for request in hub.requests_with("/storage/"))


@pytest.mark.parametrize("token", [None, "other"], ids=["401", "403"])
def test_a_gated_model_says_where_to_ask_and_where_the_token_goes(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch, token: str | None
) -> None:
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    hub.repositories[MODEL].gated = True
    error = failure_of()
    assert error.code == "hub-gated"
    for part in (f"{hub.url}/{MODEL}", "HF_TOKEN", "hf auth login"):
        assert part in error.message
    assert find_cached_repository(MODEL) is None


def test_a_refused_token_is_not_taken_for_a_missing_model(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "expired")
    hub.refused_token = "expired"
    error = failure_of()
    assert error.code == "hub-token-refused"
    assert f"{hub.url}/settings/tokens" in error.message


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "hub-no-access"),
        (403, "hub-no-access"),
        (404, "hub-not-found"),
        (429, "hub-server-error"),
        (503, "hub-server-error"),
    ],
)
def test_a_bare_status_has_a_clear_word(hub: HubServer, status: int, code: str) -> None:
    hub.status_for_all = status
    error = failure_of()
    assert error.code == code
    assert MODEL in error.message


def test_an_unknown_model_or_revision_is_named(hub: HubServer) -> None:
    error = failure_of("org/other")
    assert error.code == "hub-not-found"
    assert "org/other" in error.message
    error = failure_of(revision="v9")
    assert error.code == "hub-revision-not-found"
    assert "'v9'" in error.message


def test_a_closed_port_is_no_network(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{unused.getsockname()[1]}"
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        error = failure_of()
    assert error.code == "hub-unreachable"
    assert endpoint in error.message
    assert "HF_ENDPOINT" in error.message


def test_an_endpoint_that_is_no_address_is_unreachable(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "not-an-address")
    assert failure_of().code == "hub-unreachable"


def test_offline_mode_asks_nothing_and_uses_only_the_cache(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert failure_of().code == "hub-offline"
    assert hub.requests == []
    monkeypatch.delenv("HF_HUB_OFFLINE")
    snapshot = fetch()
    hub.requests.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch() == snapshot
    assert hub.requests == []


def test_offline_mode_set_at_import_is_named_too(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert failure_of().code == "hub-offline"


def test_room_is_checked_before_a_weight_is_asked_for(
    hub: HubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 10_000, 10_000))
    error = failure_of()
    assert error.code == "disk-full"
    assert "HF_HOME" in error.message
    assert hub.requests_with("/storage/") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs the device that is always full")
def test_a_disk_that_fills_up_is_named(hub: HubServer) -> None:
    blobs = cache_folder() / "models--org--tiny-model" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / (etag_of(FIRST_SHARD) + ".incomplete")).symlink_to("/dev/full")
    error = failure_of()
    assert error.code == "disk-filled"
    assert "continues" in error.message


def test_a_cache_that_cannot_be_written_is_named(hub: HubServer) -> None:
    home = Path(os.environ["HF_HOME"])
    home.write_text("a file where a folder should be")
    error = failure_of()
    assert error.code == "hub-cache-unwritable"
    assert str(home) in error.message


def test_pickled_weights_are_refused_with_a_way_out(hub: HubServer) -> None:
    hub.repositories[MODEL] = Repository(SMALL_FILES | {"pytorch_model.bin": FIRST_SHARD})
    error = failure_of()
    assert error.code == "hub-no-safetensors"
    for part in ("pytorch_model.bin", "safetensors", "convert"):
        assert part in error.message


def test_gguf_files_are_named_and_can_be_opened_from_disk(hub: HubServer) -> None:
    hub.repositories[MODEL] = Repository({"tiny-q8.gguf": b"GGUF", "tiny-q4.gguf": b"GGUF"})
    error = failure_of()
    assert error.code == "hub-only-gguf"
    for part in ("tiny-q8.gguf", "tiny-q4.gguf", "from disk"):
        assert part in error.message


def test_repositories_without_weights_or_config_are_told_apart(hub: HubServer) -> None:
    hub.repositories[MODEL] = Repository(dict(SMALL_FILES))
    assert failure_of().code == "hub-no-weights"
    hub.repositories[MODEL] = Repository({"adapter_model.safetensors": FIRST_SHARD})
    assert failure_of().code == "hub-no-config"


def test_several_files_of_weights_need_an_index(hub: HubServer) -> None:
    for names in (("a", "b"), ("model-00001-of-00002",), ("model-1-of-2", "model-2-of-2")):
        weights = {f"{name}.safetensors": FIRST_SHARD for name in names}
        hub.repositories[MODEL] = Repository(SMALL_FILES | weights)
        error = failure_of()
        assert error.code == "hub-weights-unclear"
        assert f"{names[0]}.safetensors" in error.message


def test_an_index_that_names_absent_or_outside_files_is_refused(hub: HubServer) -> None:
    absent = {name: contents for name, contents in SHARDED.items() if "00002-of" not in name}
    hub.repositories[MODEL] = Repository(absent)
    error = failure_of()
    assert error.code == "hub-shard-missing"
    assert SECOND_NAME in error.message
    outside = json.dumps({"weight_map": {"a": "../../evil.safetensors"}}).encode()
    files = SHARDED | {"model.safetensors.index.json": outside}
    hub.repositories["org/outside"] = Repository(files)
    assert failure_of("org/outside").code == "hub-damaged"


def test_a_page_that_is_no_hub_is_named(hub: HubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.repositories["org/x"] = Repository({})
    monkeypatch.setattr(json, "dumps", lambda value: "<html>please log in</html>")
    error = failure_of("org/x")
    assert error.code == "hub-bad-answer"
    assert "login" in error.message


def test_every_code_has_a_sentence_in_both_languages() -> None:
    folder = Path(__file__).parents[2] / "assets" / "text"
    english = json.loads((folder / "en" / "errors.json").read_text(encoding="utf-8"))
    chinese = json.loads((folder / "zh-CN" / "errors.json").read_text(encoding="utf-8"))
    for code, message in MESSAGES.items():
        assert english[code] == message
        assert placeholders(chinese[code]) == placeholders(message)


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}
