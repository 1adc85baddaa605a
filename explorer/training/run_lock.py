"""One process at a time in a run folder.

`lock.json` says who: machine, process id, when that process started (ids are used again), and its
modification time is a heartbeat. On the same machine a lock is alive when its process is; for a
folder on a shared disk, which another machine writes, when its heart has beaten lately.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from models.errors import JobError

HEARTBEAT_S = 2.0
# A machine may stand still for a while (swap, suspended laptop); thirty missed beats are death.
SILENCE_S = 60.0


@dataclass(frozen=True)
class LockHolder:
    """The process that a lock names.

    Args:
        host: Its machine.
        pid: Its id there.
        started_at: When it started, seconds since 1970.
        beaten_at: Its last heartbeat, seconds since 1970.
    """

    host: str
    pid: int
    started_at: float
    beaten_at: float

    @property
    def alive(self) -> bool:
        """Whether it still works."""
        if self.host != socket.gethostname():
            return time.time() - self.beaten_at < SILENCE_S
        return is_process(self.pid, self.started_at)


def is_process(pid: int, started_at: float) -> bool:
    """Whether this very process runs; a zombie does not."""
    try:
        process = psutil.Process(pid)
        same = abs(process.create_time() - started_at) < 1.0  # clock ticks are rounded
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):  # no process has such an id
        return False


def read_lock(path: Path) -> LockHolder | None:
    """Who holds a lock; None where there is none, or one that nobody can have written."""
    try:
        values = json.loads(path.read_bytes())
        beaten_at = path.stat().st_mtime
        return LockHolder(
            str(values["host"]), int(values["pid"]), float(values["started_at"]), beaten_at
        )
    except (OSError, ValueError, TypeError, KeyError, OverflowError):
        return None


@contextmanager
def hold_lock(path: Path) -> Iterator[None]:
    """Work alone.

    Args:
        path: `lock.json` of the run.

    Raises:
        JobError: Another process works there.
        OSError: The file cannot be written.
    """
    mine = _take(path)
    stop = threading.Event()
    beat = threading.Thread(target=_beat, args=(path, stop), daemon=True)
    beat.start()
    try:
        yield
    finally:
        stop.set()
        beat.join()
        if _content(path) == mine:
            path.unlink(missing_ok=True)


def _take(path: Path) -> bytes:
    process = psutil.Process()
    values = {
        "host": socket.gethostname(),
        "pid": process.pid,
        "started_at": process.create_time(),
    }
    content = json.dumps(values).encode()
    for _ in range(3):
        if _create(path, content):
            return content
        holder = read_lock(path)
        if holder is not None and holder.alive:
            raise JobError(
                f"process {holder.pid} on {holder.host} works on this run already; wait for it, or "
                "stop it first",
                code="run-locked",
                pid=holder.pid,
                host=holder.host,
            )
        _remove_stale(path)
    raise JobError(
        f"{path.name} cannot be taken, since several processes try at once; try again",
        code="run-locked",
        pid="?",
        host="?",
    )


def _create(path: Path, content: bytes) -> bool:
    """Make the lock, complete from its first moment on; False where one is there already."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    beside.write_bytes(content)
    try:
        os.link(beside, path)  # fails where the name exists, which a rename would not
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _remove_stale(path: Path) -> None:
    """Take a dead process's lock away; what was meanwhile put there by a living one goes back."""
    aside = path.with_name(f".{path.name}.stale.{os.getpid()}.{threading.get_ident()}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return
    holder = read_lock(aside)
    if holder is not None and holder.alive:
        with suppress(FileExistsError):
            os.link(aside, path)
    aside.unlink(missing_ok=True)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _beat(path: Path, stop: threading.Event) -> None:
    while not stop.wait(HEARTBEAT_S):
        with suppress(OSError):  # deleted with its run: the loop notices by itself
            os.utime(path)
