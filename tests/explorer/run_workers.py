"""Workers for tests of the queue: threads of this process in the place of processes."""

import threading
import time
from pathlib import Path

from explorer.errors import JobError
from explorer.training.loop import train


def wait_until(holds, seconds=60.0):
    """Wait for what another thread or process does; fails when it does not come."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


class ThreadWorker:
    """Trains in a thread, once its gate is open."""

    made: list["ThreadWorker"] = []  # replaced for each test by `use_threads`
    gate: threading.Event

    def __init__(self):
        self.exit_code = None
        self.folder = None
        self.closed = False
        self.made.append(self)

    def train(self, folder: Path):
        if self.exit_code is not None:
            raise JobError("it has ended", code="worker-ended", exit_code=self.exit_code)
        self.folder = folder
        threading.Thread(target=self._train, args=(self.gate,), daemon=True).start()

    def _train(self, gate):
        gate.wait(60)
        if self.exit_code is None:
            try:
                for _ in train(self.folder):
                    pass
                self.exit_code = 0
            except JobError:
                self.exit_code = 2

    def die(self, code=-9):
        self.exit_code = code

    def await_exit(self, most_s):
        return self.exit_code

    def close(self):
        self.closed = True
        self.die()


def use_threads(monkeypatch):
    """Let the keeper start threads; returns the gate that they wait at, and those it has made."""
    gate, made = threading.Event(), []
    monkeypatch.setattr(ThreadWorker, "gate", gate, raising=False)
    monkeypatch.setattr(ThreadWorker, "made", made)
    monkeypatch.setattr("explorer.jobs.keeper.WorkerProcess", ThreadWorker)
    return gate, made
