"""How surprised a model is by every token of a text.

    logits x of the step before  ─►  softmax  ─►  pick p(token)  ─►  -ln  ─►  mean over the text
    loss of token t = -ln( e^{x_t} / Σ e^{x_j} ) = ln Σ e^{x_j} - x_t           in nats

The mean is the cross-entropy, e to its power the perplexity. Windows as in
`explorer/perplexity.py`, whose totals these are the parts of. Models with different tokenizers
cannot be compared by nats a token; bits a byte is the same ruler for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from explorer.perplexity import WINDOW_TOKENS, read_text_ids, windows
from explorer.tokens import TokenUnit, label_of, labels_of_units, units_of

if TYPE_CHECKING:
    from models.loading import LoadedModel

MOST_TOKENS = 8_192
N_TOP = 5


@dataclass(frozen=True, kw_only=True, eq=False)
class TokenLosses:
    """The loss of every token of a text but the first.

    Args:
        model_name: Which model.
        ids: The text, (T,).
        labels: One for each token.
        units: The text in units that people see as one character or word.
        n_left_out: Tokens at the end that were not read.
        n_bytes: Bytes of the tokens that were foreseen.
        nats: (T - 1,), loss of the second to the last token.
        logits: (T - 1,), of the token that came.
        log_sums: (T - 1,), ln Σ e^x over all tokens.
        ranks: (T - 1,), place of the token that came; 1 is first.
        top_labels: (T - 1, k), what the model had expected, likeliest first.
        top_logits: (T - 1, k).
        contexts: (T - 1,), how many tokens the model saw before.
    """

    model_name: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    units: tuple[TokenUnit, ...]
    n_left_out: int
    n_bytes: int
    nats: NDArray[np.float32]
    logits: NDArray[np.float32]
    log_sums: NDArray[np.float32]
    ranks: NDArray[np.int64]
    top_labels: tuple[tuple[str, ...], ...]
    top_logits: NDArray[np.float32]
    contexts: NDArray[np.int64]

    @property
    def mean_nats(self) -> float:
        """The cross-entropy of the text."""
        return float(self.nats.astype(np.float64).mean())

    @property
    def perplexity(self) -> float:
        """exp(mean loss); 1 is certainty, the size of the vocabulary blind guessing."""
        return math.exp(self.mean_nats)

    @property
    def bits_per_byte(self) -> float:
        """The whole loss in bits, over the bytes that were foreseen."""
        return float(self.nats.astype(np.float64).sum()) / math.log(2) / max(1, self.n_bytes)

    def probabilities(self) -> NDArray[np.float64]:
        """(T - 1,), of the tokens that came."""
        return np.exp(-self.nats.astype(np.float64))

    def context_curve(self) -> tuple[tuple[int, int, float], ...]:
        """(shortest context, tokens, mean loss) for contexts of 1, 2 to 3, 4 to 7, ... tokens."""
        found = []
        for start in (2**i for i in range(20)):
            inside = (self.contexts >= start) & (self.contexts < 2 * start)
            if inside.any():
                found.append((start, int(inside.sum()), float(self.nats[inside].mean())))
        return tuple(found)

    def worst(self, most: int = 10) -> tuple[int, ...]:
        """Positions in the text where the model was most surprised, worst first."""
        return tuple(int(i) + 1 for i in np.argsort(-self.nats, kind="stable")[:most])


def stream_token_losses(
    loaded: LoadedModel,
    text: str,
    *,
    most_tokens: int = MOST_TOKENS,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[TokenLosses]:
    """Read a text window by window.

    Args:
        loaded: Any model.
        text: What to read.
        most_tokens: Longer texts are cut, and `n_left_out` says by how much.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Yields:
        The losses so far, after each window.

    Raises:
        ConfigError: The text has fewer than two tokens, so that none is foreseen.
        TokenizerError: The model has no tokenizer.
    """
    import torch

    every = read_text_ids(loaded, text) if text else []
    ids = every[:most_tokens]
    if len(ids) < 2:
        raise ConfigError(
            f"the text has {len(ids)} tokens, and the first one is foreseen by nobody; type more",
            code="text-too-short",
            found=len(ids),
        )
    parts: list[_Window] = []
    for start, end, first in windows(len(ids), min(WINDOW_TOKENS, loaded.config.context_length)):
        row = torch.tensor([ids[start:end]], device=loaded.model.device)
        with turn(), torch.inference_mode():
            logits = loaded.model(row)[0, first - 1 - start : -1].float()
            parts.append(_look(loaded, logits, row[0, first - start :], first - start))
        yield _join(loaded, ids[:end], len(every) - end, parts)


def compute_token_losses(loaded: LoadedModel, text: str) -> TokenLosses:
    """As `stream_token_losses`, all at once.

    Args:
        loaded: Any model.
        text: What to read.

    Raises:
        ConfigError: As there.
        TokenizerError: As there.
    """
    *_, last = stream_token_losses(loaded, text)
    return last


@dataclass(frozen=True, kw_only=True, eq=False)
class _Window:
    logits: NDArray[np.float32]
    log_sums: NDArray[np.float32]
    ranks: NDArray[np.int64]
    top_labels: tuple[tuple[str, ...], ...]
    top_logits: NDArray[np.float32]
    contexts: NDArray[np.int64]


def _look(loaded: LoadedModel, logits: object, came: object, first_context: int) -> _Window:
    import torch

    assert isinstance(logits, torch.Tensor)
    assert isinstance(came, torch.Tensor)
    own = logits.gather(1, came[:, None])
    best = logits.topk(min(N_TOP, logits.shape[-1]), dim=-1)
    distinct = set(best.indices.flatten().tolist())
    names = {token: label_of(loaded.tokenizer, token) for token in distinct}
    return _Window(
        logits=own[:, 0].cpu().numpy(),
        log_sums=logits.logsumexp(dim=-1).cpu().numpy(),
        ranks=(logits > own).sum(dim=-1).cpu().numpy() + 1,
        top_labels=tuple(tuple(names[i] for i in row) for row in best.indices.tolist()),
        top_logits=best.values.cpu().numpy(),
        contexts=np.arange(first_context, first_context + len(came)),
    )


def _join(
    loaded: LoadedModel, ids: list[int], n_left_out: int, parts: list[_Window]
) -> TokenLosses:
    units = units_of(loaded.tokenizer, ids)
    logits = np.concatenate([part.logits for part in parts])
    log_sums = np.concatenate([part.log_sums for part in parts])
    return TokenLosses(
        model_name=loaded.info.name,
        ids=tuple(ids),
        labels=labels_of_units(units),
        units=units,
        n_left_out=n_left_out,
        n_bytes=sum(len(loaded.tokenizer.token_bytes(token)) for token in ids[1:]),
        nats=log_sums - logits,
        logits=logits,
        log_sums=log_sums,
        ranks=np.concatenate([part.ranks for part in parts]),
        top_labels=tuple(row for part in parts for row in part.top_labels),
        top_logits=np.concatenate([part.top_logits for part in parts]),
        contexts=np.concatenate([part.contexts for part in parts]),
    )
