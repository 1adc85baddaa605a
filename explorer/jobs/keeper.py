"""The queue of runs: starts what waits when there is room, keeps one process warm.

The queue is in the folders: `about.json` says when a run was queued. An app that starts finds the
runs that wait and those whose processes still work, and goes on as if it had never been away; two
apps on the same folder cannot start a run twice, because of its lock.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.jobs.run_states import has_worker, note_not_begun
from explorer.jobs.worker_process import WorkerProcess
from explorer.training.run_folder import RUN_ID, RunFolder
from models.errors import JobError

LOG = logging.getLogger(__name__)
CHECK_EVERY_S = 0.2
# A process that is ended lets go of its run's lock a moment before the system tells how it ended.
ENDING_S = 2.0
# Exit codes of a process that has written into the events how its run ended.
HAS_SAID = (0, 1)
# The next warm process imports torch for seconds; not while a run shows its first points.
WARM_AGAIN_S = 15.0


class RunKeeper:
    """Starts runs, in the order in which they were queued.

    Args:
        runs: Folder of all runs.
        most_running: How many may train at once.
    """

    def __init__(self, runs: Path, *, most_running: int = 1) -> None:
        self._runs = runs
        self._most_running = most_running
        self._lock = threading.RLock()
        self._warm: WorkerProcess | None = None
        self._handed: dict[str, WorkerProcess] = {}  # given, lock not seen yet
        self._working: dict[str, WorkerProcess | None] = {}  # None: of an earlier app
        self._queued: dict[str, float] = {}
        self._warm_at = math.inf  # when to have a process ready again
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Find what waits and what works, and look after it from now on."""
        with self._lock:
            if self._thread is not None:
                return
            for run in self.list_folders():
                queued_at = _queued_at(run)
                if has_worker(run):
                    self._working[run.id] = None
                    if queued_at is not None:  # its app ended before it saw the run begin
                        self.change_about(run, queued_at=None)
                elif queued_at is not None:
                    self._queued[run.id] = queued_at
            self._thread = threading.Thread(target=self._work, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Look after nothing any more; runs that train go on."""
        self._closed.set()
        with self._lock:
            if self._warm is not None:
                self._warm.close()
                self._warm = None

    def list_folders(self) -> list[RunFolder]:
        """All runs, in no order."""
        if not self._runs.is_dir():
            return []
        return [RunFolder(path) for path in self._runs.iterdir() if RUN_ID.fullmatch(path.name)]

    def warm_up(self) -> None:
        """Have a process ready before it is needed."""
        with self._lock:
            self._warm_at = math.inf
            if self._warm is not None and self._warm.exit_code is not None:
                self._warm.close()  # its pipes
                self._warm = None
            if self._warm is None:
                self._warm = WorkerProcess()

    def change_about(self, run: RunFolder, **changes: object) -> None:
        """Change what the page keeps about a run; None takes a value out.

        Raises:
            JobError: The file was changed into something that cannot be read.
            OSError: It cannot be written.
        """
        with self._lock:  # the queue writes there too
            about = {**run.read_about(), **changes}
            run.write_about({key: value for key, value in about.items() if value is not None})

    def queue(self, run: RunFolder) -> None:
        """Let a run wait for its turn; one that waits or works already stays where it is.

        Args:
            run: The run.
        """
        self.begin()
        with self._lock:
            if run.id in self._queued or run.id in self._handed or has_worker(run):
                return
            run.ask("run")
            queued_at = time.time()
            self.change_about(run, queued_at=queued_at)
            self._queued[run.id] = queued_at
            self._start_next()

    def leave_queue(self, run: RunFolder) -> bool:
        """Take a waiting run out of the queue; False when it does not wait.

        One that was given to a process which has not begun it yet waits too: the process is ended.
        """
        with self._lock:
            handed = self._handed.get(run.id)
            if handed is not None and not has_worker(run):
                del self._handed[run.id]
                handed.close()
            elif self._queued.pop(run.id, None) is None:
                return False
            self.change_about(run, queued_at=None)
            return True

    def place(self, run_id: str) -> int | None:
        """Its place in the queue, 0 for the next or one that is being started; None: not in it."""
        with self._lock:
            if run_id in self._handed:
                return 0
            order = sorted(self._queued, key=self._queued.__getitem__)
            return order.index(run_id) if run_id in order else None

    def exit_code(self, run_id: str) -> int | None:
        """How the process of a run that is not held any more ended; None is unknown.

        It is known where this app started the process.
        """
        with self._lock:
            worker = self._working.get(run_id)
        return None if worker is None else worker.await_exit(ENDING_S)

    def probe(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Measure a step in the warm process; see `WorkerProcess.probe`.

        Raises:
            JobError: The process ended in the middle.
        """
        worker = self._take_warm()  # nobody gives it a run meanwhile
        try:
            answer = worker.probe(config)
        except BaseException:
            worker.close()
            raise
        with self._lock:
            if self._warm is None and not self._closed.is_set():
                self._warm = worker
            else:
                worker.close()
        return answer

    def _take_warm(self) -> WorkerProcess:
        with self._lock:
            self.warm_up()
            worker, self._warm = self._warm, None
            assert worker is not None  # warm_up has just seen to it
            return worker

    def _work(self) -> None:
        while not self._closed.wait(CHECK_EVERY_S):
            try:
                with self._lock:
                    self._see_taken()
                    self._start_next()
                    if self._warm is None and time.monotonic() >= self._warm_at:
                        self.warm_up()
            except Exception:  # the queue must not stand still for one bad folder
                LOG.exception("the queue of runs")

    def _see_taken(self) -> None:
        """A run leaves the queue when its process holds the lock, or has ended without it."""
        for run_id, worker in list(self._handed.items()):
            run = RunFolder(self._runs / run_id)
            exit_code, taken = worker.exit_code, has_worker(run)
            if not taken and exit_code is None:
                continue
            del self._handed[run_id]
            self._working[run_id] = worker
            self._warm_at = time.monotonic() + WARM_AGAIN_S
            if not run.path.is_dir():
                continue
            self.change_about(run, queued_at=None)
            if not taken and exit_code not in HAS_SAID:
                note_not_begun(run, exit_code)

    def _start_next(self) -> None:
        while self._queued and self._n_busy() < self._most_running:
            run_id = min(self._queued, key=self._queued.__getitem__)
            del self._queued[run_id]
            run = RunFolder(self._runs / run_id)
            if _queued_at(run) is not None:  # else another app has taken it out, or deleted it
                self._hand_over(run)

    def _hand_over(self, run: RunFolder) -> None:
        worker = self._take_warm()
        try:
            worker.train(run.path)
        except JobError:  # it has ended meanwhile: `_see_taken` says so
            LOG.exception("the process for run %s", run.id)
        self._handed[run.id] = worker

    def _n_busy(self) -> int:
        working = [run for run in self._working if has_worker(RunFolder(self._runs / run))]
        return len(working) + len(self._handed)


def _queued_at(run: RunFolder) -> float | None:
    try:
        found = run.read_about().get("queued_at")
    except JobError:  # edited by hand: it cannot be started either
        return None
    return found if isinstance(found, int | float) else None
