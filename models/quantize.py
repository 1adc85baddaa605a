"""Weights in 8 bits: a quarter of the memory, almost the same numbers.

    weight (rows, columns) float32   ─►   values (rows, columns) int8,  scales (rows,) float32
    scale of a row = largest |weight| in it / 127          weight ≈ scale · value

One scale a row, so one an output channel of a linear layer and one a token of an embedding: that is
"per output channel, symmetric, weight-only" (Krishnamoorthi 2018, arXiv 1806.08342, section 2.2;
Dettmers et al. 2022, arXiv 2208.07339, section 2.1). Nothing is calibrated and the activations stay
float32: the scale of a row can wait until after the product,

    y_r = Σ_c x_c · (s_r · v_rc)  =  s_r · Σ_c x_c · v_rc

Rounding moves a weight by at most half a scale. Norms, biases and the router of experts stay
float32: together they are less than a thousandth of the bytes, and one wrong expert is not a small
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

LARGEST = 127  # of -127 to 127: -128 would have no opposite
# A product needs its weights as floats. They are made a piece at a time, small enough to stay in
# the processor's cache between being made and being used; 512 KiB was fastest of 64 KiB to 16 MiB.
PIECE_BYTES_CPU = 512 * 1024
PIECE_BYTES_ELSEWHERE = 64 * 1024**2  # few and large launches
ROWS_AT_ONCE = 4096  # rounded at once: a whole embedding in float32 would double the peak
KEPT_IN_FLOAT = ("router",)


@dataclass(frozen=True)
class Int8Rows:
    """A matrix in 8 bits.

    Args:
        values: (rows, columns) int8.
        scales: (rows,) float32.
    """

    values: Tensor
    scales: Tensor

    @property
    def shape(self) -> torch.Size:
        """Of the matrix that they stand for."""
        return self.values.shape


def quantize_rows(weight: Tensor) -> Int8Rows:
    """Round a matrix (rows, columns) to 8 bits; a row of zeros keeps the scale 0."""
    values = torch.empty(weight.shape, dtype=torch.int8, device=weight.device)
    scales = torch.empty(len(weight), dtype=torch.float32, device=weight.device)
    for start in range(0, len(weight), ROWS_AT_ONCE):
        rows = slice(start, start + ROWS_AT_ONCE)
        piece = weight[rows].float()
        scales[rows] = piece.abs().amax(dim=1) / LARGEST
        divisors = torch.where(scales[rows] > 0, scales[rows], 1.0)
        values[rows] = (piece / divisors[:, None]).round_().clamp_(-LARGEST, LARGEST)
    return Int8Rows(values, scales)


def multiply_rows(x: Tensor, values: Tensor, scales: Tensor) -> Tensor:
    """The product of x (..., columns) with every row: (..., rows), in the type of x."""
    piece_bytes = PIECE_BYTES_CPU if x.device.type == "cpu" else PIECE_BYTES_ELSEWHERE
    rows = max(1, piece_bytes // (values.shape[1] * x.element_size()))
    pieces = [functional.linear(x, piece.to(x.dtype)) for piece in values.split(rows)]
    product = pieces[0] if len(pieces) == 1 else torch.cat(pieces, dim=-1)
    return product * scales.to(x.dtype)


class Int8Linear(nn.Module):
    """`nn.Linear` with its weight in 8 bits.

    Args:
        n_inputs: Columns.
        n_outputs: Rows.
        bias: Whether there is one; in float32.
    """

    def __init__(self, n_inputs: int, n_outputs: int, *, bias: bool) -> None:
        super().__init__()
        self.values = _frozen(torch.empty(n_outputs, n_inputs, dtype=torch.int8))
        self.scales = _frozen(torch.empty(n_outputs, dtype=torch.float32))
        self.bias = _frozen(torch.empty(n_outputs, dtype=torch.float32)) if bias else None

    @property
    def weight(self) -> Tensor:
        """The matrix that values and scales stand for, made anew in float32."""
        return self.values * self.scales[:, None]

    def forward(self, x: Tensor) -> Tensor:
        """(..., n_inputs) to (..., n_outputs)."""
        y = multiply_rows(x, self.values, self.scales)
        return y if self.bias is None else y + self.bias


class Int8Embedding(nn.Module):
    """`nn.Embedding` with its rows in 8 bits.

    Args:
        n_rows: Tokens or positions.
        width: Of a row.
    """

    def __init__(self, n_rows: int, width: int) -> None:
        super().__init__()
        self.values = _frozen(torch.empty(n_rows, width, dtype=torch.int8))
        self.scales = _frozen(torch.empty(n_rows, dtype=torch.float32))

    @property
    def weight(self) -> Tensor:
        """All rows, made anew in float32."""
        return self.values * self.scales[:, None]

    def forward(self, ids: Tensor) -> Tensor:
        """(...) ids to (..., width) float32."""
        return self.values[ids] * self.scales[ids, None]


def multiply_embedding(x: Tensor, embedding: nn.Embedding | Int8Embedding) -> Tensor:
    """X (..., width) against every row of an embedding: what a tied head does."""
    if isinstance(embedding, Int8Embedding):
        return multiply_rows(x, embedding.values, embedding.scales)
    return functional.linear(x, embedding.weight)


def replace_with_int8(model: nn.Module) -> frozenset[str]:
    """Put 8-bit layers in the place of linear layers and embeddings, before weights are there.

    Args:
        model: A model on the device "meta"; changed in place.

    Returns:
        Names of the parameters, such as `blocks.0.attn.q_proj.weight`, that are stored as `.values`
        and `.scales` now.
    """
    replaced = set()
    for name, parent, child_name, child in list(_layers(model)):
        if child_name in KEPT_IN_FLOAT:
            continue
        setattr(parent, child_name, _int8_layer(child))
        replaced.add(f"{name}.weight")
    return frozenset(replaced)


def name_stored(name: str, tensor: Tensor | Int8Rows) -> dict[str, Tensor]:
    """One loaded parameter as entries of a state dict."""
    if isinstance(tensor, Tensor):
        return {name: tensor}
    stem = name.removesuffix("weight")
    return {f"{stem}values": tensor.values, f"{stem}scales": tensor.scales}


def count_stored(model: nn.Module) -> int:
    """Parameters of a model; the scales of 8-bit matrices are no parameters of their own."""
    named = model.named_parameters()
    return sum(p.numel() for name, p in named if not name.endswith(".scales"))


def _layers(model: nn.Module) -> Iterator[tuple[str, nn.Module, str, nn.Linear | nn.Embedding]]:
    for parent_name, parent in model.named_modules():
        for child_name, child in parent.named_children():
            if isinstance(child, nn.Linear | nn.Embedding):
                name = f"{parent_name}.{child_name}" if parent_name else child_name
                yield name, parent, child_name, child


def _int8_layer(layer: nn.Linear | nn.Embedding) -> Int8Linear | Int8Embedding:
    with torch.device("meta"):
        if isinstance(layer, nn.Embedding):
            return Int8Embedding(layer.num_embeddings, layer.embedding_dim)
        return Int8Linear(layer.in_features, layer.out_features, bias=layer.bias is not None)


def _frozen(tensor: Tensor) -> nn.Parameter:
    return nn.Parameter(tensor, requires_grad=False)  # whole numbers have no gradient
