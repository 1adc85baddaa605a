"""The device is shared first come, first served: checked by counts and orders, never by time."""

import threading
from collections.abc import Callable

import pytest

from explorer.errors import ExplorerError, Stopped
from explorer.slots import FairSlots

LONG_S = 20  # only ever waited for when something is broken


def start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def wait_until(condition: Callable[[], bool]) -> None:
    """Let other threads run until something is so."""
    pause = threading.Event()
    for _ in range(LONG_S * 1000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("this never became true")


def test_turns_are_served_in_the_order_of_asking():
    slots, served = FairSlots(), []

    def ask(number: int) -> None:
        with slots.turn():
            served.append(number)

    with slots.turn():
        threads = []
        for number in range(8):
            threads.append(start(lambda number=number: ask(number)))
            wait_until(lambda number=number: slots.waiting == number + 1)
    for thread in threads:
        thread.join(LONG_S)
    assert served == list(range(8))
    assert slots.waiting == 0


def test_two_streams_alternate_token_by_token():
    slots, written = FairSlots(), []

    def write(name: str, other_asks: Callable[[], bool]) -> None:
        for _ in range(50):
            with slots.turn():
                wait_until(other_asks)  # the other stream stands in the queue, as it would
                written.append(name)

    done: set[str] = set()

    def stream(name: str, other: str) -> None:
        write(name, lambda: slots.waiting == 1 or other in done)
        done.add(name)

    threads = [start(lambda: stream("A", "B")), start(lambda: stream("B", "A"))]
    for thread in threads:
        thread.join(LONG_S)
    assert len(written) == 100
    assert all(first != second for first, second in zip(written, written[1:], strict=False))


def test_never_more_turns_at_once_than_slots():
    slots, lock = FairSlots(3), threading.Lock()
    running, most = 0, 0
    everybody = threading.Barrier(3)

    def work() -> None:
        nonlocal running, most
        with slots.turn():
            with lock:
                running += 1
                most = max(most, running)
            everybody.wait(LONG_S)  # three do run at once, or this breaks
            with lock:
                running -= 1

    threads = [start(work) for _ in range(9)]
    for thread in threads:
        thread.join(LONG_S)
    assert running == 0
    assert most == 3


def test_a_slot_is_passed_on_when_a_turn_fails():
    slots = FairSlots()
    with pytest.raises(ZeroDivisionError), slots.turn():
        _ = 1 / 0
    with slots.turn():
        assert slots.waiting == 0


def test_a_waiting_turn_can_give_up_and_the_next_one_is_served():
    slots, stop, outcome = FairSlots(), threading.Event(), []

    def impatient() -> None:
        try:
            with slots.turn(cancelled=stop.is_set):
                outcome.append("served")
        except Stopped:
            outcome.append("stopped")

    def patient() -> None:
        with slots.turn():
            outcome.append("next")

    with slots.turn():
        first = start(impatient)
        wait_until(lambda: slots.waiting == 1)
        second = start(patient)
        wait_until(lambda: slots.waiting == 2)
        stop.set()
        first.join(LONG_S)
        assert outcome == ["stopped"]
        assert slots.waiting == 1
    second.join(LONG_S)
    assert outcome == ["stopped", "next"]


def test_a_slot_that_arrives_while_giving_up_is_not_lost():
    slots = FairSlots()
    holder = slots.turn()
    holder.__enter__()
    given = threading.Event()

    def cancelled() -> bool:
        if slots.waiting:  # asked from inside the queue: the slot comes just now
            holder.__exit__(None, None, None)
            given.set()
            return True
        return False

    with pytest.raises(Stopped), slots.turn(cancelled=cancelled):
        pass
    assert given.is_set()
    with slots.turn(cancelled=lambda: False):
        assert slots.waiting == 0


def test_a_turn_that_is_stopped_at_once_takes_no_slot():
    slots = FairSlots()
    with pytest.raises(Stopped), slots.turn(cancelled=lambda: True):
        pass
    with slots.turn():
        pass


def test_a_turn_that_is_interrupted_while_it_waits_gives_its_place_up():
    slots = FairSlots()

    def interrupted():
        raise KeyboardInterrupt

    with slots.turn():
        thread_ended = []

        def wait():
            calls = iter([False])
            try:
                with slots.turn(cancelled=lambda: next(calls, None) is None and interrupted()):
                    raise AssertionError("this turn never begins")
            except KeyboardInterrupt:
                thread_ended.append(True)

        start(wait).join(LONG_S)
        assert thread_ended == [True]
        assert slots.waiting == 0
    with slots.turn():  # the slot was not lost
        pass


def test_stopped_is_no_card():
    assert not issubclass(Stopped, ExplorerError)


def test_no_slots_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        FairSlots(0)
