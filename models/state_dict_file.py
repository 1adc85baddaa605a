"""PyTorch's own files: a state dict, name -> tensor, as `torch.save(model.state_dict())` writes it.

Such a file holds a pickle, and a pickle may hold code. So there is one way in: `torch.load` with
`weights_only=True`, which builds tensors, containers and numbers, and refuses everything else. The
bytes of the tensors are mapped, so that opening a file reads names and shapes only.

Training scripts often put the state dict beside other things, such as

    {"model_state_dict": {...}, "optimizer_state_dict": {...}}

of which the model's part is taken, and the optimiser's on request (`models/optimizer_file.py`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor

from models.errors import WeightError
from models.family import Settings, Shape
from models.json_files import read_json
from models.torch_archive import find_archive_fault

SHARD_NAME = re.compile(r"consolidated\.\d+\.pth")
WRAPPERS = ("model_state_dict", "state_dict", "model")
OPTIMIZER_KEYS = ("optimizer_state_dict", "optimizer")
# Put in front of every name by `torch.compile` and `DistributedDataParallel`.
_WRAPPER_PREFIXES = ("_orig_mod.", "module.")
_NAMED_CODE = re.compile(r"GLOBAL ([\w.]+)")


class StateDictFile:
    """The state dict of one file; a `Checkpoint` of `models/weight_rules.py`.

    Args:
        path: A .pth, .pt or .bin file.

    Raises:
        WeightError: The file is damaged, holds code, or holds no state dict.
    """

    def __init__(self, path: Path) -> None:
        content = _read(path)
        self._path = path
        self._tensors = _check_tensors(_find_state_dict(content, path), path)
        beside = content if isinstance(content, dict) else {}
        self._optimizer = next((beside[key] for key in OPTIMIZER_KEYS if key in beside), None)

    def names(self) -> Sequence[str]:
        """Names of all tensors."""
        return tuple(self._tensors)

    def tensor(self, name: str) -> Tensor:
        """A view of the file."""
        return self._tensors[name]

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """Name -> shape of each tensor."""
        return {name: tuple(tensor.shape) for name, tensor in self._tensors.items()}

    @property
    def optimizer(self) -> object:
        """The optimiser's state beside the model, unchecked; None where there is none."""
        return self._optimizer

    def check(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Check further tensors of the same file as those of the state dict were.

        Raises:
            WeightError: One is not stored as plain numbers.
        """
        return _check_tensors(tensors, self._path)

    def equal(self, one: str, other: str) -> bool:
        """Whether two tensors hold the same numbers, or are even the same bytes of the file."""
        first, second = self._tensors[one], self._tensors[other]
        if first.shape != second.shape or first.dtype != second.dtype:
            return False
        shared = first.data_ptr() == second.data_ptr() and first.stride() == second.stride()
        return shared or torch.equal(first, second)


def read_settings_beside(path: Path) -> Settings:
    """Settings that belong to a state dict: `name.json` beside `name.pth`, else `params.json`.

    Returns:
        What was found; without any file, no settings, under the name that one would have.

    Raises:
        WeightError: The file is there and is no JSON object.
    """
    own, shared = path.with_suffix(".json"), path.with_name("params.json")
    for found in (own, shared):
        if found.is_file():
            return Settings(read_json(found), found.name)
    return Settings({}, shared.name if SHARD_NAME.fullmatch(path.name) else own.name)


def check_single_shard(path: Path) -> None:
    """Refuse a file that is one of several with parts of each matrix.

    Raises:
        WeightError: There are others of its kind beside it, or it is not the first.
    """
    if SHARD_NAME.fullmatch(path.name) is None:
        return
    found = sorted(p.name for p in path.parent.iterdir() if SHARD_NAME.fullmatch(p.name))
    if found != ["consolidated.00.pth"]:
        raise WeightError(
            f"{path.parent.name} has its matrices cut over {len(found)} files "
            f"({', '.join(found[:3])}), which are not put together here; take the safetensors "
            "files of the same model from the Hub",
            code="pth-sharded",
            folder=path.parent.name,
            n_files=len(found),
        )


def _read(path: Path) -> Any:
    try:
        fault = find_archive_fault(path)
        if fault is None:
            return torch.load(path, map_location="cpu", mmap=True, weights_only=True)
    except UnpicklingError as error:
        raise _refuse_pickle(path, str(error)) from None
    # a damaged or hostile pickle can make the reader fail in any way; none of them is our fault
    except Exception as error:
        raise _damaged(path, str(error).partition("\n")[0][:200]) from error
    if fault == "old":
        raise WeightError(
            f"{path.name} is a bare pickle, as PyTorch before 1.6 wrote it, and is not opened; if "
            f"you trust it, load it and save it anew: torch.save(state_dict, {path.name!r})",
            code="pth-old-format",
            file=path.name,
        )
    raise _damaged(path, "it is not an archive that torch.save writes, or its end is missing")


def _damaged(path: Path, problem: str) -> WeightError:
    return WeightError(
        f"{path.name} is not a whole PyTorch file ({problem}); download or save it again",
        code="file-damaged",
        file=path.name,
    )


def _refuse_pickle(path: Path, problem: str) -> WeightError:
    code = _NAMED_CODE.search(problem)
    if code is None:
        return _damaged(path, "its pickle cannot be read")
    name = code.group(1).rstrip(".")
    return WeightError(
        f"{path.name} asks to run code ({name}), which is never done with a file from outside; if "
        "you trust its author, open it with PyTorch and save the weights alone: "
        f"torch.save(model.state_dict(), {path.name!r})",
        code="pickle-has-code",
        file=path.name,
        found=name,
    )


def _find_state_dict(content: Any, path: Path) -> dict[str, Tensor]:
    found = content
    if isinstance(content, dict):
        inner = [content[key] for key in WRAPPERS if isinstance(content.get(key), dict)]
        found = inner[0] if inner else content
    if isinstance(found, dict) and found and all(map(_is_entry, found.items())):
        return _without_wrapper_prefix(found)
    holds = ", ".join(map(str, list(content)[:6])) if isinstance(content, dict) else "no names"
    raise WeightError(
        f"{path.name} holds a {type(content).__name__} ({holds[:200]}), expected a state dict of "
        f"tensors, or a dict with one under {WRAPPERS[0]!r}; save it with "
        f"torch.save(model.state_dict(), {path.name!r})",
        code="pth-no-state-dict",
        file=path.name,
        found=holds[:200],
    )


def _is_entry(entry: tuple[object, object]) -> bool:
    return isinstance(entry[0], str) and isinstance(entry[1], Tensor)


def _without_wrapper_prefix(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    for prefix in _WRAPPER_PREFIXES:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors


def _check_tensors(tensors: Mapping[str, Tensor], path: Path) -> dict[str, Tensor]:
    """Plain tensors only, and none that claims more numbers than its file has room for."""
    size = path.stat().st_size
    for name, tensor in tensors.items():
        plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
        if not plain or tensor.is_quantized or tensor.numel() * tensor.itemsize > size:
            raise _damaged(path, f"its tensor {name[:80]} is not stored as plain numbers")
    return {name: tensor.detach() for name, tensor in tensors.items()}
