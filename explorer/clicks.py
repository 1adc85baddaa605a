"""Judging by clicks: two answers to one question, of which a person takes the better one.

Two things are made of it. Answers of the same model become preferences to train on. Answers of base
and tuned model, in an order that nobody knows, become a win rate with its interval (Wilson 1927):
who sees the names finds what he expects.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from explorer.datasets.examples import Example
from explorer.tuning_scores import Turn, answer_examples, wilson_interval

if TYPE_CHECKING:
    from explorer.training.tuning_config import TuningConfig
    from models.loading import LoadedModel

Side = Literal["left", "right"]
# Two answers of one model should differ: where they are the same, the second one is drawn again,
# with less care each time.
OWN_TEMPERATURES = (0.9, 1.1, 1.4, 1.8)


@dataclass(frozen=True, kw_only=True)
class AnswerPair:
    """Two answers to one question.

    Args:
        prompt: The question.
        left: An answer.
        right: Another one.
        tuned: Which side the tuned model wrote; None where both are of one model.
    """

    prompt: str
    left: str
    right: str
    tuned: Side | None


@dataclass(frozen=True, kw_only=True)
class WinRate:
    """How often the tuned model was taken.

    Args:
        wins: That often.
        n: Of so many.
        low: Lower end of the 95 % interval of its share.
        high: Its upper end.
    """

    wins: int
    n: int
    low: float
    high: float


def ask_twice(
    loaded: LoadedModel, example: Example, tuning: TuningConfig, seed: int, turn: Turn
) -> AnswerPair:
    """Two answers of one model, drawn with different seeds; the same only where it is very sure.

    Args:
        loaded: Any model.
        example: The question.
        tuning: Says in which template it is asked.
        seed: Of the draws.
        turn: Entered for each pass.
    """

    def draw(place: int, temperature: float) -> str:
        own_seed = seed * (1 + len(OWN_TEMPERATURES)) + place
        return answer_examples(
            loaded, (example,), tuning, temperature=temperature, seed=own_seed, turn=turn
        )[0]

    left = right = draw(0, OWN_TEMPERATURES[0])
    for place, temperature in enumerate(OWN_TEMPERATURES, start=1):
        if right == left:
            right = draw(place, temperature)
    return AnswerPair(prompt=example.prompt.joined, left=left, right=right, tuned=None)


def ask_both(
    base: LoadedModel,
    tuned: LoadedModel,
    example: Example,
    tuning: TuningConfig,
    seed: int,
    turn: Turn,
) -> AnswerPair:
    """An answer of each model, in an order that follows from the seed.

    Args:
        base: The model before.
        tuned: The model after.
        example: The question.
        tuning: Says in which template it is asked.
        seed: Decides the order.
        turn: Entered for each pass.
    """
    import torch

    first = answer_examples(base, (example,), tuning, turn=turn)[0]
    second = answer_examples(tuned, (example,), tuning, turn=turn)[0]
    draw = torch.randint(2, (), generator=torch.Generator().manual_seed(seed))
    is_left = bool(draw)
    left, right = (second, first) if is_left else (first, second)
    return AnswerPair(
        prompt=example.prompt.joined, left=left, right=right, tuned="left" if is_left else "right"
    )


def make_preference(pair: AnswerPair, better: Side) -> str:
    """A click as a row of a data set: one line of JSON."""
    chosen, rejected = (pair.left, pair.right) if better == "left" else (pair.right, pair.left)
    row = {"prompt": pair.prompt, "chosen": chosen, "rejected": rejected}
    return json.dumps(row, ensure_ascii=False)


def count_wins(taken: Sequence[bool]) -> WinRate:
    """The win rate of the tuned model.

    Args:
        taken: For each click, whether its answer was the tuned model's.
    """
    low, high = wilson_interval(sum(taken), len(taken))
    return WinRate(wins=sum(taken), n=len(taken), low=low, high=high)
