"""The logit lens: what the model would say if it stopped after each layer.

    stream after layer l ─► final norm ─► output matrix ─► softmax

The stream is read as if the layers above were not there (*interpreting GPT: the logit lens*,
nostalgebraist 2020). The last row is the model's own answer, to the last bit the same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.errors import ConfigError

if TYPE_CHECKING:
    from models.loading import LoadedModel


@dataclass(frozen=True, kw_only=True, eq=False)
class LogitLens:
    """What each layer would say at one position.

    Args:
        stages: "embed", then the number of each layer.
        position: The token after which the next one is foreseen.
        top_ids: (stages, k), the likeliest next tokens, best first.
        top_tokens: Their texts.
        top_probabilities: (stages, k).
        entropies_nats: (stages,), of the whole distribution.
        answer_ranks: (stages,), place of the followed token; 0 is first.
        answer_probabilities: (stages,), of that token.
    """

    stages: tuple[str, ...]
    position: int
    top_ids: np.ndarray
    top_tokens: tuple[tuple[str, ...], ...]
    top_probabilities: np.ndarray
    entropies_nats: np.ndarray
    answer_ranks: np.ndarray
    answer_probabilities: np.ndarray


def compute_logit_lens(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    position: int = -1,
    n_top: int = 3,
    follow: int | None = None,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> LogitLens:
    """Read the stream after every layer as a distribution over the next token.

    Args:
        loaded: Any decoder with its tokenizer.
        ids: The text.
        position: Which token; negative counts from the end.
        n_top: Likeliest tokens to give.
        follow: Token whose place and probability are given; None is what the last stage puts first.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: There is no such position.
        ContextError: The text is too long for the model.
    """
    import torch

    from models.trace import Trace

    if not -len(ids) <= position < len(ids):
        raise ConfigError(f"position={position} is not in a text of {len(ids)} tokens")
    position %= len(ids)
    model, n_layers = loaded.model, loaded.config.n_layers
    names = ["blocks.0.resid_pre", *(f"blocks.{i}.resid_post" for i in range(n_layers))]
    trace = Trace(record=tuple(names))
    with turn(), torch.inference_mode():
        model(torch.tensor([list(ids)], device=model.device), trace=trace, last_only=True)
        streams = torch.cat([trace[name][:, position : position + 1] for name in names])
        logits = model.unembed(streams)[:, 0].float()
    log_probabilities = torch.log_softmax(logits, dim=-1)
    best = log_probabilities.topk(min(n_top, logits.shape[-1]), dim=-1)
    answer = int(logits[-1].argmax()) if follow is None else follow
    decode = loaded.tokenizer.decode
    return LogitLens(
        stages=("embed", *map(str, range(n_layers))),
        position=position,
        top_ids=best.indices.cpu().numpy(),
        top_tokens=tuple(tuple(decode([i]) for i in row) for row in best.indices.tolist()),
        top_probabilities=best.values.exp().cpu().numpy(),
        entropies_nats=-(log_probabilities.exp() * log_probabilities).sum(-1).cpu().numpy(),
        answer_ranks=(logits > logits[:, answer : answer + 1]).sum(-1).cpu().numpy(),
        answer_probabilities=log_probabilities[:, answer].exp().cpu().numpy(),
    )
