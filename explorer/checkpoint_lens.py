"""The logit lens over the checkpoints of a run: how an answer grows in while a model learns.

    step      0      200     400    ...        every checkpoint reads the same text; one row each
    layer   embed  0  1 ... L                  stream ─► final norm ─► output matrix ─► softmax

As `explorer/logit_lens.py` for one model (*interpreting GPT: the logit lens*, nostalgebraist 2020).
All checkpoints of a run share its tokenizer. Unless a word is asked for, the answer of the newest
one is followed through all of them, so the newest is looked at first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.errors import ConfigError
from explorer.lens_targets import Target, find_target, own_answer, place_in
from explorer.logit_lens import LogitLens, compute_logit_lens
from explorer.perplexity import read_text_ids
from explorer.tokens import labels_of_units, units_of

if TYPE_CHECKING:
    from explorer.runs import Runs
    from models.loading import LoadedModel

MOST_CHECKPOINTS = 16
MOST_TOKENS = 128
N_TOP = 10

# Step of a checkpoint -> the model as it was then, for as long as it is used.
OpenCheckpoint = Callable[[int], AbstractContextManager["LoadedModel"]]


@dataclass(frozen=True, kw_only=True, eq=False)
class CheckpointLens:
    """What every layer of every checkpoint would say after one token.

    Args:
        ids: The text, as far as the checkpoints can read it.
        labels: One for each token.
        position: The token that is looked at, among these.
        n_left_out: Tokens of the text that were not read.
        target: The token that is followed.
        steps: All checkpoints that are read, oldest first.
        lenses: Those that have been read, oldest first.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    position: int
    n_left_out: int
    target: Target
    steps: tuple[int, ...]
    lenses: tuple[LogitLens, ...]

    @property
    def stages(self) -> tuple[str, ...]:
        """First "embed", then the number of each layer."""
        return self.lenses[0].stages


def choose_steps(steps: Sequence[int], most: int = MOST_CHECKPOINTS) -> tuple[int, ...]:
    """The first, the last, and others at even distances, at most so many.

    Args:
        steps: Of all checkpoints, ascending.
        most: At least 2.
    """
    if len(steps) <= most:
        return tuple(steps)
    places = np.linspace(0, len(steps) - 1, most).round().astype(int)
    return tuple(steps[place] for place in places.tolist())


def stream_checkpoint_lens(
    open_checkpoint: OpenCheckpoint,
    steps: Sequence[int],
    text: str,
    *,
    position: int = -1,
    target: str = "",
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[CheckpointLens]:
    """Read a text with one checkpoint after the other.

    Args:
        open_checkpoint: Gives the model of a step.
        steps: Which checkpoints, ascending; more than `MOST_CHECKPOINTS` are thinned.
        text: What they read: so much of it up to the token as they can read at once, for runs
            often read few tokens.
        position: The token that is looked at; negative counts from the end. The tokenizer of a
            run may make fewer tokens of the text: beyond them it is the last.
        target: A word to follow; "" follows what the newest checkpoint puts first there.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Yields:
        The lens, one checkpoint longer each time.

    Raises:
        ConfigError: No text, or no checkpoint.
    """
    if not steps:
        raise ConfigError(
            "this run has no checkpoint yet; wait for its first one", code="run-checkpoints-none"
        )
    chosen = choose_steps(steps)
    with open_checkpoint(chosen[-1]) as newest:
        every = read_text_ids(newest, text) if text else []
        ids, position = _cut(newest, every, position)
        last = compute_logit_lens(newest, ids, position=position, n_top=1, turn=turn)
        own = int(last.top_ids[-1, 0])
        followed = find_target(newest, target) if target else own_answer(newest, own)
        labels = labels_of_units(units_of(newest.tokenizer, ids))
    lenses: list[LogitLens] = []
    for step in chosen:
        with open_checkpoint(step) as loaded:
            lenses.append(
                compute_logit_lens(
                    loaded, ids, position=position, n_top=N_TOP, follow=followed.id, turn=turn
                )
            )
        yield CheckpointLens(
            ids=tuple(ids),
            labels=labels,
            position=position,
            n_left_out=len(every) - len(ids),
            target=followed,
            steps=chosen,
            lenses=tuple(lenses),
        )


def _cut(loaded: LoadedModel, every: list[int], position: int) -> tuple[list[int], int]:
    """What can be read at once of a text around a place, and the place in it."""
    if not every:
        raise ConfigError("there is no text; type some", code="text-empty")
    place = place_in(min(max(position, -len(every)), len(every) - 1), len(every))
    room = min(loaded.config.context_length, MOST_TOKENS)
    start = max(0, place + 1 - room)
    return every[start : start + room], place - start


def compute_checkpoint_lens(
    runs: Runs, run_id: str, text: str, *, position: int = -1, target: str = ""
) -> CheckpointLens:
    """The whole lens of a run.

    Args:
        runs: The runs of this machine.
        run_id: Which of them.
        text: What its checkpoints read.
        position: As for `stream_checkpoint_lens`.
        target: As there.

    Raises:
        JobError: There is no such run.
        ConfigError: As there.
    """
    from models import load_model

    def open_checkpoint(step: int) -> AbstractContextManager[LoadedModel]:
        return nullcontext(load_model(runs.checkpoint(run_id, step)))

    steps = runs.view(run_id).summary.checkpoints
    *_, last = stream_checkpoint_lens(
        open_checkpoint, steps, text, position=position, target=target
    )
    return last
