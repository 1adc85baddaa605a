"""Many single draws of the next token, against the counts that the probabilities promise.

    expected count of a token  =  n p         spread (one standard deviation)  =  √(n p (1 - p))

Each draw is one `choose` of `models/sampling.py`, one after the other from one generator, as
`generate` would take them; drawing all at once uses the generator in another way and gives other
tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from explorer.next_token import NextLogits, SamplingSettings, compute_steps, make_sampling

MOST_DRAWS = 10_000


@dataclass(frozen=True, kw_only=True)
class DrawnToken:
    """How often one token came.

    Args:
        id: Its id.
        label: Its text.
        probability: That it is drawn, 0 to 1.
        expected: n times its probability.
        deviation: One standard deviation of its count.
        count: How often it was drawn.
    """

    id: int
    label: str
    probability: float
    expected: float
    deviation: float
    count: int


@dataclass(frozen=True, kw_only=True)
class Draws:
    """Many draws of one token.

    Args:
        tokens: Those that are likeliest or were drawn, likeliest first.
        n_draws: Draws made.
        n_different: Different tokens among them.
        rest_count: Draws of tokens that are not in `tokens`.
        rest_expected: What was expected of them.
        seed: Of the generator.
    """

    tokens: tuple[DrawnToken, ...]
    n_draws: int
    n_different: int
    rest_count: int
    rest_expected: float
    seed: int


def draw_many(
    given: NextLogits,
    settings: SamplingSettings | None = None,
    *,
    n_draws: int = 1_000,
    most: int = 20,
    label: Callable[[int], str] | None = None,
) -> Draws:
    """Draw the next token many times, each time from the same probabilities.

    Args:
        given: Logits and the text before them.
        settings: The dials and the seed; None changes nothing.
        n_draws: How often.
        most: Tokens to list.
        label: Text of a token that is not among the candidates; None writes its id.

    Raises:
        ConfigError: Impossible settings, or a number of draws out of range.
    """
    import torch

    from models.sampling import choose

    settings = settings or SamplingSettings()
    if not 1 <= n_draws <= MOST_DRAWS:
        raise ConfigError(
            f"n_draws={n_draws} is out of range; choose 1 to {MOST_DRAWS}",
            code="draws-range",
            found=n_draws,
            most=MOST_DRAWS,
        )
    config = make_sampling(settings)
    scores = compute_steps(given.logits, given.ids, config)["pick"]
    generator = torch.Generator().manual_seed(settings.seed)
    drawn = [choose(scores, config.greedy, generator) for _ in range(n_draws)]
    counts = np.bincount(drawn, minlength=len(given.logits))
    tokens = _list_tokens(given, scores.double().softmax(dim=-1).numpy(), counts, most, label)
    return Draws(
        tokens=tokens,
        n_draws=n_draws,
        n_different=int((counts > 0).sum()),
        rest_count=n_draws - sum(token.count for token in tokens),
        rest_expected=max(0.0, n_draws - sum(token.expected for token in tokens)),
        seed=settings.seed,
    )


def _list_tokens(
    given: NextLogits,
    probabilities: NDArray[np.float64],
    counts: NDArray[np.int64],
    most: int,
    label: Callable[[int], str] | None,
) -> tuple[DrawnToken, ...]:
    # likeliest first; of equals those that came
    order = np.lexsort((-counts, -probabilities))[:most].tolist()
    known = dict(zip(given.candidate_ids, given.candidate_labels, strict=True))
    name = label or "<#{}>".format
    n_draws = int(counts.sum())
    return tuple(
        DrawnToken(
            id=i,
            label=known[i] if i in known else name(i),
            probability=float(probabilities[i]),
            expected=n_draws * float(probabilities[i]),
            deviation=math.sqrt(n_draws * probabilities[i] * (1 - probabilities[i])),
            count=int(counts[i]),
        )
        for i in order
        if probabilities[i] > 0
    )
