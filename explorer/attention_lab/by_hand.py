"""Attention of six words by hand: every stage a small matrix, each cell of which can be changed.

    X ─► X Xᵀ ─► ÷ sum │ softmax ─► contexts          without weights: step by step
    X ─► Q, K, V ─► Q Kᵀ ─► ÷ √d_k ─► mask ─► softmax ─► dropout ─► contexts

Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.1; dropout divides what stays by 1 - p
(Srivastava et al. 2014, section 10). Everything is float32, in the order in which PyTorch does it,
so that the digits are those of the usual course code. A changed cell replaces the computed one, and
all that comes after is computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError

if TYPE_CHECKING:
    import torch

WORDS = ("Your", "journey", "starts", "with", "one", "step")
INPUTS = (
    (0.43, 0.15, 0.89),
    (0.55, 0.87, 0.66),
    (0.57, 0.85, 0.64),
    (0.22, 0.58, 0.33),
    (0.77, 0.25, 0.10),
    (0.05, 0.80, 0.55),
)
D_OUT = 2
WIDTHS = (2, 8, 32, 128, 512)  # for what softmax does without the division by the root of d
LARGEST_CELL = 1e6

WeightKind = Literal["rand", "linear"]
Matrix = NDArray[np.float32]


@dataclass(frozen=True, kw_only=True)
class ChangedCell:
    """One cell that a reader has overwritten.

    Args:
        matrix: Name of the matrix.
        row: From 0.
        column: From 0.
        value: The number that stands there now.
    """

    matrix: str
    row: int
    column: int
    value: float


@dataclass(frozen=True, kw_only=True)
class HandSettings:
    """How the six words attend.

    Args:
        weights: `rand` draws W_q, W_k, W_v as `torch.rand(3, 2)`, `linear` as `nn.Linear(3, 2)`.
        seed: Of the weights.
        dropout: Share of the attention weights that is dropped.
        dropout_seed: Of the dropout.
        gain: The scores of the naive softmax are multiplied by it, to see it overflow.
    """

    weights: WeightKind = field(
        default="linear", metadata={"choices": ("linear", "rand"), "dial": True}
    )
    seed: int = field(default=789, metadata={"least": 0, "most": 99_999, "step": 1})
    gain: float = field(default=1.0, metadata={"least": 1, "most": 200, "step": 1})
    dropout: float = field(default=0.5, metadata={"least": 0, "most": 0.9, "step": 0.1})
    dropout_seed: int = field(default=123, metadata={"least": 0, "most": 99_999, "step": 1})


@dataclass(frozen=True, kw_only=True)
class HandAttention:
    """All matrices of all stages.

    Args:
        matrices: Name -> numbers; masked cells are -inf in `masked` and 0 in the weights.
        changed: The cells that were overwritten.
        sharpness: For each width in `WIDTHS` the mean largest weight of a softmax over six random
            keys: with the division by the root of d, and without it.
    """

    matrices: Mapping[str, Matrix]
    changed: tuple[ChangedCell, ...]
    sharpness: tuple[tuple[float, float], ...]


class _Sheet:
    """Collects the matrices, with the changed cells put in."""

    def __init__(self, changed: Sequence[ChangedCell]) -> None:
        self._changed = changed
        self.kept: dict[str, Matrix] = {}

    def put(self, name: str, computed: torch.Tensor) -> torch.Tensor:
        """Keep a matrix; returns it with the changed cells, for what comes after."""
        result = computed.clone()
        for cell in self._changed:
            if cell.matrix == name:
                _check_cell(cell, result.shape)
                result[cell.row, cell.column] = cell.value
        self.kept[name] = result.numpy().copy()
        return result


def compute_by_hand(
    settings: HandSettings,
    *,
    inputs: Sequence[Sequence[float]] = INPUTS,
    changed: Sequence[ChangedCell] = (),
) -> HandAttention:
    """Compute every stage.

    Args:
        settings: Weights, dropout, gain.
        inputs: One vector of three numbers a word.
        changed: Cells that replace what would stand there.

    Raises:
        ConfigError: A cell that no matrix has, or that is no usable number, a dropout that is not
            at least 0 and below 1, or a kind of weights that is not known.
    """
    import torch

    _check(settings)
    sheet = _Sheet(changed)
    x = sheet.put("inputs", torch.tensor(inputs, dtype=torch.float32))
    _without_weights(sheet, x, settings)
    _with_weights(sheet, x, settings)
    _with_heads(sheet, x, settings.seed)
    return HandAttention(matrices=sheet.kept, changed=tuple(changed), sharpness=compute_sharpness())


def _without_weights(sheet: _Sheet, x: torch.Tensor, settings: HandSettings) -> None:
    """Dot products as scores, two ways to make weights of them, contexts."""
    scores = sheet.put("scores", x @ x.T)
    sheet.put("by_sum", scores / scores.sum(dim=-1, keepdim=True))
    sheet.put("naive", naive_softmax(scores * settings.gain))
    sheet.put("stable", (scores * settings.gain).softmax(dim=-1))
    weights = sheet.put("softmax", scores.softmax(dim=-1))
    sheet.put("context", weights @ x)


def _with_weights(sheet: _Sheet, x: torch.Tensor, settings: HandSettings) -> None:
    """Projections, scaling, mask in two ways, dropout, contexts."""
    import torch

    from models.dropout import dropout

    drawn = draw_weights(settings.weights, settings.seed)
    w_q, w_k, w_v = (sheet.put(f"w_{name}", w) for name, w in zip("qkv", drawn, strict=True))
    q, k, v = (sheet.put(name, x @ w) for name, w in zip("qkv", (w_q, w_k, w_v), strict=True))
    raw = sheet.put("qk", q @ k.T)
    scaled = sheet.put("scaled", raw / k.shape[-1] ** 0.5)
    weights = sheet.put("weights", scaled.softmax(dim=-1))
    sheet.put("contexts", weights @ v)
    future = torch.ones(len(x), len(x), dtype=torch.bool).triu(1)
    masked = sheet.put("masked", scaled.masked_fill(future, float("-inf")))
    causal = sheet.put("causal", masked.softmax(dim=-1))
    cut = sheet.put("cut", weights.masked_fill(future, 0.0))
    sheet.put("renormalised", cut / cut.sum(dim=-1, keepdim=True))
    generator = torch.Generator().manual_seed(settings.dropout_seed)
    rate = settings.dropout
    keep = sheet.put("keep", dropout(torch.ones_like(causal), rate, generator))
    dropped = sheet.put("dropped", causal * keep)
    sheet.put("causal_contexts", causal @ v)
    sheet.put("dropped_contexts", dropped @ v)


def naive_softmax(scores: torch.Tensor) -> torch.Tensor:
    """exp(s) / sum exp(s), as the formula stands: in float32 exp(89) is infinite."""
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def draw_weights(
    kind: WeightKind, seed: int, n: int = 3, shape: tuple[int, int] = (3, D_OUT)
) -> tuple[torch.Tensor, ...]:
    """Matrices (d_in, d_out) one after another from one seed.

    Args:
        kind: `rand` is uniform from 0 to 1; `linear` is how `nn.Linear(d_in, d_out, bias=False)`
            starts: uniform within 1 / sqrt(d_in), drawn as (d_out, d_in) and transposed.
        seed: Of the draws.
        n: How many.
        shape: d_in and d_out.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    d_in, d_out = shape
    if kind == "rand":
        return tuple(torch.rand(d_in, d_out, generator=generator) for _ in range(n))
    return tuple(_draw_linear(d_in, d_out, generator).T for _ in range(n))


