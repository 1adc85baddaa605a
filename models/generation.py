"""Generating text, one token at a time.

    prompt ─ prefill, in chunks ─► cache ─► logits ─► choose ─► token ─┐
                                     ▲                                 │
                                     └───────── one forward pass ◄─────┘

`generate` is a Python generator: the caller takes a token, shows it, and asks for the next or not.
Stopping is not asking.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from models.cache import KVCache
from models.decoder import Decoder
from models.errors import ConfigError, ContextError, WeightError
from models.interventions import Interventions
from models.sampling import SamplingConfig, choose, filtered_scores
from models.trace import Edit, Trace

Finish = Literal["stop", "length", "context"]
# Tokens a forward pass: others get their turn between two chunks. Measured with SmolLM2-135M,
# float32, one CPU thread: 1 token takes 0.08 s, 64 take 0.29 s, 256 take 0.81 s. So a stream beside
# a long prompt waits for about four of its tokens, and the prompt takes 1.4 times as long.
PREFILL_CHUNK = 64


@dataclass(frozen=True)
class Alternative:
    """A token that could have come instead, with the model's probability for it."""

    id: int
    probability: float


@dataclass(frozen=True)
class Token:
    """One generated token.

    Args:
        id: Its id.
        probability: The model's own probability for it: softmax of the logits as they came, before
            penalty, temperature and filters.
        drawn_probability: Its probability after them, under which it was drawn; 1 when greedy.
        rank: How many tokens had a higher logit; 0 is the model's first choice.
        alternatives: The most probable tokens, best first, this one possibly among them.
        entropy_nats: Of the model's own distribution, -sum p ln p: 0 when it is sure, ln V when all
            tokens are equally probable.
        kept: The most probable tokens after penalty, temperature and filters, with the
            probabilities under which one was drawn; when greedy, this one alone.
        n_kept: How many tokens the filters left.
        finish: None while it goes on. `stop`: this is one of the stop ids; `length`: as many tokens
            as asked for; `context`: the model cannot read further.
    """

    id: int
    probability: float
    drawn_probability: float
    rank: int
    alternatives: tuple[Alternative, ...]
    entropy_nats: float
    kept: tuple[Alternative, ...]
    n_kept: int
    finish: Finish | None


def generate(
    model: Decoder,
    ids: Sequence[int],
    *,
    max_new_tokens: int = 64,
    sampling: SamplingConfig | None = None,
    stop_ids: Collection[int] = (),
    generator: torch.Generator | None = None,
    cache: KVCache | None = None,
    n_alternatives: int = 10,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    changes: Interventions | None = None,
) -> Generator[Token, None, None]:
    """Continue a text.

    Args:
        model: Any decoder.
        ids: The prompt.
        max_new_tokens: At most so many.
        sampling: How to choose; None draws from the model's own distribution.
        stop_ids: Any of these ends the text; it is yielded as the last token.
        generator: Source of every draw; None, unless greedy, makes one with seed 0.
        cache: One row that already holds the beginning of `ids` (as many as its length); None
            makes one of the right size.
        n_alternatives: How many alternatives each token carries.
        turn: Entered for each forward pass; where several share a device, it makes them wait.
        changes: What to change in every pass, at all of its tokens: heads scaled, vectors added.

    Yields:
        Tokens, the last one with `finish` set.

    Raises:
        ConfigError: An empty prompt, no tokens asked for, or a cache that is not of this prompt.
        ContextError: The prompt leaves the model no room.
        WeightError: The model's scores are no numbers.
    """
    sampling = sampling or SamplingConfig()
    ids = [int(token) for token in ids]
    room = _room(model, ids, max_new_tokens, cache)
    if cache is None:
        cache = KVCache(model.config, 1, len(ids) + room, dtype=model.dtype, device=model.device)
    elif not int(cache.lengths[0]) < len(ids):
        raise ConfigError(
            f"the cache holds {int(cache.lengths[0])} tokens, the prompt has {len(ids)}; "
            "truncate the cache to a beginning of the prompt"
        )
    if generator is None:
        generator = torch.Generator(model.device).manual_seed(0)
    seen = torch.zeros(model.config.vocab_size, dtype=torch.bool, device=model.device)
    seen[torch.tensor(ids, device=model.device)] = True
    edits = None if changes is None else changes.edits()
    logits = _prefill(model, ids, cache, turn, edits)
    for count in range(1, room + 1):
        token = _pick(logits, seen, sampling, generator, n_alternatives)
        finish = _finish(token.id, stop_ids, count, room, max_new_tokens)
        yield replace(token, finish=finish)
        if finish is not None:
            return
        seen[token.id] = True
        logits = _forward(model, [token.id], cache, turn, edits)


