"""How well a model foresees a text: perplexity, and what a smaller number format costs of it.

    loss of token t  =  -ln p(token t | tokens before it)            in nats
    perplexity       =  exp(mean loss)       between how many equal choices the model hesitates

(Jelinek et al. 1977; the exponential of the cross-entropy.) A text longer than the window is read
in windows that overlap by half, so that every token but those of the first window has at least
half a window before it, and each token counts once:

    window 1   |seen and counted        |
    window 2               |only seen   |counted     |
    window 3                            |only seen   |counted     |
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import ConfigError

if TYPE_CHECKING:
    from models.loading import LoadedModel

WINDOW_TOKENS = 512


@dataclass(frozen=True)
class Perplexity:
    """How well a model foresees a text.

    Args:
        mean_nats: Mean loss of the counted tokens.
        n_tokens: Tokens counted: all but the first.
    """

    mean_nats: float
    n_tokens: int

    @property
    def perplexity(self) -> float:
        """exp(mean loss); 1 is certainty, the size of the vocabulary is blind guessing."""
        return math.exp(self.mean_nats)


@dataclass(frozen=True)
class ReadingStep:
    """How far a text has been read.

    Args:
        so_far: Of the tokens read until now.
        total_tokens: Tokens that will be counted in all.
    """

    so_far: Perplexity
    total_tokens: int


def compute_perplexity(
    loaded: LoadedModel,
    text: str,
    *,
    most_tokens: int | None = None,
    window_tokens: int = WINDOW_TOKENS,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Perplexity:
    """Read a text and measure how well each token was foreseen.

    Args:
        loaded: Any model.
        text: What to read; a model that was trained with a token in front of each text gets it.
        most_tokens: Longer texts are cut; None reads all.
        window_tokens: Tokens that are read at once; at most the model's context.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: The text has fewer than two tokens, so that none is foreseen.
        TokenizerError: The model has no tokenizer.
    """
    steps = stream_perplexity(
        loaded, text, most_tokens=most_tokens, window_tokens=window_tokens, turn=turn
    )
    *_, last = steps
    return last.so_far


def stream_perplexity(
    loaded: LoadedModel,
    text: str,
    *,
    most_tokens: int | None = None,
    window_tokens: int = WINDOW_TOKENS,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[ReadingStep]:
    """As `compute_perplexity`, with a step after each window; the last one has the result.

    Args:
        loaded: As there.
        text: As there.
        most_tokens: As there.
        window_tokens: As there.
        turn: As there.

    Raises:
        ConfigError: As there.
        TokenizerError: As there.
    """
    import torch
    from torch.nn import functional

    ids = read_text_ids(loaded, text)[:most_tokens]
    if len(ids) < 2:
        raise ConfigError(
            f"the text has {len(ids)} tokens, and the first one is foreseen by nobody; type more",
            code="text-too-short",
            found=len(ids),
        )
    total_nats = 0.0
    for start, end, first in windows(len(ids), min(window_tokens, loaded.config.context_length)):
        row = torch.tensor([ids[start:end]], device=loaded.model.device)
        with turn(), torch.inference_mode():
            logits = loaded.model(row)[0, first - 1 - start : -1].float()
            nats = functional.cross_entropy(logits, row[0, first - start :], reduction="sum")
        total_nats += float(nats)
        yield ReadingStep(Perplexity(total_nats / (end - 1), end - 1), len(ids) - 1)


def read_text_ids(loaded: LoadedModel, text: str) -> list[int]:
    """All ids of a text, more of them than the context too: it is read in windows.

    Args:
        loaded: Any model; one that was trained with a token in front of each text gets it.
        text: What to read.

    Raises:
        TokenizerError: The model has no tokenizer.
    """
    tokenizer = loaded.tokenizer
    ids = tokenizer.encode(text)
    if tokenizer.adds_bos and tokenizer.bos_id is not None:
        ids = [tokenizer.bos_id, *ids]
    return ids


def windows(n_tokens: int, width: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, first counted token) of each window over a text of at least two tokens."""
    step = max(1, width // 2)
    start, counted = 0, 1
    while counted < n_tokens:
        end = min(start + width, n_tokens)
        yield start, end, counted
        counted = end
        start = max(start, end - (width - step))
