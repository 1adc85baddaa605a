"""Checkpoints on disk as named tensors, read one at a time.

Safetensors files are memory-mapped: a tensor is a view of the file until something converts it, so
that opening a model costs no second copy. GGUF tensors are dequantised to float32 as they are read.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from models.errors import WeightError
from models.gguf_file import GgufFile

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"


class SafetensorsCheckpoint:
    """One safetensors file, or several with an index.

    Args:
        folder: The folder of the model.

    Raises:
        WeightError: No weights, a shard that is missing, or a file that is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._file_of: dict[str, Any] = {}
        for path in _weight_files(folder):
            opened = _open(path)
            self._file_of.update(dict.fromkeys(opened.keys(), opened))

    def names(self) -> Sequence[str]:
        """Names of all tensors."""
        return tuple(self._file_of)

    def tensor(self, name: str) -> Tensor:
        """A view of the file."""
        return self._file_of[name].get_tensor(name)


class GgufCheckpoint:
    """The tensors of a GGUF file."""

    def __init__(self, gguf: GgufFile) -> None:
        self._gguf = gguf

    def names(self) -> Sequence[str]:
        """Names of all tensors."""
        return tuple(self._gguf.tensors)

    def tensor(self, name: str) -> Tensor:
        """One tensor, dequantised to float32."""
        return torch.from_numpy(self._gguf.read(name))


def read_json(path: Path) -> Mapping[str, Any]:
    """A JSON file that holds an object.

    Raises:
        WeightError: It is not there, not JSON, or holds something else.
    """
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WeightError(
            f"{path.parent.name or path.parent} has no {path.name}; choose the folder that holds "
            f"{path.name} and the weights, as downloaded from the Hub",
            code="file-missing",
            folder=path.parent.name,
            file=path.name,
        ) from None
    except (ValueError, OSError) as error:
        raise WeightError(
            f"{path.name} cannot be read as JSON ({error}); download it again",
            code="file-damaged",
            file=path.name,
        ) from None
    if not isinstance(values, dict):
        raise WeightError(
            f"{path.name} holds a {type(values).__name__}, expected an object; download it again",
            code="file-damaged",
            file=path.name,
        )
    return values


def _weight_files(folder: Path) -> list[Path]:
    if (folder / SINGLE).exists():
        return [folder / SINGLE]
    if (folder / INDEX).exists():
        return _shards(folder)
    found = sorted(folder.glob("*.safetensors"))
    if len(found) == 1:
        return found
    others = sorted(p.name for p in folder.iterdir() if p.suffix in {".bin", ".pth", ".pt", ".h5"})
    raise WeightError(
        f"{folder.name} has no {SINGLE} and no {INDEX}"
        + (f"; it has {', '.join(others[:3])}, which are not opened" if others else "")
        + "; save the model with safe_serialization, or download its safetensors files",
        code="weights-missing",
        folder=folder.name,
    )


def _shards(folder: Path) -> list[Path]:
    weight_map = read_json(folder / INDEX).get("weight_map")
    if not isinstance(weight_map, dict):
        raise WeightError(
            f"{INDEX} has no weight_map; download it again", code="file-damaged", file=INDEX
        )
    # names only: an index must not lead out of its folder
    names = sorted({Path(str(name)).name for name in weight_map.values()})
    missing = [name for name in names if not (folder / name).exists()]
    if missing:
        raise WeightError(
            f"{len(missing)} of {len(names)} weight files are missing: {', '.join(missing[:3])}; "
            "download the rest",
            code="shards-missing",
            missing=", ".join(missing[:3]),
            n_missing=len(missing),
            n_files=len(names),
        )
    return [folder / name for name in names]


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise WeightError(
            f"{path.name} is not a whole safetensors file ({error}); download it again",
            code="file-damaged",
            file=path.name,
        ) from None
