"""Softmax in one pass over tiles of keys: what FlashAttention keeps, and what it never writes.

For one query, over tiles of keys S_1, S_2, ... with values V_1, V_2, ...:

    m'  = max(m, max S_i)                      running maximum
    l'  = l exp(m - m') + sum exp(S_i - m')    running sum
    o'  = o exp(m - m') + exp(S_i - m') V_i    running output
    at the end: o / l

Milakov & Gimelshein 2018 (arXiv 1805.02867) for the running softmax; Dao et al. 2022 (arXiv
2205.14135), algorithm 1, and the counts of section 3.2: the plain way writes and reads T x T scores
and weights, the tiled one only queries, keys, values and outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError, Stopped

if TYPE_CHECKING:
    import torch

FLOAT_BYTES = 4
MEASURED_TOKENS = (128, 256, 512, 1_024, 2_048)
MEASURED_HEADS, MEASURED_WIDTH = 4, 64


@dataclass(frozen=True, kw_only=True)
class TileStep:
    """The state after one tile.

    Args:
        first: Its first key.
        last: The key after its last one.
        scores: Of its keys, minus infinity where masked.
        maximum: m'.
        rescale: exp(m - m'), what the state before was multiplied by.
        exponentials: exp(S_i - m').
        total: l'.
        output: o', not yet divided.
    """

    first: int
    last: int
    scores: NDArray[np.float64]
    maximum: float
    rescale: float
    exponentials: NDArray[np.float64]
    total: float
    output: NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class TiledSoftmax:
    """All tiles of one query.

    Args:
        steps: One a tile.
        output: o / l.
        plain: The same by the plain softmax over all keys at once.
    """

    steps: tuple[TileStep, ...]
    output: NDArray[np.float64]
    plain: NDArray[np.float64]

    @property
    def largest_difference(self) -> float:
        """Between the two ways."""
        return float(np.abs(self.output - self.plain).max())


@dataclass(frozen=True, kw_only=True)
class MemoryTraffic:
    """Numbers of one head, forward, by count.

    Args:
        plain_stored: Bytes that the plain way keeps: scores and weights.
        tiled_stored: Bytes that the tiled way keeps: a maximum and a sum for each query.
        plain_moved: Bytes read and written, plain.
        tiled_moved: Bytes read and written, with tiles of `tile` queries: keys and values once for
            each tile of queries.
    """

    plain_stored: int
    tiled_stored: int
    plain_moved: int
    tiled_moved: int


@dataclass(frozen=True, kw_only=True)
class PeakMemory:
    """Largest memory in use during one pass, beyond inputs, measured.

    Args:
        n_tokens: Length of the text.
        eager_bytes: With scores and weights written out.
        fused_bytes: With PyTorch's fused kernel.
    """

    n_tokens: int
    eager_bytes: int
    fused_bytes: int


def compute_tiled_softmax(
    scores: Sequence[float] | NDArray[np.floating],
    values: NDArray[np.floating],
    tile: int,
) -> TiledSoftmax:
    """Walk over the keys of one query, tile by tile, in float64.

    Args:
        scores: (S,), minus infinity where masked; at least one is not.
        values: (S, e).
        tile: Keys a tile.

    Raises:
        ConfigError: A tile of no keys, or nothing that may be attended to.
    """
    s, v = np.asarray(scores, dtype=np.float64), np.asarray(values, dtype=np.float64)
    if tile < 1:
        raise ConfigError(f"a tile of {tile} keys is empty; choose 1 or more")
    if not np.isfinite(s).any():
        raise ConfigError(
            "this query may attend to nothing, so its softmax has no value; allow one key",
            code="lab-flash-blind",
        )
    steps = tuple(_walk(s, v, tile))
    weights = np.exp(s - s.max())
    return TiledSoftmax(
        steps=steps,
        output=steps[-1].output / steps[-1].total,
        plain=(weights / weights.sum()) @ v,
    )


def _walk(
    scores: NDArray[np.float64], values: NDArray[np.float64], tile: int
) -> Iterator[TileStep]:
    maximum, total, output = -np.inf, 0.0, np.zeros(values.shape[1])
    for first in range(0, len(scores), tile):
        last = min(first + tile, len(scores))
        part = scores[first:last]
        largest = max(maximum, float(part.max()))
        # before the first key that may be seen there is nothing to rescale
        rescale = 0.0 if np.isneginf(maximum) else float(np.exp(maximum - largest))
        powers = np.zeros_like(part) if np.isneginf(largest) else np.exp(part - largest)
        total = total * rescale + float(powers.sum())
        output = output * rescale + powers @ values[first:last]
        maximum = largest
        yield TileStep(
            first=first,
            last=last,
            scores=part,
            maximum=maximum,
            rescale=rescale,
            exponentials=powers,
            total=total,
            output=output,
        )


def tiled_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, tile: int, causal: bool = True
) -> torch.Tensor:
    """The same for all queries at once, in PyTorch: (..., T, d) -> (..., T, e).

    Args:
        q: Queries.
        k: Keys.
        v: Values.
        tile: Keys a tile.
        causal: Whether a query sees only keys up to itself.
    """
    import torch

    n_queries, n_keys = q.shape[-2], k.shape[-2]
    maximum = q.new_full((*q.shape[:-1], 1), float("-inf"))
    total, output = torch.zeros_like(maximum), q.new_zeros(*q.shape[:-1], v.shape[-1])
    queries = torch.arange(n_queries, device=q.device)[:, None]
    for first in range(0, n_keys, tile):
        part = slice(first, first + tile)
        scores = q @ k[..., part, :].transpose(-2, -1) / q.shape[-1] ** 0.5
        if causal:
            keys = torch.arange(n_keys, device=q.device)[None, part]
            scores = scores.masked_fill(keys > queries, float("-inf"))
        largest = torch.maximum(maximum, scores.amax(-1, keepdim=True))
        rescale = (maximum - largest).exp()
        powers = (scores - largest).exp()
        total = total * rescale + powers.sum(-1, keepdim=True)
        output = output * rescale + powers @ v[..., part, :]
        maximum = largest
    return output / total


def count_traffic(n_tokens: int, d_head: int, tile: int) -> MemoryTraffic:
    """Bytes of one head, forward, float32 (arXiv 2205.14135, section 3.2).

    Plain: read q and k, write scores; read scores, write weights; read weights and v, write out.
    Tiled: for each tile of queries read it, all keys and all values, and write its output.

    Args:
        n_tokens: T.
        d_head: Width of a head.
        tile: Queries that fit into fast memory at once.
    """
    of_vectors, of_scores = n_tokens * d_head * FLOAT_BYTES, n_tokens**2 * FLOAT_BYTES
    n_tiles = -(-n_tokens // tile)
    return MemoryTraffic(
        plain_stored=2 * of_scores,
        tiled_stored=2 * n_tokens * FLOAT_BYTES,
        plain_moved=4 * of_vectors + 4 * of_scores,
        tiled_moved=2 * of_vectors + 2 * n_tiles * of_vectors,
    )


def measure_peaks(
    lengths: Sequence[int] = MEASURED_TOKENS,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[PeakMemory, ...]]:
    """Measure both ways on this machine, length by length; yields what there is so far.

    Args:
        lengths: Tokens.
        turn: Entered for each measurement.
        stopped: Asked before each length.

    Raises:
        Stopped: `stopped()` became true.
    """
    found: list[PeakMemory] = []
    for n_tokens in lengths:
        if stopped():
            raise Stopped("the measurement was stopped")
        with turn():
            eager, fused = (measure_peak_bytes(n_tokens, way) for way in (_eager, _fused))
        found.append(PeakMemory(n_tokens=n_tokens, eager_bytes=eager, fused_bytes=fused))
        yield tuple(found)


def measure_peak_bytes(n_tokens: int, way: Callable[..., torch.Tensor]) -> int:
    """Largest sum of live allocations during one call, as PyTorch's profiler counts them."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    generator = torch.Generator().manual_seed(0)
    shape = (1, MEASURED_HEADS, n_tokens, MEASURED_WIDTH)
    q, k, v = (torch.randn(shape, generator=generator) for _ in range(3))
    counted = profile(activities=[ProfilerActivity.CPU], profile_memory=True)
    with torch.inference_mode(), counted as seen:
        way(q, k, v)
    events = [e for e in seen.profiler.kineto_results.events() if e.name() == "[memory]"]
    events.sort(key=lambda event: event.start_ns())
    changes = [event.nbytes() for event in events]
    return int(np.cumsum([0, *changes]).max())


def _eager(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    future = scores.new_ones(scores.shape[-2:]).bool().triu(1)
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ v


def _fused(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    from torch.nn import functional

    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
