"""Data sets from a Hub on loopback: which file is taken, what is refused, what stays."""

import json
from pathlib import Path

import pytest

from explorer.tuning_data import DataSets, DataSettings
from models.errors import SourceError
from models.hub_data import choose_data_file, fetch_data_file, parse_data_id
from tests.models.hub_server import HubServer, Repository, prepared_hub

ROWS = "\n".join(
    json.dumps({"label": "ab"[i % 2], "text": f"row {i} of a small set"}) for i in range(40)
)
FILES = {
    "README.md": b"# rows",
    "dataset_infos.json": b"{}",
    "load.py": b"raise SystemExit",
    "data/test.jsonl": b'{"label": "a", "text": "other"}\n',
    "data/train.jsonl": ROWS.encode() + b"\n" + b" " * 5000,
}


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with prepared_hub(tmp_path, monkeypatch) as server:
        server.repositories["datasets/me/rows"] = Repository(dict(FILES))
        yield server


def fetch(text: str, max_bytes: int = 10**6):
    return fetch_data_file(text, max_bytes=max_bytes, retry_delays_s=(0.0,))


def test_the_training_file_is_read_and_kept(hub: HubServer, monkeypatch) -> None:
    view = DataSets().view(DataSettings(data="hub", hub="me/rows"))
    assert (view.n_rows, view.name) == (40, "me/rows: data/train.jsonl")
    assert sum(view.classes["training"].values()) == 28
    n_asked = len(hub.requests)
    assert not hub.requests_with("load.py")
    assert fetch("me/rows").path.read_bytes() == FILES["data/train.jsonl"]
    assert len(hub.requests) == n_asked + 1  # the list alone
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert fetch("me/rows").file == "data/train.jsonl"
    assert len(hub.requests) == n_asked + 1


def test_a_file_can_be_named_and_an_address_pasted(hub: HubServer) -> None:
    assert fetch("me/rows/data/test.jsonl").file == "data/test.jsonl"
    page = f"{hub.url}/datasets/me/rows"
    assert fetch(f"{page}/blob/main/data/test.jsonl").file == "data/test.jsonl"
    assert parse_data_id(f"{page}/viewer/default/train") == ("me/rows", "")
    names = ["a-train-00001.parquet", "a-train-00000.parquet", "train.csv", "x.txt"]
    assert choose_data_file(names) == "a-train-00000.parquet"
    assert choose_data_file(["state.json", "notes.md"]) is None


def test_what_cannot_be_is_told_with_what_to_do(hub: HubServer, monkeypatch) -> None:
    hub.repositories["datasets/me/none"] = Repository({"README.md": b"x"})
    cases = {
        "me/absent": "hub-data-not-found",
        "me/none": "hub-data-no-file",
        "me/rows/nothing.csv": "hub-data-no-file",
        "a b": "hub-data-id",
        "me/rows/../../x.csv": "hub-data-id",
    }
    for text, code in cases.items():
        with pytest.raises(SourceError) as error:
            fetch(text)
        assert error.value.code == code, text
    with pytest.raises(SourceError) as large:
        fetch("me/rows", max_bytes=100)
    assert large.value.code == "hub-data-too-large"
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(SourceError) as offline:
        fetch("me/other")
    assert offline.value.code == "hub-offline"
