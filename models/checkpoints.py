"""Checkpoints on disk as named tensors, read one at a time.

Safetensors files are memory-mapped: a tensor is a view of the file until something converts it, so
that opening a model costs no second copy. GGUF tensors are dequantised to float32 as they are read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from models.errors import WeightError
from models.gguf_file import GgufFile
from models.weight_files import INDEX_FILE, SINGLE_WEIGHT_FILE, list_weight_files


class SafetensorsCheckpoint:
    """One safetensors file, or several with an index.

    Args:
        folder: The folder of the model.

    Raises:
        WeightError: No weights, a shard that is missing, or a file that is damaged.
    """

    def __init__(self, folder: Path) -> None:
        self._file_of: dict[str, Any] = {}
        for path in _find_weight_files(folder):
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


def _find_weight_files(folder: Path) -> list[Path]:
    try:
        names = list_weight_files(folder)
    except (ValueError, OSError) as error:
        raise WeightError(
            f"{INDEX_FILE} cannot be used ({error}); download it again",
            code="file-damaged",
            file=INDEX_FILE,
        ) from None
    if not names:
        raise _no_weights(folder)
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


def _no_weights(folder: Path) -> WeightError:
    others = sorted(p.name for p in folder.iterdir() if p.suffix in {".bin", ".pth", ".pt", ".h5"})
    if others:
        return WeightError(
            f"{folder.name} has its weights only as {', '.join(others[:3])}, which are not opened "
            "beside a config.json; convert them once, on a machine where you trust them: "
            f"AutoModelForCausalLM.from_pretrained({folder.name!r}).save_pretrained('converted') "
            "with transformers, then open that folder; or download its safetensors files",
            code="weights-pickled",
            folder=folder.name,
            files=", ".join(others[:3]),
        )
    return WeightError(
        f"{folder.name} has no {SINGLE_WEIGHT_FILE} and no {INDEX_FILE}; save the model as "
        "safetensors, or download its safetensors files",
        code="weights-missing",
        folder=folder.name,
    )


def _open(path: Path) -> Any:
    try:
        return safe_open(path, framework="pt", device="cpu")
    except (SafetensorError, OSError) as error:
        raise WeightError(
            f"{path.name} is not a whole safetensors file ({error}); download it again",
            code="file-damaged",
            file=path.name,
        ) from None
