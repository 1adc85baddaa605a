"""Who may open what, and tokenizers, which come before the weights."""

from pathlib import Path

import pytest
from glassbox_fake_models import LONG_S, joined, open_all, phases, result_of, wait_until

from explorer.errors import BudgetError, SourceError, Stopped
from explorer.store import ModelStore

# Owners


def keep_gguf(store: ModelStore, tmp_path: Path, owner: str) -> str:
    file = tmp_path / "mine.gguf"
    file.write_bytes(b"GGUF" + bytes(20))
    return store.keep_upload([file], owner)


def allow_upload(loader, store: ModelStore, source: str, owner: str) -> None:
    loader.sizes[source] = 40
    path = str(store._uploads.find(source, owner))
    loader.origins[path] = "file"


def test_an_upload_opens_for_its_owner_only(store, loader, tmp_path):
    source = keep_gguf(store, tmp_path, "ann")
    allow_upload(loader, store, source, "ann")
    summary = open_all(store, source, "ann")[-1].summary
    assert (summary.id, summary.name, summary.origin) == (source, "upload", "upload")
    assert store.summary(source, "bob") is None
    for stranger in (store.open(source, "bob"), store.open(source, "x")):
        with pytest.raises(SourceError, match="belongs to another browser"):
            list(stranger)
    with pytest.raises(SourceError), store.lease(source, "bob"):
        pass
    with pytest.raises(SourceError):
        store.tokenizer(source, "bob")
    store.unload(source, "bob")
    assert store.summary(source, "ann") is not None


def test_deleting_an_upload_unloads_it(store, loader, tmp_path):
    source = keep_gguf(store, tmp_path, "ann")
    allow_upload(loader, store, source, "ann")
    open_all(store, source)
    with pytest.raises(SourceError):
        store.delete_upload(source, "bob")
    store.delete_upload(source, "ann")
    assert store.summary(source, "ann") is None
    with pytest.raises(SourceError, match="upload the files again"):
        open_all(store, source)


def test_loopback_has_one_owner(make_store, loader, tmp_path):
    store = make_store()
    source = keep_gguf(store, tmp_path, "ann")
    allow_upload(loader, store, source, "")
    open_all(store, source, "another page")
    assert store.summary(source, "a third") is not None
    store.unload(source, "a fourth")
    assert store.summary(source, "ann") is None


def test_a_public_host_touches_no_path(store, loader):
    with pytest.raises(SourceError, match="is a path"):
        open_all(store, "/models/mine")
    assert not loader.calls
    loader.origins["org/a"] = "folder"  # a relative folder that reads like a Hub id
    with pytest.raises(SourceError, match="is a path"):
        open_all(store, "org/a")
    assert loader.calls["load", "org/a"] == 0


def test_the_operators_own_path_is_open_to_all(make_store, loader):
    loader.sizes["/models/mine"] = 40
    loader.origins["/models/mine"] = "folder"
    store = make_store(public=True, operator_sources=["/models/mine"])
    open_all(store, "/models/mine", "ann")
    assert store.summary("/models/mine", "bob") is not None


# Tokenizers


def test_a_tokenizer_comes_without_weights(store, loader):
    assert store.tokenizer("tiny", "ann").of == "tiny"
    store.tokenizer("tiny", "bob")
    assert loader.calls["tokenizer", "tiny"] == 1
    assert loader.calls["load", "tiny"] == loader.calls["estimate", "tiny"] == 0
    assert store.summary("tiny", "ann") is None
    assert store._loads == {}


def test_a_tokenizer_does_not_wait_for_the_weights(store, loader, visitors):
    gate = loader.hold("load", "org/a")
    opened = visitors.submit(open_all, store, "org/a")
    gate.wait_for_arrival()
    assert store.tokenizer("org/a", "bob").of == "org/a"
    gate.go_on.set()
    result_of(opened)
    assert loader.calls["resolve", "org/a"] == 1


def test_opening_goes_on_from_a_search_for_the_tokenizer(store, loader, visitors):
    gate = loader.hold("resolve", "org/a")
    tokenizer = visitors.submit(store.tokenizer, "org/a", "ann")
    gate.wait_for_arrival()
    opened = visitors.submit(open_all, store, "org/a", "bob")
    wait_until(lambda: joined(store, "org/a") == {"ann", "bob"})
    gate.go_on.set()
    assert result_of(tokenizer).of == "org/a"
    assert phases(result_of(opened))[-1] == "ready"
    assert loader.calls["resolve", "org/a"] == 1


def test_many_who_ask_for_a_tokenizer_read_it_once(store, loader, visitors):
    gate = loader.hold("tokenizer", "org/a")
    asked = [visitors.submit(store.tokenizer, "org/a", f"visitor {n}") for n in range(6)]
    gate.wait_for_arrival()
    gate.go_on.set()
    assert len({id(result_of(future)) for future in asked}) == 1
    assert loader.calls["tokenizer", "org/a"] == 1


def test_a_model_too_large_for_memory_still_shows_its_tokens(store):
    with pytest.raises(BudgetError):
        open_all(store, "org/huge")
    assert store.tokenizer("org/huge", "ann").of == "org/huge"


def test_a_loaded_model_lends_its_own_tokenizer(store, loader):
    open_all(store, "org/a")
    assert store.tokenizer("org/a", "ann").whole
    assert loader.calls["tokenizer", "org/a"] == 0


def test_cancel_stops_the_search_for_a_tokenizer(store, loader, visitors):
    gate = loader.hold("resolve", "org/a")
    asked = visitors.submit(store.tokenizer, "org/a", "ann")
    gate.wait_for_arrival()
    store.cancel("org/a", "ann")
    assert isinstance(asked.exception(LONG_S), Stopped)
    wait_until(lambda: store._loads == {})


def test_few_tokenizers_are_kept(store, loader):
    loader.sizes.update({f"org/{number}": 1 for number in range(9)})
    for number in range(9):
        store.tokenizer(f"org/{number}", "ann")
    store.tokenizer("org/8", "ann")
    store.tokenizer("org/0", "ann")
    assert loader.calls["tokenizer", "org/8"] == 1
    assert loader.calls["tokenizer", "org/0"] == 2
