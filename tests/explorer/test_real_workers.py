"""The queue with processes as the app starts them, and killed while nobody expects it."""

import os
import signal
import threading

import pytest

from explorer.errors import JobError
from explorer.runs import Runs
from explorer.training.setup import RunSetup
from tests.explorer.run_workers import wait_until

pytestmark = pytest.mark.slow
SETUP = RunSetup(context=8, batch_size=2, n_steps=200, style="gpt")
SOON_S = 300.0  # a machine may be busy; nothing here measures time


@pytest.fixture
def runs(tmp_path):
    made = Runs(tmp_path)
    yield made
    for summary in made.list("ann"):
        if summary.state in ("queued", "running", "pausing", "paused"):
            made.stop(summary.id, "ann")
    made._keeper.close()


def make(runs, **changes):
    *_, last = runs.create(RunSetup(**{**vars(SETUP), **changes}), "ann")
    return last.run_id


def wait_for(runs, run_id, state):
    wait_until(lambda: runs.view(run_id).summary.state == state, SOON_S)


def warm_process(runs):
    runs.warm_up()
    return runs._keeper._warm.pid


def test_two_runs_wait_for_each_other_and_a_killed_one_goes_on(runs):
    first, second = make(runs, n_steps=100_000), make(runs, n_steps=3)
    runs.start(first, "ann")
    runs.start(second, "ann")
    wait_for(runs, first, "running")
    assert runs.view(second).summary.place == 0
    wait_until(lambda: runs.view(first).summary.step > 3, SOON_S)
    runs.pause(first, "ann")
    wait_for(runs, first, "paused")
    saved = runs.view(first).summary.checkpoints[-1]
    pid = runs._keeper._working[first].pid
    os.kill(pid, signal.SIGKILL)
    wait_for(runs, first, "interrupted")
    assert runs.view(first).exit_code == -signal.SIGKILL
    wait_for(runs, second, "finished")  # its turn
    runs.resume(first, "ann")
    wait_until(lambda: runs.view(first).summary.step > saved, SOON_S)
    runs.stop_and_keep(first, "ann")
    wait_for(runs, first, "stopped")
    summary = runs.view(first).summary
    assert summary.checkpoints[-1] == summary.step > saved


def test_a_process_killed_while_it_only_waits_is_replaced(runs):
    os.kill(warm_process(runs), signal.SIGKILL)
    run_id = make(runs, n_steps=3)
    runs.start(run_id, "ann")
    wait_for(runs, run_id, "finished")
    assert runs.view(run_id).steps.tolist() == [1, 2, 3]


def test_a_process_killed_during_a_probe_is_told_in_words_and_replaced(runs):
    pid, failures = warm_process(runs), []

    def estimate():
        try:
            runs.estimate(SETUP)
        except JobError as error:
            failures.append((error.code, error.facts["exit_code"]))

    asking = threading.Thread(target=estimate)
    asking.start()
    wait_until(lambda: runs._keeper._warm is None, SOON_S)  # the probe has taken it
    os.kill(pid, signal.SIGKILL)
    asking.join(SOON_S)
    assert failures == [("worker-ended", -signal.SIGKILL)]
    found = runs.estimate(SETUP)
    assert found.step_s > 0
    assert 0 <= found.others_share <= 1
