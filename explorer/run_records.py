"""What a page is told about runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from explorer.jobs.run_states import RunState, find_state
from explorer.training.best_step import find_best
from explorer.training.events import Evaluated, Failed, Sampled, Saved, Scored, Started
from explorer.training.history import RunHistory, choose_points
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder

# Points of one answer of the polled route: with six columns about 15 KB.
MOST_POINTS = 300
NEWEST_SAMPLES = 3
FIRST_SAMPLES = 12  # for a page that has none yet

# Their loss is one number a row: e to it is no perplexity.
PER_ROW = ("classification", "preference")


@dataclass(frozen=True, kw_only=True)
class PrepareStep:
    """How far making a run is.

    Args:
        what: The tokenizer is made, the text is cut, or the run is there.
        done: Share of that, 0 to 1.
        run_id: With `ready`, its id.
    """

    what: Literal["tokenizer", "tokens", "ready"]
    done: float = 0.0
    run_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class TextFile:
    """A text that was uploaded.

    Args:
        name: Of the file.
        n_characters: How long it is.
    """

    name: str
    n_characters: int


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of the list of runs.

    Args:
        id: Its id, which is also the secret of its link.
        name: As its owner calls it.
        state: See `explorer.jobs.run_states`.
        step: Steps taken.
        n_steps: Steps planned.
        created_at: Seconds since 1970.
        training_loss: Newest, in nats; None before the first evaluation.
        validation_loss: Newest.
        text_name: What it learns from.
        n_parameters: Numbers that are trained.
        place: In the queue, 0 is next; None where it does not wait.
        checkpoints: Steps that can be opened.
        objective: What it learns.
        base: What the store calls the model it begins from; empty where it begins from nothing.
        best_step: Step of the lowest held-out loss so far.
        best_loss: How low it was.
    """

    id: str
    name: str
    state: RunState
    step: int
    n_steps: int
    created_at: float
    training_loss: float | None
    validation_loss: float | None
    text_name: str
    n_parameters: int
    place: int | None
    checkpoints: tuple[int, ...]
    objective: str = "pretrain"
    base: str = ""
    best_step: int | None = None
    best_loss: float | None = None

    @property
    def told_loss(self) -> float | None:
        """The held-out loss of its line: of a fine-tuning the lowest, else the newest."""
        return self.best_loss if self.base else self.validation_loss

    @property
    def offered_step(self) -> int | None:
        """The checkpoint to look at; None without one.

        Of a fine-tuning, which soon learns its examples by heart, that of the lowest held-out loss
        where it is kept; else the newest.
        """
        if self.base and self.best_step in self.checkpoints:
            return self.best_step
        return self.checkpoints[-1] if self.checkpoints else None


@dataclass(frozen=True, kw_only=True, eq=False)
class RunView:
    """A whole run, for drawing.

    Args:
        summary: Its line in the list.
        config: Everything that decides it.
        steps: One entry a step here and in the next five.
        tokens: Tokens read.
        losses: In nats.
        learning_rates: Of each step.
        gradient_norms: Before clipping.
        durations_s: Of each step.
        evaluated: Evaluations.
        samples: What it wrote.
        scores: What else was measured.
        saved: Its checkpoints.
        started: The newest beginning; None before it.
        failed: How it failed, if it did.
        exit_code: How its process ended, where that is known and it did not finish.
        seconds_left: To its last step; None when unknown.
        tokens_per_s: Of the newest steps.
        mfu: Share of what the machine could compute.
        lost_steps: Steps that had to be computed again.
    """

    summary: RunSummary
    config: RunConfig
    steps: np.ndarray
    tokens: np.ndarray
    losses: np.ndarray
    learning_rates: np.ndarray
    gradient_norms: np.ndarray
    durations_s: np.ndarray
    evaluated: tuple[Evaluated, ...]
    samples: tuple[Sampled, ...]
    scores: tuple[Scored, ...]
    saved: tuple[Saved, ...]
    started: Started | None
    failed: Failed | None
    exit_code: int | None
    seconds_left: float | None
    tokens_per_s: float | None
    mfu: float | None
    lost_steps: int


def make_summary(
    run: RunFolder,
    about: Mapping[str, Any],
    config: RunConfig,
    history: RunHistory,
    place: int | None,
) -> RunSummary:
    """The line of a run in the list.

    Args:
        run: Its files.
        about: What the page keeps about it; values that were edited by hand are left out.
        config: Everything that decides it.
        history: Its events.
        place: In the queue; None where it does not wait.
    """
    with history.lock:
        evaluated = history.evaluated[-1] if history.evaluated else None
        turns, step = list(history.turns), history.step
        best = find_best(history.evaluated)
    return RunSummary(
        id=run.id,
        name=str(about.get("name", config.name)),
        state=find_state(run, turns, queued=place is not None),
        step=step,
        n_steps=config.n_steps,
        created_at=_read_instant(about.get("created_at")),
        training_loss=evaluated.training_loss if evaluated else None,
        validation_loss=evaluated.validation_loss if evaluated else None,
        text_name=config.data.text_name,
        n_parameters=config.n_parameters,
        place=place,
        checkpoints=run.checkpoint_steps(),
        objective=config.objective,
        base="" if config.tuning is None else config.tuning.base,
        best_step=best.step,
        best_loss=best.loss if best.step is not None else None,
    )


