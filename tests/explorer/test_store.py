"""Opening, failing and cancelling, with a fake loader whose stages the tests hold and break."""

import gc
import subprocess
import sys
import threading
import weakref

import pytest
from glassbox_fake_models import LONG_S, FakeModel, joined, open_all, phases, result_of, wait_until

from explorer.errors import SourceError, WeightError

# Opening


def test_opening_ends_with_the_model(store):
    steps = open_all(store, "tiny")
    assert phases(steps)[-1] == "ready"
    assert steps[-1].summary == store.summary("tiny", "ann")
    assert steps[-1].summary.name == "TINY"
    assert (steps[-1].done_bytes, steps[-1].total_bytes) == (40, 40)
    assert all(step.summary is None for step in steps[:-1])


def test_steps_follow_the_stages(store, loader):
    loader.downloads.add("org/a")
    finding, reading = loader.hold("resolve", "org/a"), loader.hold("load", "org/a")
    steps = store.open("org/a", "ann")
    first = next(steps)
    assert first.phase in ("resolving", "downloading")
    finding.wait_for_arrival()
    download = first if first.phase == "downloading" else next(steps)
    assert (download.phase, download.done_bytes, download.total_bytes) == ("downloading", 30, 100)
    assert (download.bytes_per_s, download.seconds_left) == (10.0, 7.0)
    finding.go_on.set()
    reading.wait_for_arrival()
    read = next(steps)
    assert (read.phase, read.done_bytes, read.total_bytes) == ("reading", 0, 40)
    reading.go_on.set()
    assert phases(list(steps)) == ["ready"]


def test_a_loaded_model_is_ready_at_once(store, loader):
    open_all(store, "tiny")
    assert phases(open_all(store, "tiny", "bob")) == ["ready"]
    assert loader.calls["load", "tiny"] == 1


def test_visitors_who_ask_at_once_load_once_and_share_progress(store, loader, visitors):
    loader.downloads.add("org/a")
    gate = loader.hold("resolve", "org/a")
    names = [f"visitor {number}" for number in range(8)]
    opened = [visitors.submit(open_all, store, "org/a", name) for name in names]
    gate.wait_for_arrival()
    wait_until(lambda: joined(store, "org/a") == set(names))
    late = store.open("org/a", "late")
    assert next(late).done_bytes == 30  # who comes later sees how far it is already
    gate.go_on.set()
    for future in opened:
        assert phases(result_of(future))[-1] == "ready"
    assert phases(list(late))[-1] == "ready"
    assert loader.calls["resolve", "org/a"] == loader.calls["load", "org/a"] == 1


def test_different_models_load_side_by_side(store, loader, visitors):
    gates = [loader.hold("load", "org/a"), loader.hold("load", "org/b")]
    opened = [visitors.submit(open_all, store, source) for source in ("org/a", "org/b")]
    for gate in gates:
        gate.wait_for_arrival()
    for gate in gates:
        gate.go_on.set()
    assert [phases(result_of(future))[-1] for future in opened] == ["ready", "ready"]


def test_a_closed_page_does_not_end_the_load(store, loader):
    gate = loader.hold("load", "org/a")
    steps = store.open("org/a", "ann")
    next(steps)
    steps.close()
    gate.wait_for_arrival()
    gate.go_on.set()
    assert phases(open_all(store, "org/a"))[-1] == "ready"
    assert loader.calls["load", "org/a"] == 1


def test_what_is_in_memory_fits_whatever_room_there_is(store):
    def verdicts() -> dict[str, str]:
        return {dtype: fit.verdict for dtype, fit in store.catalogue()[0].fits.items()}

    assert verdicts() == {"float32": "too large", "int8": "too large"}
    open_all(store, "tiny")
    assert verdicts() == {"float32": "fits", "int8": "too large"}


def test_the_catalogue_comes_from_the_loader(store):
    assert [(entry.id, entry.presence) for entry in store.catalogue()] == [("tiny", "here")]


def test_the_summary_carries_the_source_that_was_asked_for(store, loader):
    summary = open_all(store, " tiny ")[-1].summary
    assert summary.id == "tiny"


# Failing and trying again


def test_a_failed_load_tells_all_leaves_nothing_and_can_be_retried(store, loader, visitors):
    loader.fail_once("load", "org/a", WeightError("damaged", code="damaged", file="w"))
    gate = loader.hold("load", "org/a")
    opened = [visitors.submit(open_all, store, "org/a", name) for name in ("ann", "bob")]
    gate.wait_for_arrival()
    wait_until(lambda: len(joined(store, "org/a")) == 2)
    gate.go_on.set()
    errors = [future.exception(LONG_S) for future in opened]
    for error in errors:
        assert isinstance(error, WeightError)
        assert (str(error), error.code, error.facts) == ("damaged", "damaged", {"file": "w"})
    assert errors[0] is not errors[1]  # each thread may add its own traceback
    assert store.summary("org/a", "ann") is None
    assert store._shelf.used_bytes == 0
    assert store._loads == {}
    assert phases(open_all(store, "org/a"))[-1] == "ready"


