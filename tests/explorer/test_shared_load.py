"""Moments of a shared load that the store's own tests cannot hold still."""

import threading

import pytest

from explorer.errors import BudgetError
from explorer.shared_load import SharedLoad
from explorer.store_records import LoadStep


@pytest.fixture
def load():
    """A load that "ann" waits for; the test holds the condition, as the store does."""
    condition = threading.Condition()
    with condition:
        shared = SharedLoad(condition)
        shared.join("ann", weights=True)
        yield shared


def test_a_stop_stays_a_stop_when_somebody_joins_meanwhile(load):
    """A download that asks twice must not get two answers: half of it would have stopped."""
    load.leave("ann")
    assert load.is_cancelled()
    load.join("bob", weights=True)
    assert load.is_cancelled()
    assert load.try_again()
    assert not load.is_cancelled()


def test_a_load_that_failed_by_itself_is_not_tried_again(load):
    assert not load.is_cancelled()
    assert not load.try_again()


def test_what_was_waited_for_counts_more_than_a_later_error(load):
    """The tokenizer is there though the weights did not fit into memory a moment later."""
    load.join("bob", weights=False)
    load.resolved = object()
    load.finish(error=BudgetError("too large"))
    assert list(load.follow("bob", until=lambda: load.resolved is not None))
    with pytest.raises(BudgetError):
        list(load.follow("ann", until=lambda: False))


def test_a_slow_reader_gets_the_newest_step(load):
    steps = load.follow("ann", until=lambda: False)
    next(steps)
    for done in (10, 20, 30):
        load.report(LoadStep("downloading", done, 100))
    assert next(steps).done_bytes == 30


def test_reports_after_the_end_change_nothing(load):
    load.finish()
    load.report(LoadStep("downloading", 10, 100))
    assert [step.phase for step in load.follow("ann", until=lambda: False)] == ["resolving"]
