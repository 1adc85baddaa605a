"""The nine ways, measured on this machine: forward and backward, with their spread.

Each round runs every way once, one after the other, so that a slow moment of the machine touches
all of them; the first round warms up and is not counted, but its outputs are compared. What stands
for a way is the median, and its spread is the range from the first to the third quartile.
"""

from __future__ import annotations

import ast
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from explorer.errors import ConfigError, Stopped

if TYPE_CHECKING:
    import torch

    from explorer.attention_lab.ways import Way

WAY_NAMES = (
    "list",
    "split",
    "fused",
    "einsum",
    "sdpa_causal",
    "sdpa_mask",
    "torch",
    "torch_weights",
    "flex",
)
CLASS_NAMES = (
    "HeadsInAList",
    "SplitHeads",
    "FusedQkv",
    "Einsum",
    "SdpaCausal",
    "SdpaMask",
    "TorchWithoutWeights",
    "TorchWithWeights",
    "Flex",
)
WAYS_FILE = Path(__file__).with_name("ways.py")
MOST_SCORE_BYTES = 300 * 10**6  # of all rows and heads; some ways keep them several times
SCORE_BYTES = 4
SLOW_S = 0.5


@dataclass(frozen=True, kw_only=True)
class WaySettings:
    """Size of the layer and of what it reads.

    Args:
        d_model: Width of the stream.
        n_heads: Heads; must divide the width.
        n_tokens: Length of each row.
        batch: Rows.
        rounds: How often each way is measured.
        seed: Of weights and inputs.
    """

    d_model: int = field(default=192, metadata={"least": 16, "most": 1_024, "step": 16})
    n_heads: int = field(default=6, metadata={"least": 1, "most": 32, "step": 1})
    n_tokens: int = field(default=128, metadata={"least": 2, "most": 1_024, "step": 1})
    batch: int = field(default=4, metadata={"least": 1, "most": 16, "step": 1})
    rounds: int = field(default=5, metadata={"least": 3, "most": 25, "step": 1})
    seed: int = field(default=0, metadata={"least": 0, "most": 99_999, "step": 1})


@dataclass(frozen=True, kw_only=True)
class WayResult:
    """One way, measured.

    Args:
        name: Which.
        n_parameters: That can be trained.
        largest_difference: From the first way, over all outputs.
        forward_s: First quartile, median and third quartile of a forward pass, in seconds.
        backward_s: The same of a backward pass; None where there is none on this device.
    """

    name: str
    n_parameters: int
    largest_difference: float
    forward_s: tuple[float, float, float]
    backward_s: tuple[float, float, float] | None


@dataclass(frozen=True, kw_only=True)
class WaysResult:
    """All ways after some rounds.

    Args:
        ways: One a way, in the order of `WAY_NAMES`; empty before the first round is counted.
        rounds: Rounds that were counted.
        measuring: The way that is measured next, of those that take a while; None after a round.
    """

    ways: tuple[WayResult, ...]
    rounds: int
    measuring: str | None = None


def build_ways(settings: WaySettings) -> dict[str, Way]:
    """All ways, with the same weights.

    Raises:
        ConfigError: The width is no multiple of the number of heads.
    """
    import torch

    from explorer.attention_lab.ways import WAYS

    d, n_heads = settings.d_model, settings.n_heads
    if d % n_heads:
        raise ConfigError(
            f"a width of {d} cannot be cut into {n_heads} heads; choose a number of heads that "
            f"divides it, such as {_closest_divisor(d, n_heads)}",
            code="lab-ways-heads",
            width=d,
            heads=n_heads,
            divisor=_closest_divisor(d, n_heads),
        )
    generator = torch.Generator().manual_seed(settings.seed)
    scale = d**-0.5
    w_q, w_k, w_v, w_o = (torch.randn(d, d, generator=generator) * scale for _ in range(4))
    bias = torch.randn(d, generator=generator) * scale
    built = {}
    for name, kind in WAYS:
        built[name] = kind(d, n_heads)
        with torch.no_grad():
            built[name].take(w_q, w_k, w_v, w_o, bias)
    return built


