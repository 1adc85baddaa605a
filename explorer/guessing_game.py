"""Guess the next token: rounds of a game against the model, from any text.

At a place in a text the reader sees what comes before and four possible tokens: the one that came,
and the three others that the model finds likeliest. The model has guessed right where the token
that came is its first choice. A reader who knows the world beats a small model at names and plot;
the model is hard to beat at grammar.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import ConfigError
from explorer.prompts import read_prompt
from explorer.tokens import label_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

MOST_TOKENS = 256
N_OPTIONS = 4
LEAST_CONTEXT = 4  # tokens before the first question


@dataclass(frozen=True)
class Option:
    """One possible token.

    Args:
        label: Its text.
        probability: The model's own for it, 0 to 1.
        came: Whether it is the token of the text.
    """

    label: str
    probability: float
    came: bool


@dataclass(frozen=True)
class Round:
    """One question.

    Args:
        context: The text before the token.
        options: In a random order.
        model_choice: Text of the token that the model finds likeliest of all.
        model_right: Whether that is the one that came.
    """

    context: str
    options: tuple[Option, ...]
    model_choice: str
    model_right: bool


def make_rounds(
    loaded: LoadedModel,
    text: str,
    *,
    n_rounds: int = 8,
    seed: int = 0,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> tuple[Round, ...]:
    """Make questions from a text, in the order in which they stand there.

    Args:
        loaded: Any model with its tokenizer.
        text: Longer texts are cut.
        n_rounds: How many questions, as far as the text has places for them.
        seed: Of places and of the order of options.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: The text is too short for a question.
        TokenizerError: The model has no tokenizer.
    """
    import torch

    ids = read_prompt(loaded, text[: 8 * MOST_TOKENS])[:MOST_TOKENS]
    places = _places(loaded, ids)
    if not places:
        raise ConfigError(
            f"the text has {len(ids)} tokens, too few for a question; type a few sentences",
            code="game-text-short",
            found=len(ids),
        )
    dice = random.Random(seed)
    chosen = sorted(dice.sample(places, min(n_rounds, len(places))))
    with turn(), torch.inference_mode():
        row = torch.tensor([ids], device=loaded.model.device)
        said = loaded.model(row)[0, [place - 1 for place in chosen]].float().softmax(dim=-1).cpu()
    rounds = zip(chosen, said, strict=True)
    return tuple(_make_round(loaded, ids, place, p, dice) for place, p in rounds)


def _places(loaded: LoadedModel, ids: Sequence[int]) -> list[int]:
    """Tokens that begin a word, where the text has such; else all beyond the first few."""
    every = range(LEAST_CONTEXT, len(ids))
    words = [i for i in every if loaded.tokenizer.token_bytes(ids[i])[:1] == b" "]
    words = [i for i in words if loaded.tokenizer.token_bytes(ids[i])[1:].isalpha()]
    return words or [i for i in every if loaded.tokenizer.token_bytes(ids[i]).strip()]


def _make_round(
    loaded: LoadedModel, ids: Sequence[int], place: int, p: object, dice: random.Random
) -> Round:
    import torch

    assert isinstance(p, torch.Tensor)
    came = ids[place]
    best = p.topk(min(N_OPTIONS + 1, p.numel())).indices.tolist()
    others = [token for token in best if token != came][: N_OPTIONS - 1]
    options = [
        Option(label_of(loaded.tokenizer, token), float(p[token]), token == came)
        for token in (came, *others)
    ]
    dice.shuffle(options)
    return Round(
        context=loaded.tokenizer.decode(list(ids[:place])),
        options=tuple(options),
        model_choice=label_of(loaded.tokenizer, best[0]),
        model_right=best[0] == came,
    )
