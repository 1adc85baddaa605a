"""What each head of a model does, measured: one number a kind, for every head.

With A the weights of a head, and the first token left out as a query (it can only see itself):

    previous     mean of A[t, t-1]
    first        mean of A[t, 0]: a sink
    self         mean of A[t, t]
    local        mean weight on the last 8 tokens, itself counted, of queries that see more
    duplicate    mean weight on earlier copies of the same token, where there is one
    induction    mean weight on what followed earlier copies (Olsson et al. 2022, arXiv 2209.11895)
    entropy      mean of -sum A ln A, in nats
    distance     mean of sum A[t, s] (t - s), in tokens

`compute_head_scores` measures two of them on random tokens that come twice, the published way; here
all are measured on one text, or on one such random row, so that they can be compared.

Rollout follows Abnar & Zuidema 2020 (arXiv 2005.00928, section 3): the mean of the heads, mixed
half and half with the identity for the residual stream, multiplied over the layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.attention_maps import AttentionMaps, check_index, compute_patterns, read_ids
from explorer.errors import Stopped
from explorer.head_scores import draw_tokens

if TYPE_CHECKING:
    from models.loading import LoadedModel

KINDS = (
    "previous",
    "first",
    "induction",
    "duplicate",
    "self",
    "local",
    "entropy",
    "distance",
)
SHARES = KINDS[:6]  # those are shares from 0 to 1; entropy is in nats, distance in tokens
LOCAL_TOKENS = 8
HALF_TOKENS = 64

Grid = NDArray[np.float64]
# For each share the cells of a map that count, and how many queries have such cells.
Places = Mapping[str, tuple[NDArray[np.int64], int]]


@dataclass(frozen=True, kw_only=True)
class HeadKinds:
    """All kinds of all heads, on one row of tokens.

    Args:
        scores: Kind -> (layers, heads); NaN where the text has nothing to measure it on.
        n_measured: Layers that have been measured.
    """

    scores: Mapping[str, Grid]
    n_measured: int


@dataclass(frozen=True, kw_only=True)
class RankedHead:
    """A head and its score.

    Args:
        layer: From 0.
        head: From 0.
        score: Of the kind asked for.
    """

    layer: int
    head: int
    score: float


@dataclass(frozen=True, kw_only=True)
class PairVectors:
    """The vectors behind one weight.

    Args:
        query: (d,), after rotation.
        key: (d,), after rotation.
        value: (e,).
        products: (d,), query times key; their sum times `scale` is the score before any soft cap.
        scale: What the sum is multiplied by, 1 / sqrt(d) in most models.
        score: The product.
        capped: The same after the soft cap, where the model has one.
        weight: After softmax over all keys of the query.
    """

    query: NDArray[np.float32]
    key: NDArray[np.float32]
    value: NDArray[np.float32]
    products: NDArray[np.float32]
    scale: float
    score: float
    capped: float
    weight: float


def compute_head_kinds(maps: AttentionMaps) -> HeadKinds:
    """Measure every kind in every head, on the text that was read.

    Args:
        maps: Queries and keys of the text.
    """
    *_, found = stream_head_kinds(maps)
    return found


def stream_head_kinds(
    maps: AttentionMaps, *, stopped: Callable[[], bool] = lambda: False
) -> Iterator[HeadKinds]:
    """The same, layer by layer.

    Args:
        maps: Queries and keys of the text.
        stopped: Asked before each layer.

    Yields:
        What is known after each layer; NaN where not measured yet.

    Raises:
        Stopped: `stopped()` became true.
    """
    scores = {kind: np.full((maps.n_layers, maps.n_heads), np.nan) for kind in KINDS}
    places, distances = _find_places(maps.ids), _find_distances(len(maps.ids))
    for layer in range(maps.n_layers):
        if stopped():
            raise Stopped("the measurement was stopped")
        patterns = compute_patterns(maps, layer)
        for kind, found in _score_layer(patterns, places, distances).items():
            scores[kind][layer] = found
        yield HeadKinds(scores=scores, n_measured=layer + 1)


def compute_random_maps(
    loaded: LoadedModel,
    *,
    half_tokens: int = HALF_TOKENS,
    seed: int = 0,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AttentionMaps:
    """Let a model read different random tokens that come twice in a row.

    Args:
        loaded: Any decoder.
        half_tokens: Tokens before the repetition; fewer where the context is short.
        seed: Of the tokens.
        turn: Entered for the forward pass.
    """
    import torch

    tokenizer, config = loaded.tokenizer, loaded.config
    front = [tokenizer.bos_id] if tokenizer.adds_bos and tokenizer.bos_id is not None else []
    known = min(tokenizer.vocab_size, config.vocab_size)
    half_tokens = min(half_tokens, (config.context_length - len(front)) // 2, known)
    half = draw_tokens(known, half_tokens, torch.Generator().manual_seed(seed)).tolist()
    return read_ids(loaded, [*front, *half, *half], turn=turn)


def score_kinds(patterns: NDArray[np.float32], ids: tuple[int, ...]) -> dict[str, Grid]:
    """Score the heads of one layer.

    Args:
        patterns: (H, T, T), rows sum to 1.
        ids: The T tokens.
    """
    return _score_layer(patterns, _find_places(ids), _find_distances(len(ids)))


def _score_layer(
    patterns: NDArray[np.float32], places: Places, distances: NDArray[np.float32]
) -> dict[str, Grid]:
    heads = [_score_head(pattern, places, distances) for pattern in patterns]
    return {kind: np.array([head[kind] for head in heads]) for kind in KINDS}


def _find_distances(n: int) -> NDArray[np.float32]:
    return np.abs(_lag_of(n)).astype(np.float32)


def _lag_of(n: int) -> NDArray[np.int64]:
    """How far back each key is, (queries, keys)."""
    return np.arange(n)[:, None] - np.arange(n)[None]


def _find_places(ids: tuple[int, ...]) -> Places:
    """For each share the cells of the map that count, and how many queries have such cells."""
    n, token = len(ids), np.asarray(ids)
    lag = _lag_of(n)
    earlier = lag > 0
    same = (token[:, None] == token[None]) & earlier
    follows = np.zeros((n, n), dtype=bool)
    follows[:, 1:] = same[:, :-1]
    follows &= earlier  # what followed is the token itself where two copies stand side by side
    near = (lag >= 0) & (lag < LOCAL_TOKENS)
    near[:LOCAL_TOKENS] = False  # those see no more than that: their share would be 1 by itself
    masks = {
        "previous": lag == 1,
        "first": earlier & (np.arange(n) == 0),
        "induction": follows,
        "duplicate": same,
        "self": (lag == 0) & (np.arange(n) > 0),
        "local": near,
    }
    return {kind: (np.flatnonzero(m), int(m.any(axis=1).sum())) for kind, m in masks.items()}


def _score_head(
    pattern: NDArray[np.float32],
    places: Places,
    distances: NDArray[np.float32],
) -> dict[str, float]:
    """One head at a time: its map stays in the cache of the processor."""
    flat, inside = pattern.ravel(), pattern[1:]
    found = {
        kind: float(flat[cells].sum(dtype=np.float64)) / n_queries if n_queries else np.nan
        for kind, (cells, n_queries) in places.items()
    }
    surprise = -np.log(inside, out=np.zeros_like(inside), where=inside > 0)
    for kind, of_cell in (("entropy", surprise), ("distance", distances[1:])):
        rows = np.einsum("ts,ts->t", inside, of_cell)
        found[kind] = float(rows.mean(dtype=np.float64)) if len(rows) else np.nan
    return found


def rank_heads(scores: Grid, most: int = 12, least: float | None = None) -> tuple[RankedHead, ...]:
    """The heads with the highest scores, highest first; those without a score are left out.

    Args:
        scores: (layers, heads).
        most: At most so many.
        least: Lower scores are left out; None leaves none out.
    """
    order = np.argsort(-np.nan_to_num(scores, nan=-np.inf), axis=None, kind="stable")
    found = []
    for place in order[:most]:
        layer, head = divmod(int(place), scores.shape[1])
        score = float(scores[layer, head])
        if not np.isnan(score) and (least is None or score >= least):
            found.append(RankedHead(layer=layer, head=head, score=score))
    return tuple(found)


def compute_rollout(maps: AttentionMaps, layer: int) -> NDArray[np.float32]:
    """How much of each token flows into each token by the end of a layer, (T, T); rows sum to 1.

    Args:
        maps: Queries and keys of the text.
        layer: The last layer that counts.

    Raises:
        ConfigError: The model has no such layer.
    """
    check_index("layer", layer, maps.n_layers)
    flow = np.eye(len(maps.ids), dtype=np.float32)
    for i in range(layer + 1):
        mean = compute_patterns(maps, i).mean(axis=0)
        flow = 0.5 * (mean @ flow + flow)
    return flow


def compute_pair(maps: AttentionMaps, layer: int, head: int, query: int, key: int) -> PairVectors:
    """The vectors of a query token and a key token in one head.

    Raises:
        ConfigError: No such layer, head or token.
    """
    check_index("layer", layer, maps.n_layers)
    check_index("head", head, maps.n_heads)
    check_index("token", query, len(maps.ids))
    check_index("token", key, len(maps.ids))
    shared = head // (maps.n_heads // maps.n_kv_heads)
    q, k = maps.queries[layer][head, query], maps.keys[layer][shared, key]
    products = q * k
    scale, cap = maps.attention.score_scale, maps.attention.score_cap
    score = float(products.sum() * scale)
    return PairVectors(
        query=q,
        key=k,
        value=maps.values[layer][shared, key],
        products=products,
        scale=scale,
        score=score,
        capped=score if cap is None else float(cap * np.tanh(score / cap)),
        weight=float(compute_patterns(maps, layer)[head, query, key]),
    )
