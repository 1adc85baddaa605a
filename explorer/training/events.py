"""What happens in a run: frozen events, one JSON object a line in `events.jsonl`.

    Started ─► Step ... Evaluated ... Sampled ... Saved ─► Finished
                                                       └─► Failed

A run that is resumed after a crash writes another `Started`, whose `step` is that of the checkpoint
it went on from. What stood in the file after that step was lost and is computed again, so a reader
drops it (`read_events` in `explorer/training/event_log.py` does).

Losses are means over tokens in nats; a number that is not finite is None and is never drawn as 0.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

StopReason = Literal["done", "stopped", "kept", "patience"]
MOST_COUNT = 2**53  # what JavaScript reads exactly


@dataclass(frozen=True, kw_only=True)
class Event:
    """One thing that happened.

    Args:
        step: Optimiser steps taken when it happened; 0 is before the first.
        at: Seconds since 1970.
    """

    step: int
    at: float


@dataclass(frozen=True, kw_only=True)
class Started(Event):
    """The loop begins, or goes on from a checkpoint.

    Args:
        n_steps: Steps planned.
        n_parameters: Numbers that are trained; a tied head counts once.
        n_training_tokens: Tokens of the training part.
        n_validation_tokens: Tokens of the held-out part.
        tokens_per_step: Tokens that one optimiser step reads.
        steps_per_epoch: Steps that read the training part once.
        flops_per_token: Of forward and backward pass together.
        peak_flops_per_s: What this machine reaches in a matrix product; measured at start.
        device: `cpu`, `cuda` or `mps`, with its name.
        n_processes: Processes that share each batch.
        lost_steps: Steps that an earlier process had taken after the checkpoint.
        damaged: Names of checkpoints that could not be read and were passed over.
    """

    n_steps: int
    n_parameters: int
    n_training_tokens: int
    n_validation_tokens: int
    tokens_per_step: int
    steps_per_epoch: int
    flops_per_token: float
    peak_flops_per_s: float
    device: str
    n_processes: int = 1
    lost_steps: int = 0
    damaged: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Step(Event):
    """One optimiser step.

    Args:
        epoch: Passes over the training part, as a fraction.
        tokens: Tokens read since the beginning of the run.
        loss: Mean over the tokens of this step, before its update.
        learning_rate: Of this step.
        gradient_norm: Of all gradients together, before clipping.
        duration_s: Wall time of the step, without evaluation, samples and saving.
    """

    epoch: float
    tokens: int
    loss: float
    learning_rate: float
    gradient_norm: float
    duration_s: float


@dataclass(frozen=True, kw_only=True)
class Evaluated(Event):
    """Losses with dropout off.

    Args:
        tokens: Tokens read since the beginning of the run.
        training_loss: On some of the training part.
        validation_loss: On the held-out part.
        duration_s: What it took.
    """

    tokens: int
    training_loss: float
    validation_loss: float
    duration_s: float


@dataclass(frozen=True, kw_only=True)
class Scored(Event):
    """A score on the held-out part, with dropout off.

    Args:
        name: As the objective calls it: `accuracy`, `margin`.
        value: Mean over its rows.
    """

    name: str
    value: float


@dataclass(frozen=True, kw_only=True)
class CopiedSpan:
    """A piece of a sample that stands in the training text word for word.

    Args:
        start: First character in the sample's text.
        end: One past its last.
        source_line: Line of the training text where it stands, from 1.
    """

    start: int
    end: int
    source_line: int


@dataclass(frozen=True, kw_only=True)
class Sampled(Event):
    """What the model writes at this point.

    Args:
        prompt: The text that it went on from.
        text: What it wrote.
        copied: Pieces of it that were copied from the training text.
        searched: Whether they were looked for; in very long texts they are not.
    """

    prompt: str
    text: str
    copied: tuple[CopiedSpan, ...] = ()
    searched: bool = True


@dataclass(frozen=True, kw_only=True)
class Saved(Event):
    """A checkpoint is complete on the disk.

    Args:
        folder: Its name inside the run folder.
        n_bytes: Size of all its files.
        duration_s: What it took.
    """

    folder: str
    n_bytes: int
    duration_s: float


@dataclass(frozen=True, kw_only=True)
class Paused(Event):
    """The run waits; a checkpoint of this step was saved."""


@dataclass(frozen=True, kw_only=True)
class Resumed(Event):
    """The same process goes on after a pause."""


@dataclass(frozen=True, kw_only=True)
class Finished(Event):
    """The run has ended as it should.

    Args:
        reason: All steps done; stopped by request; stopped by request with a last checkpoint; the
            held-out loss did not fall any more.
    """

    reason: StopReason


@dataclass(frozen=True, kw_only=True)
class Failed(Event):
    """The run has ended as it should not; the last checkpoint is good.

    Args:
        code: Key of the sentence for the page.
        message: The same in English: what was asked, what was found, what to do.
        tensor: Name of the tensor that is not finite, or empty.
        last_good: Name of the newest checkpoint, or empty.
    """

    code: str
    message: str
    tensor: str = ""
    last_good: str = ""


AnyEvent = (
    Started | Step | Evaluated | Scored | Sampled | Saved | Paused | Resumed | Finished | Failed
)
KINDS: Mapping[str, type[Event]] = {kind.__name__.lower(): kind for kind in get_args(AnyEvent)}


def event_to_json(event: Event) -> dict[str, Any]:
    """An event as plain JSON values, with its `kind`."""
    return {"kind": type(event).__name__.lower(), **_plain(dataclasses.asdict(event))}


def event_from_json(values: Mapping[str, Any]) -> Event:
    """The event that `event_to_json` wrote.

    Raises:
        ValueError: Not one of ours.
    """
    content = dict(values)
    name = content.pop("kind", "")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"no event of kind {name!r} is known")
    event: Event = _read_fields(kind, content)
    return event


def _read_fields(kind: type, values: Mapping[str, Any]) -> Any:
    """A dataclass of numbers and texts; a file that was edited by hand may hold anything."""
    types = {field.name: str(field.type) for field in dataclasses.fields(kind)}
    if unknown := sorted(values.keys() - types.keys()):
        raise ValueError(f"{kind.__name__} has no {', '.join(unknown)}")
    try:
        return kind(**{name: _read_value(types[name], values[name]) for name in values})
    except TypeError as error:  # one is missing
        raise ValueError(str(error)) from None


def _read_value(type_: str, value: Any) -> Any:
    if type_.startswith("tuple[") and isinstance(value, list):
        if "CopiedSpan" in type_:
            return tuple(_read_fields(CopiedSpan, _require(dict, span)) for span in value)
        return tuple(_require(str, entry) for entry in value)
    if type_ == "float":
        return math.nan if value is None else float(_require(int | float, value))
    if type_ == "int":
        return _require_count(value)
    return _require(bool if type_ == "bool" else str, value)


def _require_count(value: Any) -> int:
    if isinstance(value, bool) or not 0 <= _require(int, value) < MOST_COUNT:
        raise ValueError(f"{value!r} is no count")
    return int(value)


def _require(type_: Any, value: Any) -> Any:
    if not isinstance(value, type_):
        raise ValueError(f"{str(value)[:80]!r} is of another type than {type_}")
    return value


def _plain(value: Any) -> Any:
    """JSON has no NaN: a number that is not finite becomes null."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
