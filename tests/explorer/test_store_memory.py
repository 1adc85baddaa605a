"""Who stays in memory: eviction by bytes, leases, unloading, and a crowd."""

import gc
import threading
import weakref

import pytest
from glassbox_fake_models import LONG_S, joined, open_all, phases, result_of, wait_until

from explorer.errors import BudgetError, Stopped
from explorer.store import ModelStore
from explorer.uploads import Uploads

SOURCES = ("tiny", "org/a", "org/b", "org/c", "org/large", "org/huge")

# Memory


def test_the_idle_model_used_longest_ago_goes_first(store):
    open_all(store, "org/a")
    open_all(store, "org/b")
    open_all(store, "org/a")  # b is now the one used longest ago
    open_all(store, "org/c")
    loaded = [source for source in SOURCES if store.summary(source, "ann")]
    assert loaded == ["org/a", "org/c"]


def test_a_large_model_pushes_out_several(store):
    open_all(store, "org/a")
    open_all(store, "org/b")
    open_all(store, "org/large")
    assert [source for source in SOURCES if store.summary(source, "ann")] == ["org/large"]
    assert store._shelf.used_bytes == 90


def test_evicted_models_are_freed(store):
    with store.lease("org/a", "ann") as model:
        gone = weakref.ref(model)
    del model
    open_all(store, "org/large")
    assert gone() is None


def test_a_leased_model_is_not_evicted(store):
    open_all(store, "org/b")
    with store.lease("org/a", "ann") as model:
        open_all(store, "org/c")  # b has to go, though a was used longer ago than b
        assert store.summary("org/b", "ann") is None
        with pytest.raises(BudgetError, match="unload a model") as caught:
            open_all(store, "org/large")
        assert caught.value.code == "memory-in-use"
        assert caught.value.facts["name"] == "ORG/LARGE"
        assert store.summary("org/c", "ann") is not None  # nothing goes when it does not help
        with store.lease("org/a", "bob") as same:
            assert same is model
    open_all(store, "org/large")


def test_what_never_fits_is_refused_before_reading(store, loader):
    open_all(store, "org/a")
    with pytest.raises(BudgetError, match="choose a smaller") as caught:
        open_all(store, "org/huge")
    assert caught.value.code == "model-too-large"
    assert set(caught.value.facts) == {"name", "needs", "budget"}
    assert loader.calls["load", "org/huge"] == 0
    assert store.summary("org/a", "ann") is not None


def test_the_memory_of_the_machine_counts_too(make_store, loader):
    free = 30
    store = make_store(available_bytes=lambda: free)
    with pytest.raises(BudgetError, match="close a program"):
        open_all(store, "org/a")
    free = 45
    open_all(store, "org/a")
    free = 5  # b fits once a has gone
    open_all(store, "org/b")
    assert store.summary("org/a", "ann") is None
    assert loader.calls["load", "org/a"] == 1


def test_models_being_read_count_as_used(store, loader, visitors):
    gate = loader.hold("load", "org/large")
    opened = visitors.submit(open_all, store, "org/large")
    gate.wait_for_arrival()
    with pytest.raises(BudgetError):
        open_all(store, "org/a")
    gate.go_on.set()
    assert phases(result_of(opened))[-1] == "ready"


def test_the_budget_defaults_to_the_environment(monkeypatch, loader, tmp_path):
    monkeypatch.setenv("GLASSBOX_MEMORY_GB", "0.00000004")  # 40 bytes
    store = ModelStore(loader=loader, uploads=Uploads(tmp_path))
    open_all(store, "org/a")
    with pytest.raises(BudgetError, match="GLASSBOX_MEMORY_GB"):
        open_all(store, "org/large")


# Leases


def test_a_lease_loads_what_is_not_there(store, loader):
    with store.lease("org/a", "ann") as model:
        assert model.resolved.id == "org/a"
    with store.lease("org/a", "bob") as again:
        assert again is model
    assert loader.calls["load", "org/a"] == 1


def test_many_leases_at_once_share_one_load(store, loader, visitors):
    gate = loader.hold("load", "org/a")
    everybody = threading.Barrier(6)

    def use(name: str) -> int:
        with store.lease("org/a", name) as model:
            everybody.wait(LONG_S)
            return id(model)

    used = [visitors.submit(use, f"visitor {number}") for number in range(6)]
    wait_until(lambda: len(joined(store, "org/a")) == 6)
    gate.go_on.set()
    assert len({result_of(future) for future in used}) == 1
    assert loader.calls["load", "org/a"] == 1
    open_all(store, "org/large")  # every lease was given back
    assert store.summary("org/a", "ann") is None