def _draw_linear(d_in: int, d_out: int, generator: torch.Generator) -> torch.Tensor:
    import torch

    bound = d_in**-0.5
    return torch.empty(d_out, d_in).uniform_(-bound, bound, generator=generator)


def _with_heads(sheet: _Sheet, x: torch.Tensor, seed: int) -> None:
    """The same causal attention with two heads, in the two ways in which it is written.

    Two modules of their own, (3, 2) each, whose results stand next to each other, (6, 4); or one
    module, (3, 2), cut into two heads of width 1, put together again, (6, 2), and passed through
    an output projection (2, 2) with a bias.
    """
    import torch

    six = draw_weights("linear", seed, 6)
    one, two = (_attend(x @ w_q, x @ w_k, x @ w_v) for w_q, w_k, w_v in (six[:3], six[3:]))
    heads = [sheet.put("heads_one", one), sheet.put("heads_two", two)]
    sheet.put("heads_side_by_side", torch.cat(heads, dim=-1))
    generator = torch.Generator().manual_seed(seed)
    w_q, w_k, w_v = (_draw_linear(3, D_OUT, generator).T for _ in range(3))
    drawn = _draw_linear(D_OUT, D_OUT, generator).T
    bias = torch.empty(D_OUT).uniform_(-(D_OUT**-0.5), D_OUT**-0.5, generator=generator)
    q, k, v = ((x @ w).unflatten(-1, (2, 1)).transpose(0, 1) for w in (w_q, w_k, w_v))
    joined = sheet.put("heads_joined", _attend(q, k, v).transpose(0, 1).flatten(1))
    w_o = sheet.put("w_o", drawn)
    sheet.put("heads_split", joined @ w_o + bias)