def make_broken_summary(run: RunFolder) -> RunSummary:
    """The line of a folder whose files were edited into no run: enough to delete it by."""
    return RunSummary(
        id=run.id,
        name=run.title,
        state="broken",
        step=0,
        n_steps=0,
        created_at=run.path.stat().st_mtime if run.path.exists() else 0.0,
        training_loss=None,
        validation_loss=None,
        text_name="",
        n_parameters=0,
        place=None,
        checkpoints=(),
    )


def _read_instant(value: object) -> float:
    usable = isinstance(value, int | float) and math.isfinite(value)
    return float(value) if usable else 0.0  # type: ignore[arg-type]


def make_view(
    summary: RunSummary, config: RunConfig, history: RunHistory, exit_code: int | None
) -> RunView:
    """Copy a history, which goes on, into a view, which does not."""
    with history.lock:
        events = history.steps
        last = history.last_turn
        return RunView(
            summary=summary,
            config=config,
            steps=np.array([e.step for e in events], dtype=np.int64),
            tokens=np.array([e.tokens for e in events], dtype=np.int64),
            losses=np.array([e.loss for e in events], dtype=np.float64),
            learning_rates=np.array([e.learning_rate for e in events], dtype=np.float64),
            gradient_norms=np.array([e.gradient_norm for e in events], dtype=np.float64),
            durations_s=np.array([e.duration_s for e in events], dtype=np.float64),
            evaluated=tuple(history.evaluated),
            samples=tuple(history.samples),
            scores=tuple(history.scores),
            saved=tuple(history.saved),
            started=history.started,
            failed=last if isinstance(last, Failed) else None,
            exit_code=exit_code,
            seconds_left=history.compute_seconds_left(),
            tokens_per_s=history.compute_tokens_per_s(),
            mfu=history.compute_mfu(),
            lost_steps=history.lost_steps,
        )


def make_progress(
    summary: RunSummary, history: RunHistory, since: int, n_starts: int
) -> dict[str, Any]:
    """What a page that watches needs next, as JSON values; below 20 KB.

    Args:
        summary: The run's line.
        history: Its events.
        since: Step events that the page has.
        n_starts: Beginnings that the page knows; another number tells it to begin anew, since the
            steps after a checkpoint were lost and computed again.
    """
    with history.lock:
        reset = n_starts != history.n_starts or since > len(history.steps)
        first = 0 if reset else max(0, since)
        new = history.steps[first:]
        chosen = [new[i] for i in choose_points([e.loss for e in new], MOST_POINTS)]
        last = history.last_turn
        return {
            "state": summary.state,
            "step": summary.step,
            "n_steps": summary.n_steps,
            "place": summary.place,
            "per_token": summary.objective not in PER_ROW,
            "writes": summary.objective != "classification",
            "checkpoints": list(summary.checkpoints),
            "offered": summary.offered_step,
            "validation": None if summary.told_loss is None else _short(summary.told_loss),
            "reset": reset,
            "n_starts": history.n_starts,
            "have": len(history.steps),
            "points": {
                "steps": [e.step for e in chosen],
                "tokens": [e.tokens for e in chosen],
                "losses": [_short(e.loss) for e in chosen],
                "learning_rates": [_short(e.learning_rate) for e in chosen],
                "gradient_norms": [_short(e.gradient_norm) for e in chosen],
            },
            "evaluated": _thin_evaluations(history.evaluated),
            "scores": [[e.step, e.name, _short(e.value)] for e in history.scores[-MOST_POINTS:]],
            "samples": [
                {
                    "step": e.step,
                    "prompt": e.prompt,
                    "text": e.text,
                    "copied": [[c.start, c.end, c.source_line] for c in e.copied],
                    "searched": e.searched,
                }
                for e in history.samples[-(FIRST_SAMPLES if reset else NEWEST_SAMPLES) :]
            ],
            "seconds_left": history.compute_seconds_left(),
            "tokens_per_s": history.compute_tokens_per_s(),
            "mfu": history.compute_mfu(),
            "lost_steps": history.lost_steps,
            "failed": [last.code, last.message, last.step, last.tensor]
            if isinstance(last, Failed)
            else None,
        }


def _thin_evaluations(evaluated: list[Evaluated]) -> list[list[float | None]]:
    places = choose_points([e.validation_loss for e in evaluated], MOST_POINTS // 3)
    return [
        [e.step, e.tokens, _short(e.training_loss), _short(e.validation_loss)]
        for e in (evaluated[i] for i in places)
    ]


def _short(number: float) -> float | None:
    """Six digits are more than a screen shows; JSON has no NaN."""
    return float(f"{number:.6g}") if np.isfinite(number) else None