def test_a_lease_is_held_from_the_moment_the_model_is_there(store, loader):
    gate = loader.hold("load", "org/a")
    lease = store.lease("org/a", "ann")
    taken = threading.Thread(target=lease.__enter__, daemon=True)
    taken.start()
    gate.wait_for_arrival()
    gate.go_on.set()
    wait_until(lambda: store.summary("org/a", "ann") is not None)
    with pytest.raises(BudgetError):  # even if the thread that waits for it has not woken up yet
        open_all(store, "org/large")
    taken.join(LONG_S)
    lease.__exit__(None, None, None)
    open_all(store, "org/large")


def test_a_lease_is_given_back_when_its_block_fails(store):
    with pytest.raises(ZeroDivisionError), store.lease("org/a", "ann"):
        _ = 1 / 0
    open_all(store, "org/large")


def test_waiting_for_a_lease_can_be_stopped(store, loader, visitors):
    gate = loader.hold("load", "org/a")
    stop = threading.Event()

    def use() -> None:
        with store.lease("org/a", "ann", cancelled=stop.is_set):
            pass

    used = visitors.submit(use)
    gate.wait_for_arrival()
    stop.set()
    assert isinstance(used.exception(LONG_S), Stopped)
    gate.go_on.set()
    assert phases(open_all(store, "org/a"))[-1] == "ready"  # the load itself went on
    open_all(store, "org/large")  # and no lease was left behind


def test_cancel_stops_a_lease_that_waits(store, loader, visitors):
    gate = loader.hold("load", "org/a")

    def use() -> None:
        with store.lease("org/a", "ann"):
            pass

    used = visitors.submit(use)
    gate.wait_for_arrival()
    store.cancel("org/a", "ann")
    assert isinstance(used.exception(LONG_S), Stopped)
    gate.go_on.set()


# Unloading


def test_unload_frees_the_model(store):
    with store.lease("org/a", "ann") as model:
        gone = weakref.ref(model)
    del model
    store.unload("org/a", "ann")
    gc.collect()
    assert gone() is None
    assert store.summary("org/a", "ann") is None
    assert store._shelf.used_bytes == 0


def test_unload_waits_for_the_answer_that_is_being_written(store):
    with store.lease("org/a", "ann") as model:
        store.unload("org/a", "ann")
        assert store.summary("org/a", "ann") is None
        assert store._shelf.used_bytes == 40
        gone = weakref.ref(model)
        del model
    gc.collect()
    assert gone() is None
    assert store._shelf.used_bytes == 0


def test_opening_again_takes_an_unload_back(store, loader):
    with store.lease("org/a", "ann"):
        store.unload("org/a", "ann")
        assert phases(open_all(store, "org/a")) == ["ready"]
    assert store.summary("org/a", "ann") is not None
    assert loader.calls["load", "org/a"] == 1


def test_unload_leaves_a_model_that_others_have_open(store):
    open_all(store, "org/a", "ann")
    open_all(store, "org/a", "bob")
    store.unload("org/a", "ann")
    assert store.summary("org/a", "bob") is not None
    store.unload("org/a", "bob")
    assert store.summary("org/a", "bob") is None


def test_a_stranger_cannot_unload_a_model(store):
    open_all(store, "org/a", "ann")
    store.unload("org/a", "mallory")
    assert store.summary("org/a", "ann") is not None


def test_unload_of_what_is_not_there_does_nothing(store):
    store.unload("org/a", "ann")


# All together


def test_a_crowd_never_exceeds_the_budget_and_always_ends(make_store, loader, visitors):
    store = make_store(public=True)
    sources = ["tiny", "org/a", "org/b", "org/c"]
    most, lock = 0, threading.Lock()

    def visit(number: int) -> None:
        nonlocal most
        for turn in range(8):
            source = sources[(number * 7 + turn * 3) % 4]
            try:
                with store.lease(source, f"visitor {number}") as model:
                    assert model.resolved.id == source
                    with lock, store._changed:
                        most = max(most, store._shelf.used_bytes)
            except BudgetError as refused:  # two others were in use just then
                assert refused.code == "memory-in-use"  # noqa: PT017
            if turn % 5 == number % 5:
                store.unload(source, f"visitor {number}")

    for future in [visitors.submit(visit, number) for number in range(6)]:
        future.result(LONG_S)
    assert 0 < most <= 100
    wait_until(lambda: store._loads == {})
    assert all(model.leases == 0 for model in store._shelf._models.values())
