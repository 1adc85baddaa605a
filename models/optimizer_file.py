"""The optimiser's state beside a model in PyTorch's own files, by our names and in our layouts.

    {"model_state_dict": {...},
     "optimizer_state_dict": {"state": {0: {"step": 90, "exp_avg": m, "exp_avg_sq": v}, ...},
                              "param_groups": [{"params": [0, 1, ...], "lr": ...}]}}

AdamW (Loshchilov & Hutter 2019, arXiv 1711.05101) keeps two running means for each number of a
weight, which lie as the weight does: the same rules that rename, turn and split the weights do it
to them. PyTorch counts the parameters instead of naming them, in the order in which the module
lists them, which is that of its state dict without buffers.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TypeGuard

import torch
from torch import Tensor

from models.config import ModelConfig
from models.decoder import Decoder
from models.errors import WeightError
from models.registry import find_state_dict_family
from models.state_dict_file import StateDictFile, read_settings_beside
from models.weight_rules import Assignment, plan_assignments

MEANS = ("exp_avg", "exp_avg_sq")  # of the gradient, and of its square
ADAMW_KEYS = frozenset({"step", *MEANS})


def read_optimizer_state(path: Path) -> dict[str, dict[str, Tensor]]:
    """Read AdamW's state, so that training can go on from it.

    Args:
        path: A .pth or .pt file with the state of the model and of its optimiser.

    Returns:
        Our name of each parameter -> `step` (a scalar), `exp_avg` and `exp_avg_sq` (of the
        parameter's shape); empty for one that was frozen. Tensors are views of the file.

    Raises:
        WeightError: The file is damaged or holds code, has no optimiser's state, or one that is
            not AdamW's or not of this model.
        ConfigError: A family that we do not have, or a number of heads that the file leaves open.
    """
    file = StateDictFile(path)
    layout = find_state_dict_family(file.names()).state_dict
    assert layout is not None  # find_state_dict_family matched its marker
    config = layout.config_from_file(file, read_settings_beside(path))
    with torch.device("meta"):
        shapes = {name: p.shape for name, p in Decoder(config).named_parameters()}
    plan = plan_assignments(layout.rules(config), file.names(), shapes)
    found = _SavedOptimizer(file, path.name)
    by_name = found.entries_by_name({step.theirs for step in plan})
    state: dict[str, dict[str, Tensor]] = {name: {} for name in shapes}
    for step in plan:
        for name, entries in _translate(step, by_name[step.theirs], config).items():
            if any(entries[key].shape != shapes[name] for key in MEANS):
                raise found.unusable(f"{step.theirs} has running means of another shape")
            state[name] = entries
    return state


def _translate(
    step: Assignment, entries: Mapping[str, Tensor], config: ModelConfig
) -> dict[str, dict[str, Tensor]]:
    """Our names -> the entries of one of their parameters, in our layouts; none of a frozen one."""
    if not entries:
        return {}
    converted = [step.convert(entries[key], config) for key in MEANS]
    # each counts its steps by itself from now on
    return {
        name: {"step": entries["step"].clone(), **dict(zip(MEANS, means, strict=True))}
        for name, *means in zip(step.ours, *converted, strict=False)
    }


class _SavedOptimizer:
    """The optimiser's part of a file, with the checks that a file from outside needs."""

    def __init__(self, file: StateDictFile, name: str) -> None:
        self._file = file
        self._name = name
        found = file.optimizer
        if found is None:
            raise WeightError(
                f"{name} holds no state of an optimiser, only a model; begin a new run from its "
                "weights",
                code="optimizer-missing",
                file=name,
            )
        if not isinstance(found, dict) or not _is_state(found.get("state")):
            raise self.unusable("it is not what torch.optim writes")
        self._entries = found["state"]
        groups = found.get("param_groups")
        self._groups = groups if isinstance(groups, list) else []

    def entries_by_name(self, used: Set[str]) -> dict[str, dict[str, Tensor]]:
        """Their name of each parameter -> its entries.

        Args:
            used: Their names of the parameters that we take.
        """
        order = self._find_order(used)
        entries = {name: self._read(name, number) for name, number in order.items()}
        lost = [name for name in entries if name not in used and entries[name]]
        if lost:
            raise self.unusable(f"{lost[0]} equals another tensor and was trained by itself")
        return entries

    def _find_order(self, used: Set[str]) -> dict[str, object]:
        """Their name of each parameter -> its number in the optimiser."""
        group = self._groups[0] if len(self._groups) == 1 else None
        numbers = group.get("params") if isinstance(group, dict) else None
        if not isinstance(numbers, list):
            raise self.unusable(
                f"it has {len(self._groups)} groups of parameters, and only with one of all "
                "parameters it is known which is which"
            )
        names = self._file.names()
        # a head tied to the embedding is one parameter with it, or a copy that counts by itself
        once = [name for name in names if name in used]
        twice = [n for n in names if n in used or any(self._file.equal(n, u) for u in once)]
        for order in (once, twice):
            if len(order) == len(numbers):
                return dict(zip(order, numbers, strict=True))
        raise self.unusable(f"it has {len(numbers)} parameters, the model {len(once)}")

    def _read(self, name: str, number: object) -> dict[str, Tensor]:
        entries = self._entries.get(number, {})  # by numbers, as PyTorch writes them
        if not entries:  # frozen: it never had a gradient
            return {}
        if set(entries) != ADAMW_KEYS:
            raise self.unusable(
                f"{name} has {sorted(map(str, entries))}, AdamW {sorted(ADAMW_KEYS)}"
            )
        # PyTorch before 1.12 counted steps by a plain number
        step = torch.as_tensor(entries["step"], dtype=torch.float32)
        tensors = {key: entries[key] for key in MEANS}
        if step.ndim or not all(isinstance(tensor, Tensor) for tensor in tensors.values()):
            raise self.unusable(f"{name} has other things than numbers")
        return {"step": step, **self._file.check(tensors)}

    def unusable(self, problem: str) -> WeightError:
        return WeightError(
            f"the optimiser's state in {self._name} cannot be taken over: {problem}; begin a new "
            "run from the weights alone",
            code="optimizer-unusable",
            file=self._name,
            problem=problem,
        )


def _is_state(found: object) -> TypeGuard[dict[object, dict[str, object]]]:
    return isinstance(found, dict) and all(isinstance(entry, dict) for entry in found.values())
