"""Every tensor of a loaded model: shape, size, distribution, singular values, and what 8 bits cost.

    size    sqrt(sum w^2), the Frobenius norm
    error   sqrt(sum (w - w')^2 / sum w^2), w' rounded to 8 bits a row (models/quantize.py)

Singular values of a matrix with many rows are the roots of the eigenvalues of w^T w, in float64:
576 x 576 instead of 49,152 x 576. Where the model came from a GGUF file, the kind in which the file
stores a tensor is told; a kind of b bits in blocks rounds each number by up to half a step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from explorer.number_formats import split_dtype
from models.gguf_steps import StoredTensor, measure_stored

if TYPE_CHECKING:
    from torch import Tensor

    from models.config import ModelConfig
    from models.gguf_file import GgufFile
    from models.loading import LoadedModel

__all__ = [
    "StoredTensor",
    "WeightSettings",
    "WeightSummary",
    "WeightView",
    "compute_singular_values",
    "compute_weight_view",
    "find_stored_kinds",
    "find_tensors",
    "measure_stored_tensor",
]

MOST_LISTED = 50
MOST_SINGULAR = 2_048  # rows or columns of the product; beyond it a page would wait for minutes
N_BINS = 81
WHICH = {"least": 0, "most": 4_999, "step": 1, "counts": "tensors"}


@dataclass(frozen=True, kw_only=True)
class WeightSettings:
    """Which tensors.

    Args:
        search: Part of a name; words between spaces have to occur all.
        which: Number of the one that is looked at among those found, from 0.
    """

    search: str = field(default="blocks.0.", metadata={"text": True})
    which: int = field(default=1, metadata=WHICH)


@dataclass(frozen=True, kw_only=True)
class WeightSummary:
    """One tensor.

    Args:
        name: In the model.
        shape: Its axes.
        dtype: Its type.
        norm: Frobenius norm.
        mean: Of its numbers.
        std: Standard deviation of its numbers.
        low: Smallest number.
        high: Largest number.
        stored: Kind in its GGUF file, "" where it came from no such file.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    norm: float
    mean: float
    std: float
    low: float
    high: float
    stored: str


@dataclass(frozen=True, kw_only=True, eq=False)
class WeightView:
    """The tensors found, and one of them in full.

    Args:
        listed: The first of those found.
        n_found: How many were found.
        n_all: How many there are.
        chosen: The one that is looked at.
        counts: (bins,) of its histogram.
        edges: (bins + 1,).
        singular_values: (n,) largest first; empty for vectors and what is too large.
        int8_error: Relative error of rounding it to 8 bits a row; NaN for vectors.
    """

    listed: tuple[WeightSummary, ...]
    n_found: int
    n_all: int
    chosen: WeightSummary
    counts: NDArray[np.int64]
    edges: NDArray[np.float64]
    singular_values: NDArray[np.float64]
    int8_error: float


def compute_weight_view(
    loaded: LoadedModel, settings: WeightSettings, stored: Mapping[str, str] | None = None
) -> WeightView:
    """Look for tensors and look at one.

    Args:
        loaded: Any model.
        settings: Which tensors.
        stored: Name -> kind in the file that the model was read from.

    Raises:
        ConfigError: No tensor has such a name.
    """
    from models.lora import MergedWeights

    tensors = MergedWeights(loaded.model)
    found = find_tensors(loaded, settings.search)
    if not found:
        some = ", ".join(list(tensors)[:3])
        raise ConfigError(
            f"no tensor's name has {settings.search[:60]!r} in it; names are such as {some}",
            code="weights-none",
            search=settings.search[:60],
            some=some,
        )
    kinds = stored or {}
    name = found[min(max(settings.which, 0), len(found) - 1)]
    values = tensors[name].detach().float().cpu()
    counts, edges = np.histogram(values.numpy(), bins=N_BINS)
    return WeightView(
        listed=tuple(_summarise(n, tensors[n], kinds.get(n, "")) for n in found[:MOST_LISTED]),
        n_found=len(found),
        n_all=len(tensors),
        chosen=_summarise(name, tensors[name], kinds.get(name, "")),
        counts=counts,
        edges=edges,
        singular_values=compute_singular_values(values),
        int8_error=_int8_error(values),
    )


