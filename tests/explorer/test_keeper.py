"""The queue: one at a time, in order, found again after a restart, never the same run twice."""

import json

import pytest

from explorer.errors import JobError
from explorer.jobs.keeper import RunKeeper
from explorer.jobs.run_states import find_state, has_worker
from explorer.training.event_log import read_events
from explorer.training.events import Failed, Finished, Started, Step
from explorer.training.run_lock import hold_lock
from tests.explorer.run_workers import use_threads, wait_until
from tests.explorer.training.run_cases import make_tiny_run


@pytest.fixture
def threads(monkeypatch):
    return use_threads(monkeypatch)


@pytest.fixture
def make_keeper(tmp_path, threads):
    made = []

    def make(**options):
        made.append(RunKeeper(tmp_path, **options))
        return made[-1]

    yield make
    threads[0].set()
    for keeper in made:
        keeper.close()


def state_of(keeper, run):
    return find_state(run, read_events(run.events_file), queued=keeper.place(run.id) is not None)


def starts_of(run):
    return sum(isinstance(e, Started) for e in read_events(run.events_file))


def is_finished(run):
    events = read_events(run.events_file)
    return bool(events) and isinstance(events[-1], Finished) and not has_worker(run)


@pytest.mark.slow
def test_runs_train_one_after_the_other_in_the_order_of_start(make_keeper, tmp_path, threads):
    keeper = make_keeper()
    runs = [make_tiny_run(tmp_path, n_steps=2) for _ in range(3)]
    for run in runs:
        keeper.queue(run)
    assert [keeper.place(run.id) for run in runs] == [0, 0, 1]  # the first is being started
    assert state_of(keeper, runs[2]) == "queued"
    threads[0].set()
    wait_until(lambda: all(map(is_finished, runs)))
    at = [read_events(run.events_file) for run in runs]
    for earlier, later in zip(at, at[1:], strict=False):
        assert earlier[-1].at <= later[0].at
    wait_until(lambda: all("queued_at" not in run.read_about() for run in runs))


def test_two_may_train_at_once_where_that_is_allowed(make_keeper, tmp_path, threads):
    keeper = make_keeper(most_running=2)
    for run in (runs := [make_tiny_run(tmp_path, n_steps=2) for _ in range(3)]):
        keeper.queue(run)
    assert [keeper.place(run.id) for run in runs] == [0, 0, 0]
    assert sorted(w.folder.name for w in threads[1] if w.folder) == sorted(r.id for r in runs[:2])


@pytest.mark.slow
def test_starting_twice_is_one_start(make_keeper, tmp_path, threads):
    keeper, run = make_keeper(), make_tiny_run(tmp_path, n_steps=2)
    keeper.queue(run)
    keeper.queue(run)
    threads[0].set()
    wait_until(lambda: is_finished(run))
    assert starts_of(run) == 1
    assert sum(worker.folder is not None for worker in threads[1]) == 1


def test_a_run_that_waits_can_leave_and_so_can_one_that_has_not_begun(
    make_keeper, tmp_path, threads
):
    keeper = make_keeper()
    first, second = (make_tiny_run(tmp_path, n_steps=2) for _ in range(2))
    keeper.queue(first)
    keeper.queue(second)
    assert keeper.leave_queue(second)
    assert keeper.leave_queue(first)  # its process is ended
    assert not keeper.leave_queue(first)
    assert [state_of(keeper, run) for run in (first, second)] == ["prepared", "prepared"]
    assert [worker.closed for worker in threads[1] if worker.folder] == [True]
    assert all("queued_at" not in run.read_about() for run in (first, second))


def test_an_app_that_restarts_goes_on_with_the_queue_and_what_works(make_keeper, tmp_path, threads):
    before = make_keeper()
    working, waiting = (make_tiny_run(tmp_path, n_steps=2) for _ in range(2))
    before.queue(waiting)
    before.close()
    with hold_lock(working.lock_file):  # the process of an earlier app
        after = make_keeper()
        after.begin()
        assert state_of(after, working) == "running"
        assert after.place(waiting.id) == 0
        assert after.place(working.id) is None
    threads[0].set()
    wait_until(lambda: is_finished(waiting))


def test_a_run_whose_app_ended_while_it_began_is_not_started_again_later(make_keeper, tmp_path):
    run = make_tiny_run(tmp_path, n_steps=2)
    run.write_about({**run.read_about(), "queued_at": 5.0})
    with hold_lock(run.lock_file):
        make_keeper().begin()
    again = make_keeper()
    again.begin()
    assert "queued_at" not in run.read_about()
    assert again.place(run.id) is None


@pytest.mark.slow
def test_two_apps_on_one_folder_do_not_start_a_run_twice(make_keeper, tmp_path, threads):
    run = make_tiny_run(tmp_path, n_steps=2)
    for keeper in (keepers := (make_keeper(), make_keeper())):
        keeper.queue(run)
    wait_until(lambda: sum(worker.folder is not None for worker in threads[1]) == 2)
    threads[0].set()
    wait_until(lambda: is_finished(run))
    wait_until(lambda: all(worker.exit_code is not None for worker in threads[1] if worker.folder))
    assert read_events(run.events_file)[-1].reason == "done"
    assert [e.step for e in read_events(run.events_file) if isinstance(e, Step)] == [1, 2]
    assert all(keeper.place(run.id) in (0, None) for keeper in keepers)


def test_a_run_that_another_app_took_out_of_the_queue_stays_out(make_keeper, tmp_path, threads):
    keeper = make_keeper()
    first, second = (make_tiny_run(tmp_path, n_steps=2) for _ in range(2))
    keeper.queue(first)
    keeper.queue(second)
    about = second.read_about()
    del about["queued_at"]
    second.write_about(about)
    threads[0].set()
    wait_until(lambda: is_finished(first) and keeper.place(second.id) is None)
    assert starts_of(second) == 0


def test_a_process_that_ends_before_it_begins_fails_the_run_in_words(
    make_keeper, tmp_path, threads
):
    keeper, run = make_keeper(), make_tiny_run(tmp_path, n_steps=2)
    keeper.queue(run)
    threads[1][0].die()
    wait_until(lambda: state_of(keeper, run) == "failed")
    failed = read_events(run.events_file)[-1]
    assert isinstance(failed, Failed)
    assert failed.code == "run-not-begun"
    assert "code -9" in failed.message
    threads[0].set()
    keeper.queue(run)
    wait_until(lambda: is_finished(run))


def test_a_warm_process_that_ended_is_replaced(make_keeper, tmp_path, threads):
    keeper, run = make_keeper(), make_tiny_run(tmp_path, n_steps=2)
    keeper.warm_up()
    threads[1][0].die()
    threads[0].set()
    keeper.queue(run)
    wait_until(lambda: is_finished(run))
    assert threads[1][0].folder is None


@pytest.mark.slow
def test_a_folder_that_was_edited_does_not_hold_the_queue_up(make_keeper, tmp_path, threads):
    keeper = make_keeper()
    bad, good = (make_tiny_run(tmp_path, n_steps=2) for _ in range(2))
    keeper.queue(bad)
    keeper.queue(good)
    bad.about_file.write_text("{")
    bad.config_file.write_text(json.dumps({"format": 9}))
    threads[0].set()
    wait_until(lambda: is_finished(good))
    with pytest.raises(JobError, match=r"about\.json"):
        keeper.queue(bad)
