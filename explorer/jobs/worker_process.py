"""A process that trains: `python -m explorer.train --warm`, started before it is needed.

It is in a session of its own, so that neither Ctrl-C in the terminal nor the end of the app ends
it. As long as it waits it holds a pipe to the app and goes when that breaks; once it trains it has
let go of the pipe.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from explorer.cpu_share import SPIN_VARIABLE, TRAINING_SPINS, WAIT_VARIABLE
from models.errors import JobError

ROOT = Path(__file__).parent.parent.parent
COMMAND = (sys.executable, "-m", "explorer.train", "--warm")


class WorkerProcess:
    """One process, from its start until it is given a run.

    Raises:
        JobError: The system starts no process, as when memory is short.
    """

    def __init__(self) -> None:
        waiting = {WAIT_VARIABLE: "PASSIVE", SPIN_VARIABLE: TRAINING_SPINS}
        try:
            self._process = subprocess.Popen(
                COMMAND,
                cwd=ROOT,
                env={**os.environ, **waiting},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise JobError(
                f"no training process can be started ({error}); close other programs, then try "
                "again",
                code="worker-not-started",
                problem=str(error),
            ) from None
        self._lock = threading.Lock()
        self._is_ready = False

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """How it ended: negative is the signal that killed it; None while it runs."""
        return self._process.poll()

    def await_exit(self, most_s: float) -> int | None:
        """How it ended, where it ends soon.

        Args:
            most_s: Longest to wait, in seconds.
        """
        try:
            return self._process.wait(most_s)
        except subprocess.TimeoutExpired:
            return None

    def probe(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Measure one step of a configuration; see `explorer.training.estimate`.

        Args:
            config: As in config.json.

        Raises:
            JobError: The process ended in the middle, as it does when memory runs out.
        """
        with self._lock:
            self._await_ready()
            self._send({"do": "probe", "config": config})
            return self._receive()

    def train(self, folder: Path) -> None:
        """Give it a run; it needs this app no longer.

        Args:
            folder: The run's folder.

        Raises:
            JobError: The process has ended.
        """
        with self._lock:
            # not awaited: what is written now is read when it is ready
            self._send({"do": "train", "folder": str(folder.resolve())})

    def close(self) -> None:
        """End it, if it has no run."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()

    def _await_ready(self) -> None:
        if not self._is_ready:
            self._receive()
            self._is_ready = True

    def _send(self, request: Mapping[str, Any]) -> None:
        pipe = self._process.stdin
        assert pipe is not None  # asked for when it was started
        try:
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()
        except OSError:
            raise self._ended() from None

    def _receive(self) -> dict[str, Any]:
        pipe = self._process.stdout
        assert pipe is not None
        line = pipe.readline()
        if not line:
            raise self._ended()
        values: dict[str, Any] = json.loads(line)
        return values

    def _ended(self) -> JobError:
        code = self._process.wait()
        return JobError(
            f"the training process ended with code {code}; if it was {-9}, the system ended it, "
            "most likely because memory ran out: choose a smaller model or batch",
            code="worker-ended",
            exit_code=code,
        )