def check_ways(settings: WaySettings) -> None:
    """Refuse what would fill the memory.

    Raises:
        ConfigError: The scores of all rows and heads are too large.
    """
    of_square = SCORE_BYTES * settings.batch * settings.n_heads
    n_bytes = of_square * settings.n_tokens**2
    if n_bytes <= MOST_SCORE_BYTES:
        return
    n_tokens = math.isqrt(MOST_SCORE_BYTES // of_square)
    megabytes, most = round(n_bytes / 10**6), MOST_SCORE_BYTES // 10**6
    raise ConfigError(
        f"{settings.batch} rows of {settings.n_heads} heads and {settings.n_tokens} tokens have "
        f"{megabytes} MB of scores, and {most} MB is the most; lower the tokens to {n_tokens}, or "
        "choose fewer rows or heads",
        code="lab-ways-memory",
        rows=settings.batch,
        heads=settings.n_heads,
        tokens=settings.n_tokens,
        megabytes=megabytes,
        most=most,
        fitting=n_tokens,
    )


def read_way_source(name: str) -> str:
    """The class of a way, as it stands in its file.

    Args:
        name: Of `WAY_NAMES`.

    Raises:
        ConfigError: There is no such way.
    """
    tree = ast.parse(WAYS_FILE.read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    named = dict(zip(WAY_NAMES, CLASS_NAMES, strict=True))
    if name not in named:
        raise ConfigError(f"there is no way {name!r}; choose {', '.join(WAY_NAMES)}")
    lines = WAYS_FILE.read_text(encoding="utf-8").splitlines()
    chosen = [classes[named[name]]]
    base = chosen[0].bases[0]
    if isinstance(base, ast.Name) and base.id != "Way":
        chosen.insert(0, classes[base.id])
    return "\n\n\n".join("\n".join(lines[c.lineno - 1 : c.end_lineno]) for c in chosen)


def draw_inputs(settings: WaySettings) -> torch.Tensor:
    """(batch, n_tokens, d_model) from N(0, 1)."""
    import torch

    generator = torch.Generator().manual_seed(settings.seed + 1)
    shape = (settings.batch, settings.n_tokens, settings.d_model)
    return torch.randn(shape, generator=generator)


def measure_ways(
    settings: WaySettings,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[WaysResult]:
    """Measure round by round; yields after each, and before each way that takes a while.

    Args:
        settings: Size and number of rounds.
        turn: Entered for each way of each round; where several share a device, it makes them wait.
        stopped: Asked before each way, and between its forward and its backward pass.

    Yields:
        Medians so far.

    Raises:
        ConfigError: The width is no multiple of the number of heads, or the scores are too large.
        Stopped: `stopped()` became true.
    """
    check_ways(settings)
    ways, x = build_ways(settings), draw_inputs(settings)
    differences: dict[str, float] = {}
    slow: set[str] = set()
    first: torch.Tensor | None = None
    result = WaysResult(ways=(), rounds=0)
    for name, way in ways.items():
        _check_stop(stopped)
        yield replace(result, measuring=name)
        with turn():
            timed = _measure(name, way, x, stopped)
        first = timed.out if first is None else first
        differences[name] = float((timed.out - first).abs().max())
        if timed.forward_s + (timed.backward_s or 0) > SLOW_S:
            slow.add(name)
    times: dict[str, list[tuple[float, float | None]]] = {name: [] for name in ways}
    for number in range(1, settings.rounds + 1):
        for name, way in ways.items():
            _check_stop(stopped)
            if name in slow:
                yield replace(result, measuring=name)
            with turn():
                timed = _measure(name, way, x, stopped)
            times[name].append((timed.forward_s, timed.backward_s))
        summed = [_sum_up(n, ways[n], differences[n], times[n]) for n in ways]
        result = WaysResult(ways=tuple(summed), rounds=number)
        yield result


def has_backward(name: str, x: torch.Tensor) -> bool:
    """FlexAttention has a backward pass on a GPU only."""
    return name != "flex" or x.device.type == "cuda"


@dataclass(frozen=True, kw_only=True)
class _Timed:
    """Seconds of a forward pass and of the backward pass after it, and what came out."""

    forward_s: float
    backward_s: float | None
    out: torch.Tensor


def _check_stop(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Stopped("the measurement was stopped")


def _measure(name: str, way: Way, x: torch.Tensor, stopped: Callable[[], bool]) -> _Timed:
    import torch

    if not has_backward(name, x):
        with torch.no_grad():
            started_at = time.perf_counter()
            out = way(x)
            forward_s = time.perf_counter() - started_at
            return _Timed(forward_s=forward_s, backward_s=None, out=out)
    inputs = x.clone().requires_grad_()
    started_at = time.perf_counter()
    out = way(inputs)
    forward_s = time.perf_counter() - started_at
    _check_stop(stopped)
    started_at = time.perf_counter()
    out.square().mean().backward()
    backward_s = time.perf_counter() - started_at
    way.zero_grad()
    return _Timed(forward_s=forward_s, backward_s=backward_s, out=out.detach())


def _sum_up(
    name: str, way: Way, difference: float, times: list[tuple[float, float | None]]
) -> WayResult:
    backward = [b for _, b in times if b is not None]
    return WayResult(
        name=name,
        n_parameters=sum(p.numel() for p in way.parameters() if p.requires_grad),
        largest_difference=difference,
        forward_s=_quartiles([forward for forward, _ in times]),
        backward_s=_quartiles(backward) if backward else None,
    )


def _quartiles(seconds: list[float]) -> tuple[float, float, float]:
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
    return float(low), float(middle), float(high)


def _closest_divisor(width: int, wanted: int) -> int:
    return min((n for n in range(1, width + 1) if width % n == 0), key=lambda n: abs(n - wanted))
