"""What happened in a run so far, as columns: read once, then only what is new.

A page that watches asks twice a second; a run of 20,000 steps has megabytes of events. So the file
is read from where the last reading ended, and the numbers are kept as lists.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_right
from collections.abc import Sequence
from pathlib import Path

from explorer.training.event_log import EventTail
from explorer.training.events import (
    Evaluated,
    Event,
    Failed,
    Finished,
    Paused,
    Resumed,
    Sampled,
    Saved,
    Scored,
    Started,
    Step,
)

# Steps that speed and remaining time are taken from: enough to be calm, few enough to follow.
RECENT_STEPS = 50


class RunHistory:
    """The events of one run. Safe to use from any thread.

    Args:
        events_file: `events.jsonl`; it may not be there yet.
    """

    def __init__(self, events_file: Path) -> None:
        self.lock = threading.RLock()
        self._file = events_file
        self._forget()

    def _forget(self) -> None:
        self._tail = EventTail(self._file)
        self.steps: list[Step] = []
        self.evaluated: list[Evaluated] = []
        self.scores: list[Scored] = []
        self.samples: list[Sampled] = []
        self.saved: list[Saved] = []
        self.turns: list[Started | Paused | Resumed | Finished | Failed] = []
        self.n_starts = 0
        self.first_at: float | None = None

    def refresh(self) -> None:
        """Take in what is new; of a file that was cut or replaced by hand, all of it.

        Raises:
            JobError: The file cannot be read.
        """
        with self.lock:
            if self._tail.is_shorter():
                self._forget()
            for event in self._tail.read_new():
                self._take(event)

    @property
    def started(self) -> Started | None:
        """The newest beginning."""
        return next((e for e in reversed(self.turns) if isinstance(e, Started)), None)

    @property
    def last_turn(self) -> Event | None:
        """The newest event that decides about the state."""
        return self.turns[-1] if self.turns else None

    @property
    def step(self) -> int:
        """Optimiser steps taken."""
        if self.steps:
            return self.steps[-1].step
        return self.turns[-1].step if self.turns else 0

    @property
    def lost_steps(self) -> int:
        """Steps that were computed again because a process ended between two checkpoints."""
        return sum(e.lost_steps for e in self.turns if isinstance(e, Started))

    def compute_tokens_per_s(self) -> float | None:
        """Tokens a second of the newest steps themselves."""
        recent = self.steps[-RECENT_STEPS:]
        started = self.started
        duration_s = sum(event.duration_s for event in recent)
        if started is None or duration_s <= 0:
            return None
        return len(recent) * started.tokens_per_step / duration_s

    def compute_mfu(self) -> float | None:
        """Model FLOPs utilisation: what the passes need, over what the machine could do meanwhile.

        Chowdhery et al. 2022 (PaLM, arXiv 2204.02311), section 4.1. None where it would be above
        1: the machine was so busy when it was measured that the measure means nothing.
        """
        started, speed = self.started, self.compute_tokens_per_s()
        if started is None or speed is None:
            return None
        peak = started.peak_flops_per_s * started.n_processes
        share = speed * started.flops_per_token / peak if peak > 0 else math.inf
        return share if share <= 1 else None

    def compute_seconds_left(self) -> float | None:
        """Time to the last step at the pace of the newest, evaluations and checkpoints included.

        The time that a run was paused, or its process not there, is no part of the pace.
        """
        started = self.started
        going_since = max((e.at for e in self.turns if isinstance(e, Started | Resumed)), default=0)
        recent = [e for e in self.steps[-RECENT_STEPS:] if e.at >= going_since]
        if started is None or len(recent) < 2:
            return None
        pace_s = (recent[-1].at - recent[0].at) / (len(recent) - 1)
        return max(0, started.n_steps - recent[-1].step) * pace_s

    def _take(self, event: Event) -> None:
        if isinstance(event, Started):
            self.n_starts += 1
            self.first_at = event.at if self.first_at is None else self.first_at
            for column in (self.steps, self.evaluated, self.scores, self.samples, self.saved):
                _drop_after(column, event.step)
        if isinstance(event, Step):
            self.steps.append(event)
        elif isinstance(event, Evaluated):
            self.evaluated.append(event)
        elif isinstance(event, Scored):
            self.scores.append(event)
        elif isinstance(event, Sampled):
            self.samples.append(event)
        elif isinstance(event, Saved):
            self.saved.append(event)
        elif isinstance(event, Started | Paused | Resumed | Finished | Failed):
            self.turns.append(event)


def _drop_after(
    column: list[Step] | list[Evaluated] | list[Scored] | list[Sampled] | list[Saved], step: int
) -> None:
    steps = [event.step for event in column]
    del column[bisect_right(steps, step) :]


def choose_points(values: Sequence[float], most: int) -> list[int]:
    """Places to draw of a long curve: of each block of neighbours the lowest and the highest.

    Args:
        values: The curve.
        most: Places allowed, at least 2.

    Returns:
        Increasing places, all of them where there are few.
    """
    n_values = len(values)
    if n_values <= most:
        return list(range(n_values))
    size = -(-n_values // (most // 2))
    chosen: list[int] = []
    for start in range(0, n_values, size):
        block = range(start, min(start + size, n_values))
        chosen += sorted({min(block, key=values.__getitem__), max(block, key=values.__getitem__)})
    return chosen
