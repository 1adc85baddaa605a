"""How coarse the numbers of a GGUF file are: the steps of each block, and the error they stand for.

    Q4_1     block of 32 numbers = d · code + m      code 0 to 15, so the step is d
    Q6_K     block of 256 = d · scale · (code - 32)  a scale for each 16 numbers: the step d · scale

A number rounded to the nearest multiple of a step is off by anything up to half of it, evenly, so
by step / √12 in the quadratic mean (Widrow & Kollár 2008, *Quantization Noise*, section 1.1). That
is what can be known: the numbers from before the rounding are not in the file.

All bits of the codes set to 0 and then to 1 give the lowest and the highest number of each place,
whatever else a kind does with its scales; between the two lie all its steps.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from models.gguf_file import GgufFile

if TYPE_CHECKING:
    import numpy as np

_ROWS_AT_ONCE = 1_024


@dataclass(frozen=True)
class _Codes:
    """Where a block keeps its codes.

    Args:
        start: First byte of them.
        stop: One past the last.
        n_steps: Steps from the code of zeros to the code of ones.
    """

    start: int
    stop: int
    n_steps: int


# ggml-common.h: the structs block_q4_0 and so on. Kinds whose codes are looked up in a table of
# uneven values (IQ...) have no single step and are not here.
_KINDS: Mapping[str, _Codes] = MappingProxyType(
    {
        "Q4_0": _Codes(2, 18, 15),
        "Q4_1": _Codes(4, 20, 15),
        "Q5_0": _Codes(2, 22, 31),
        "Q5_1": _Codes(4, 24, 31),
        "Q8_0": _Codes(2, 34, 1),  # signed bytes: ones are -1
        "Q2_K": _Codes(16, 80, 3),
        "Q3_K": _Codes(0, 96, 7),
        "Q4_K": _Codes(16, 144, 15),
        "Q5_K": _Codes(16, 176, 31),
        "Q6_K": _Codes(0, 192, 63),
    }
)
_FLOATS: Mapping[str, int] = MappingProxyType({"F16": 10, "BF16": 7})  # bits of the fraction


@dataclass(frozen=True, kw_only=True)
class StoredTensor:
    """How a tensor lies in its file.

    Args:
        kind: Name of the kind, such as `Q4_K`.
        bits: Of a number, scales included.
        mean_step: Mean distance of neighbouring values; NaN where the kind has no steps.
        error: Expected rounding error as a share of the tensor's size, both in the quadratic mean;
            0 for float32, NaN where the kind has no steps.
    """

    kind: str
    bits: float
    mean_step: float
    error: float


def measure_stored(file: GgufFile, name: str) -> StoredTensor:
    """Measure one tensor of a file.

    Args:
        file: Open.
        name: A key of its `tensors`.

    Raises:
        WeightError: There is no such tensor, or its kind cannot be read.
    """
    values, tensor = file.read(name), file.tensors[name]
    kind, bits = tensor.kind.name, 8 * tensor.n_bytes / values.size
    if kind in ("F32", "F64"):
        return StoredTensor(kind=kind, bits=bits, mean_step=0.0, error=0.0)
    if kind in _FLOATS:
        steps = [compute_float_steps(values, _FLOATS[kind])]
    elif kind in _KINDS:
        raw = file.raw(name)
        pieces = range(0, len(raw), _ROWS_AT_ONCE)
        steps = [compute_steps(raw[i : i + _ROWS_AT_ONCE], kind) for i in pieces]
    else:
        return StoredTensor(kind=kind, bits=bits, mean_step=math.nan, error=math.nan)
    squares = sum(float((piece.astype("f8") ** 2).sum()) for piece in steps)
    size = float((values.astype("f8") ** 2).sum())
    return StoredTensor(
        kind=kind,
        bits=bits,
        mean_step=sum(float(piece.sum(dtype="f8")) for piece in steps) / values.size,
        error=math.sqrt(squares / 12 / size) if size else math.nan,
    )


def compute_steps(rows: np.ndarray, kind: str) -> np.ndarray:
    """The step of each number.

    Args:
        rows: (rows, bytes) uint8, whole blocks.
        kind: One with steps.
    """
    import numpy as np
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
    from gguf.quants import dequantize

    codes, type_ = _KINDS[kind], GGMLQuantizationType[kind]
    _, block_bytes = GGML_QUANT_SIZES[type_]

    def extreme(byte: int) -> np.ndarray:
        blocks = np.array(rows).reshape(-1, block_bytes)
        blocks[:, codes.start : codes.stop] = byte
        found: np.ndarray = dequantize(blocks.reshape(rows.shape), type_)
        return found

    steps: np.ndarray = np.abs(extreme(0xFF) - extreme(0x00)) / codes.n_steps
    return steps


def compute_float_steps(values: np.ndarray, fraction_bits: int) -> np.ndarray:
    """The distance from each number to the next that floating point of so many bits has."""
    import numpy as np

    _, exponents = np.frexp(values)
    steps: np.ndarray = np.where(values == 0, 0, np.ldexp(1.0, exponents - 1 - fraction_bits))
    return steps
