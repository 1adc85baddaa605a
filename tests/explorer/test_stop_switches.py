"""What takes the place of a piece of work comes after its last word."""

import threading

from explorer.stop_switches import StopSwitches

LONG_S = 20


def test_what_ends_a_work_waits_for_its_last_word() -> None:
    stops, said = StopSwitches(), []
    begun, may_end = threading.Event(), threading.Event()

    def work() -> None:
        with stops.armed("ann") as switch:
            begun.set()
            assert switch.wait(LONG_S)
            may_end.wait(LONG_S)
            said.append("the last word")

    def replace() -> None:
        stops.end("ann", LONG_S)
        said.append("what comes after")

    threads = [threading.Thread(target=work), threading.Thread(target=replace)]
    threads[0].start()
    assert begun.wait(LONG_S)
    threads[1].start()
    may_end.set()
    for thread in threads:
        thread.join(LONG_S)
    assert said == ["the last word", "what comes after"]


def test_it_does_not_wait_for_ever_and_not_for_nothing() -> None:
    stops = StopSwitches()
    stops.end("nobody", LONG_S)
    with stops.armed("ann") as switch:
        stops.end("ann", 0.01)
        assert switch.superseded
        assert switch.is_set()
    assert not stops.is_running("ann")


def test_a_newer_work_of_the_same_id_is_left_alone() -> None:
    stops = StopSwitches()
    with stops.armed("ann") as older, stops.armed("ann") as newer:
        assert older.superseded
        assert not newer.superseded
        assert stops.stop("ann")
        assert newer.is_set()