def _room(model: Decoder, ids: Sequence[int], max_new_tokens: int, cache: KVCache | None) -> int:
    """Tokens that can be added: as many as asked for, or up to the end of context or cache."""
    if len(ids) == 0:
        raise ConfigError("the prompt is empty; give at least one token", code="text-empty")
    if max_new_tokens < 1:
        raise ConfigError(f"max_new_tokens={max_new_tokens} must be at least 1")
    vocab_size = model.config.vocab_size
    if not 0 <= min(ids) <= max(ids) < vocab_size:
        raise ConfigError(
            f"the prompt has ids from {min(ids)} to {max(ids)}, the model knows 0 to "
            f"{vocab_size - 1}; encode it with the model's own tokenizer"
        )
    limit = model.config.context_length
    if cache is not None:
        if len(cache.lengths) != 1:
            raise ConfigError(
                f"the cache has {len(cache.lengths)} rows, one text is generated; make one of 1 row"
            )
        limit = min(limit, cache.capacity)
    if len(ids) >= limit:
        raise ContextError(
            f"the prompt has {len(ids)} tokens, the model reads at most {limit} with the answer; "
            "shorten it or choose a model with more context",
            code="context-too-long",
            asked=len(ids),
            limit=limit,
        )
    return min(max_new_tokens, limit - len(ids))


def _finish(
    id_: int, stop_ids: Collection[int], count: int, room: int, max_new_tokens: int
) -> Finish | None:
    if id_ in stop_ids:
        return "stop"
    if count < room:
        return None
    return "length" if room == max_new_tokens else "context"


def _prefill(
    model: Decoder,
    ids: Sequence[int],
    cache: KVCache,
    turn: Callable[[], AbstractContextManager[object]],
    edits: Mapping[str, Edit] | None,
) -> Tensor:
    """Read what the cache does not hold yet; the logits after the last token."""
    start = int(cache.lengths[0])
    for at in range(start, len(ids), PREFILL_CHUNK):
        logits = _forward(model, ids[at : at + PREFILL_CHUNK], cache, turn, edits)
    return logits


def _forward(
    model: Decoder,
    ids: Sequence[int],
    cache: KVCache,
    turn: Callable[[], AbstractContextManager[object]],
    edits: Mapping[str, Edit] | None,
) -> Tensor:
    trace = None if edits is None else Trace(edits=edits)
    with turn(), torch.inference_mode():
        row = torch.tensor([list(ids)], device=model.device)
        return model(row, cache=cache, last_only=True, trace=trace)[0, -1]


def _pick(
    logits: Tensor,
    seen: Tensor,
    sampling: SamplingConfig,
    generator: torch.Generator,
    n_alternatives: int,
) -> Token:
    if not bool(logits.max().isfinite()):  # NaN is the highest of all, so it is found too
        raise WeightError(
            f"the scores of the next token have {float(logits.max())} as their highest, so none "
            "can be chosen; the weights are damaged, or too large for their number format: try "
            "float32",
            code="logits-unusable",
            found=str(float(logits.max())),
        )
    with torch.inference_mode():
        scores = filtered_scores(logits, seen.nonzero()[:, 0], sampling)
        id_ = choose(scores, sampling.greedy, generator)
        probabilities = logits.float().softmax(dim=-1)
        kept: tuple[Alternative, ...] = (Alternative(id_, 1.0),)
        if not sampling.greedy:
            drawn = scores.softmax(dim=-1)
            kept = _best(drawn, n_alternatives)
        return Token(
            id=id_,
            probability=float(probabilities[id_]),
            drawn_probability=1.0 if sampling.greedy else float(drawn[id_]),
            rank=int((logits > logits[id_]).sum()),
            alternatives=_best(probabilities, n_alternatives),
            entropy_nats=float(torch.special.entr(probabilities).sum()),
            kept=kept,
            n_kept=1 if sampling.greedy else int(scores.isfinite().sum()),
            finish=None,
        )


def _best(probabilities: Tensor, n: int) -> tuple[Alternative, ...]:
    """The most probable tokens, best first; none that is impossible."""
    best = probabilities.topk(min(n, probabilities.numel()))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return tuple(Alternative(id_, chance) for id_, chance in pairs if chance > 0)
