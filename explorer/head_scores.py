"""Which heads look one token back, and which look behind an earlier copy of their token.

The model reads rows of random tokens, each row twice in a sequence, so that nothing but the
repetition can be foreseen:

    r0 r1 r2 ... rn-1 r0 r1 r2 ... rn-1
    |   first half   |   second half  |

    previous-token score = mean attention of a token to the one before it
    induction score      = mean attention of a token of the second half to the token that
                           followed it in the first half: r1 -> r2

Both are between 0 and 1 (*In-context Learning and Induction Heads*, Olsson et al. 2022, arXiv
2209.11895, sections on prefix matching; the two kinds of head work together in *A Mathematical
Framework for Transformer Circuits*, Elhage et al. 2021). Within a row no token stands twice, so
that there is one token that followed it. Where the model expects a token in front of each text, it
gets it, and it counts for neither score.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError, TokenizerError

if TYPE_CHECKING:
    import torch

    from models.loading import LoadedModel

Scores = NDArray[np.float64]

HALF_TOKENS = 64  # a sequence of 129 tokens fits into every model of this project
N_SEQUENCES = 8


@dataclass(frozen=True, kw_only=True)
class HeadPlace:
    """Where a head is, and its score.

    Attributes:
        layer: From 0.
        head: From 0.
        score: 0 to 1.
    """

    layer: int
    head: int
    score: float


@dataclass(frozen=True, kw_only=True)
class HeadScores:
    """Scores of all heads of a model.

    Attributes:
        previous_token: (L, H), mean attention to the token before.
        induction: (L, H), mean attention to what followed the same token in the first half.
        half_tokens: Random tokens a row.
        n_sequences: Sequences averaged over.
        seed: Of the random tokens.
    """

    previous_token: Scores
    induction: Scores
    half_tokens: int
    n_sequences: int
    seed: int

    @property
    def best_previous_token(self) -> HeadPlace:
        """The head with the highest previous-token score."""
        return _find_best(self.previous_token)

    @property
    def best_induction(self) -> HeadPlace:
        """The head with the highest induction score."""
        return _find_best(self.induction)


def compute_head_scores(
    loaded: LoadedModel,
    *,
    half_tokens: int = HALF_TOKENS,
    n_sequences: int = N_SEQUENCES,
    seed: int = 0,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> HeadScores:
    """Let a model read repeated random tokens and score each head.

    Args:
        loaded: Any decoder.
        half_tokens: Random tokens a row; a sequence is twice as long.
        n_sequences: Sequences to average over, read one after the other.
        seed: Of the random tokens.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: Fewer than two tokens or no sequence, or the sequence does not fit the model.
    """
    import torch

    from models.trace import Trace

    front = _front_ids(loaded)
    _check_sizes(loaded, half_tokens, n_sequences, len(front))
    generator = torch.Generator().manual_seed(seed)
    shape = (loaded.config.n_layers, loaded.config.attention.n_heads)
    previous, induction = np.zeros(shape), np.zeros(shape)
    for _ in range(n_sequences):
        half = draw_tokens(loaded.config.vocab_size, half_tokens, generator)
        row = torch.cat([torch.tensor(front, dtype=torch.long), half, half])[None]
        trace = Trace(record=("blocks.*.attn.pattern",))
        with turn(), torch.inference_mode():
            loaded.model(row.to(loaded.model.device), trace=trace, last_only=True)
        for layer in range(shape[0]):
            pattern = trace[f"blocks.{layer}.attn.pattern"][0].double().cpu().numpy()
            random_part = pattern[:, len(front) :, len(front) :]
            previous[layer] += score_previous_token(random_part) / n_sequences
            induction[layer] += score_induction(random_part) / n_sequences
    return HeadScores(
        previous_token=previous,
        induction=induction,
        half_tokens=half_tokens,
        n_sequences=n_sequences,
        seed=seed,
    )


def draw_tokens(vocab_size: int, n: int, generator: torch.Generator) -> torch.Tensor:
    """`n` different token ids, in random order."""
    import torch

    return torch.randperm(vocab_size, generator=generator)[:n]


def score_previous_token(pattern: Scores) -> Scores:
    """Mean attention to the token before, for each head; (H, T, T) -> (H,)."""
    return np.diagonal(pattern, offset=-1, axis1=1, axis2=2).mean(axis=1)


def score_induction(pattern: Scores) -> Scores:
    """Mean attention of the second half to what followed in the first; (H, 2n, 2n) -> (H,)."""
    n = pattern.shape[1] // 2
    # the diagonal also holds the last token of the first half, which has no earlier copy
    return np.diagonal(pattern, offset=1 - n, axis1=1, axis2=2)[:, 1:].mean(axis=1)


def _front_ids(loaded: LoadedModel) -> list[int]:
    """The token that the model was trained to see before each text, if there is one."""
    tokenizer = loaded.tokenizer_or_error
    if isinstance(tokenizer, TokenizerError) or not tokenizer.adds_bos or tokenizer.bos_id is None:
        return []
    return [tokenizer.bos_id]


def _check_sizes(loaded: LoadedModel, half_tokens: int, n_sequences: int, n_front: int) -> None:
    most = min((loaded.config.context_length - n_front) // 2, loaded.config.vocab_size)
    if not 2 <= half_tokens <= most:
        raise ConfigError(
            f"half_tokens={half_tokens} does not fit; this model reads 2 to {most} tokens twice"
        )
    if n_sequences < 1:
        raise ConfigError(f"n_sequences={n_sequences}; give at least 1")


def _find_best(scores: Scores) -> HeadPlace:
    layer, head = np.unravel_index(int(scores.argmax()), scores.shape)
    return HeadPlace(layer=int(layer), head=int(head), score=float(scores[layer, head]))
