"""What state a run is in, from its files alone: whoever looks, after whatever crash, agrees.

┌────────────── lock alive ──────────────┐
prepared ─► queued ─► running ─► pausing ─► paused ─► stopping ─► finished, stopped, failed
└── process gone without a last event ─► interrupted
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Literal

from explorer.training.event_log import EventLog
from explorer.training.events import Event, Failed, Finished, Paused, Resumed, Started
from explorer.training.run_folder import RunFolder
from explorer.training.run_lock import hold_lock, read_lock

RunState = Literal[
    "prepared",
    "queued",
    "running",
    "pausing",
    "paused",
    "stopping",
    "finished",
    "stopped",
    "failed",
    "interrupted",
    "broken",  # its files were edited into no run
]
WORKING: tuple[RunState, ...] = ("running", "pausing", "paused", "stopping")
DECISIVE = (Started, Paused, Resumed, Finished, Failed)


def has_worker(run: RunFolder) -> bool:
    """Whether a process works on it now."""
    holder = read_lock(run.lock_file)
    return holder is not None and holder.alive


def find_state(run: RunFolder, events: Sequence[Event], *, queued: bool) -> RunState:
    """The state of a run.

    Args:
        run: Its files.
        events: What happened.
        queued: Whether it was started and no process has taken it yet.
    """
    last = next((e for e in reversed(events) if isinstance(e, DECISIVE)), None)
    if has_worker(run):
        return _working_state(run, last)
    if queued:
        return "queued"
    if isinstance(last, Finished):
        return "finished" if last.reason == "done" else "stopped"
    if isinstance(last, Failed):
        return "failed"
    return "prepared" if last is None else "interrupted"


def note_not_begun(run: RunFolder, exit_code: int | None) -> None:
    """Write into the events that the process of a run ended before it could begin.

    Args:
        run: Its files.
        exit_code: How the process ended.

    Raises:
        JobError: Another process works on the run.
        OSError: The folder cannot be written to.
    """
    with hold_lock(run.lock_file), EventLog(run.events_file) as log:
        steps = run.checkpoint_steps()
        log.append(
            Failed(
                step=steps[-1] if steps else 0,
                at=time.time(),
                code="run-not-begun",
                message=f"its process ended with code {exit_code} before the first step; start it "
                f"again, and look into {run.log_file.name} of its folder if it does not help",
                last_good=run.checkpoint(steps[-1]).name if steps else "",
            ),
            durable=True,
        )


def _working_state(run: RunFolder, last: Event | None) -> RunState:
    asked = run.asked()
    if asked in ("stop", "keep"):
        return "stopping"
    if isinstance(last, Paused):
        return "paused"
    return "pausing" if asked == "pause" else "running"