def _attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    """Causal attention, without dropout."""
    scores = q @ k.transpose(-2, -1) / k.shape[-1] ** 0.5
    future = scores.new_ones(scores.shape).triu(1).bool()
    return scores.masked_fill(future, float("-inf")).softmax(dim=-1) @ v


def compute_sharpness(
    n_keys: int = 6, n_rows: int = 256, seed: int = 0
) -> tuple[tuple[float, float], ...]:
    """What the division by the root of d is for, as d grows; see `HandAttention.sharpness`.

    Queries and keys are drawn from N(0, 1): their product then has variance d.
    """
    import torch

    generator = torch.Generator().manual_seed(seed)
    found = []
    for width in WIDTHS:
        q = torch.randn(n_rows, 1, width, generator=generator)
        k = torch.randn(n_rows, n_keys, width, generator=generator)
        scores = (q @ k.transpose(1, 2))[:, 0]
        largest = [s.softmax(-1).amax(-1).mean().item() for s in (scores / width**0.5, scores)]
        found.append((largest[0], largest[1]))
    return tuple(found)


def parse_cell(text: str) -> float:
    """Read what was typed into a cell.

    Raises:
        ConfigError: It is no number.
    """
    try:
        return float(text)
    except ValueError:
        raise ConfigError(
            f"{text[:40]!r} is no number; type one such as 0.25",
            code="lab-cell-text",
            found=text[:40],
        ) from None


def _check(settings: HandSettings) -> None:
    if settings.weights not in ("rand", "linear"):
        raise ConfigError(f"weights={settings.weights!r} are unknown; choose rand or linear")
    if not 0 <= settings.dropout < 1:
        raise ConfigError(f"dropout={settings.dropout} is not possible; choose 0 to below 1")


def _check_cell(cell: ChangedCell, shape: Sequence[int]) -> None:
    rows, columns = shape
    fits = 0 <= cell.row < rows and 0 <= cell.column < columns
    if fits and np.isfinite(cell.value) and abs(cell.value) <= LARGEST_CELL:
        return
    raise ConfigError(
        f"{cell.matrix}[{cell.row}, {cell.column}] = {cell.value} is not possible; rows are 0 to "
        f"{rows - 1}, columns 0 to {columns - 1}, and a cell takes a number up to "
        f"{LARGEST_CELL:,.0f}",
        code="lab-cell",
        matrix=cell.matrix,
        value=cell.value,
        rows=rows - 1,
        columns=columns - 1,
        most=f"{LARGEST_CELL:,.0f}",
    )