def test_a_failed_load_frees_what_it_had_read(store, loader):
    seen = []
    original = FakeModel.__init__

    def watch(model, resolved):
        original(model, resolved)
        seen.append(weakref.ref(model))

    loader.fail_once("load", "org/a", WeightError("damaged"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FakeModel, "__init__", watch)
        with pytest.raises(WeightError) as caught:
            open_all(store, "org/a")
    wait_until(lambda: not any(t.name == "load org/a" for t in threading.enumerate()))
    gc.collect()
    assert caught.value is not None  # a page may hold the error for long
    assert [ref() for ref in seen] == [None]


@pytest.mark.parametrize("stage", ["resolve", "estimate", "load"])
def test_any_stage_may_fail(store, loader, stage):
    loader.fail_once(stage, "org/a", SourceError("gone"))
    with pytest.raises(SourceError, match="gone"):
        open_all(store, "org/a")
    assert store._shelf.used_bytes == 0
    assert phases(open_all(store, "org/a"))[-1] == "ready"


class Panic(BaseException):
    """As the Rust tokenizers raise it."""


def test_a_panic_does_not_leave_the_visitor_waiting(store, loader):
    loader.fail_once("load", "org/a", Panic("index out of bounds"))
    with pytest.raises(Panic):
        open_all(store, "org/a")
    assert phases(open_all(store, "org/a"))[-1] == "ready"


# Cancelling


def test_cancel_stops_a_download_and_leaves_nothing(store, loader, visitors):
    gate = loader.hold("resolve", "org/a")
    opened = visitors.submit(open_all, store, "org/a")
    gate.wait_for_arrival()
    store.cancel("org/a", "ann")
    assert "ready" not in phases(result_of(opened))
    wait_until(lambda: store._loads == {})
    assert store.summary("org/a", "ann") is None
    assert loader.calls["load", "org/a"] == 0
    gate.go_on.set()
    assert phases(open_all(store, "org/a"))[-1] == "ready"


def test_cancel_of_one_visitor_does_not_stop_the_others(store, loader, visitors):
    gate = loader.hold("resolve", "org/a")
    opened = {name: visitors.submit(open_all, store, "org/a", name) for name in ("ann", "bob")}
    wait_until(lambda: joined(store, "org/a") == {"ann", "bob"})
    store.cancel("org/a", "ann")
    assert "ready" not in phases(result_of(opened["ann"]))
    gate.go_on.set()
    assert phases(result_of(opened["bob"]))[-1] == "ready"
    assert loader.calls["resolve", "org/a"] == 1


def test_cancel_while_weights_are_read_drops_them(store, loader, visitors):
    gate = loader.hold("load", "org/a")
    opened = visitors.submit(open_all, store, "org/a")
    gate.wait_for_arrival()
    store.cancel("org/a", "ann")
    assert "ready" not in phases(result_of(opened))  # the page does not wait for the end of it
    gate.go_on.set()
    wait_until(lambda: store._loads == {})
    assert store.summary("org/a", "ann") is None
    assert store._shelf.used_bytes == 0


def test_who_joins_a_load_that_is_being_stopped_still_gets_the_model(store, loader, visitors):
    loader.hold("resolve", "org/a")
    stopping = threading.Event()
    asked = threading.Event()
    resolve = loader.resolve

    def slow_to_stop(source, *, on_progress, cancelled):
        try:
            return resolve(source, on_progress=on_progress, cancelled=cancelled)
        except SourceError:
            del loader.gates["resolve", "org/a"]
            stopping.set()
            assert asked.wait(LONG_S)
            raise

    loader.resolve = slow_to_stop
    opened = visitors.submit(open_all, store, "org/a", "ann")
    wait_until(lambda: joined(store, "org/a") == {"ann"})
    store.cancel("org/a", "ann")
    assert stopping.wait(LONG_S)
    again = visitors.submit(open_all, store, "org/a", "bob")
    wait_until(lambda: joined(store, "org/a") == {"bob"})
    asked.set()
    assert phases(result_of(again))[-1] == "ready"
    assert "ready" not in phases(result_of(opened))
    assert loader.calls["resolve", "org/a"] == 2


def test_cancel_of_what_is_not_loading_does_nothing(store):
    store.cancel("org/a", "ann")
    open_all(store, "org/a")
    store.cancel("org/a", "ann")
    assert store.summary("org/a", "ann") is not None


def test_importing_the_store_imports_no_torch():
    program = (
        "import sys, explorer.store\n"
        "explorer.store.ModelStore()\n"
        "print(sorted({'torch', 'gradio', 'plotly', 'transformers'} & set(sys.modules)))\n"
        "print([name for name in sys.modules if name.startswith('models.load')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout.split("\n")[:2], done.stderr) == (["[]", "[]"], "")