def find_tensors(loaded: LoadedModel, search: str) -> list[str]:
    """Names of the tensors whose name has all words of a search.

    Args:
        loaded: Any model.
        search: Parts of a name between spaces.
    """
    from models.lora import MergedWeights

    words = search.split()
    return [n for n in MergedWeights(loaded.model) if all(word in n for word in words)]


def _summarise(name: str, tensor: Tensor, stored: str) -> WeightSummary:
    values = tensor.detach().float()
    return WeightSummary(
        name=name,
        shape=tuple(tensor.shape),
        dtype=str(tensor.dtype).removeprefix("torch."),
        norm=float(values.norm()),
        mean=float(values.mean()),
        std=float(values.std(correction=0)),
        low=float(values.min()),
        high=float(values.max()),
        stored=stored,
    )


def compute_singular_values(values: Tensor) -> NDArray[np.float64]:
    """Singular values of a matrix, largest first; empty for a vector and for what is too large."""
    import torch

    if values.ndim != 2 or min(values.shape) > MOST_SINGULAR:
        return np.zeros(0)
    wide = values if values.shape[0] >= values.shape[1] else values.T
    product = torch.zeros(wide.shape[1], wide.shape[1], dtype=torch.float64)
    for rows in wide.split(4_096):  # float64 of a whole embedding would be hundreds of megabytes
        part = rows.double()
        product += part.T @ part
    eigenvalues = torch.linalg.eigvalsh(product).clamp(min=0).flip(0)
    return np.array(eigenvalues.sqrt().numpy())


def _int8_error(values: Tensor) -> float:
    from models.quantize import quantize_rows

    size = float(values.double().norm())
    if values.ndim != 2 or size == 0:
        return math.nan
    rounded = quantize_rows(values)
    back = rounded.values.float() * rounded.scales[:, None]
    return float((values - back).double().norm()) / size


def find_stored_kinds(source: str, config: ModelConfig) -> Mapping[str, str]:
    """In which kinds a GGUF file stores the tensors; empty where the model came from no such file.

    Args:
        source: What was loaded.
        config: The model.
    """
    with _open_gguf(source) as file:
        if file is None:
            return {}
        return {ours: file.tensors[name].kind.name for ours, name in _names(file, config)}


def measure_stored_tensor(source: str, config: ModelConfig, name: str) -> StoredTensor | None:
    """How a GGUF file stores a tensor, and what its rounding costs; None where there is no file.

    Args:
        source: What was loaded.
        config: The model.
        name: Of the tensor, in the model.
    """
    with _open_gguf(source) as file:
        theirs = {} if file is None else dict(_names(file, config))
        return measure_stored(file, theirs[name]) if file is not None and name in theirs else None


@contextmanager
def _open_gguf(source: str) -> Iterator[GgufFile | None]:
    from models.gguf_file import GgufFile
    from models.sources import find_local

    resolved = find_local(split_dtype(source)[0])
    if resolved is None or resolved.kind != "gguf":
        yield None
        return
    with GgufFile(resolved.path) as file:
        yield file


def _names(file: GgufFile, config: ModelConfig) -> Iterator[tuple[str, str]]:
    """Our name -> the file's, for every layer of every rule."""
    from models.registry import find_gguf_family

    family = find_gguf_family(file.architecture)
    assert family.gguf is not None, "found by its GGUF layout"
    for rule in family.gguf.rules(config).rules:
        for layer in range(config.n_layers if "{i}" in rule.theirs else 1):
            theirs = rule.theirs.replace("{i}", str(layer))
            if theirs in file.tensors:
                yield from ((name.replace("{i}", str(layer)), theirs) for name in rule.targets)
