"""Numbers that no model can have: refused when read or saved, not when the first answer is noise.

One NaN in one matrix makes every logit NaN. And float16 ends at 65,504: a larger weight becomes
infinite when it is converted, which bfloat16, with float32's range, does not do to it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from models.errors import WeightError
from models.weight_rules import Checkpoint

FLOAT16_MAX = torch.finfo(torch.float16).max


class CheckedCheckpoint:
    """A checkpoint whose tensors are looked through as they are read.

    Args:
        checkpoint: What is read.
        dtype: What the weights will be converted to.
    """

    def __init__(self, checkpoint: Checkpoint, dtype: torch.dtype) -> None:
        self._checkpoint = checkpoint
        self._dtype = dtype

    def names(self) -> Sequence[str]:
        """Names of all tensors."""
        return self._checkpoint.names()

    def tensor(self, name: str) -> Tensor:
        """Read one tensor.

        Raises:
            WeightError: It holds NaN or infinity, or numbers that the type cannot hold.
        """
        tensor = self._checkpoint.tensor(name)
        check_numbers(name, tensor, self._dtype)
        return tensor


def check_numbers(name: str, tensor: Tensor, dtype: torch.dtype) -> None:
    """Look through one tensor.

    Args:
        name: What it is called in messages.
        tensor: Weights.
        dtype: What they will be converted to.

    Raises:
        WeightError: It holds NaN or infinity, or numbers that the type cannot hold.
    """
    _require_finite(name, tensor)
    if dtype == torch.float16 and tensor.dtype != torch.float16:
        _require_in_float16(name, tensor)


def _require_finite(name: str, tensor: Tensor) -> None:
    # A sum is finite only if every number is, and costs one pass without a copy. Large but finite
    # numbers may still overflow it, so that only a second look decides.
    if torch.isfinite(tensor.sum(dtype=torch.float32)) or torch.isfinite(tensor).all():
        return
    n_bad = int((~torch.isfinite(tensor)).sum())
    raise WeightError(
        f"{n_bad} of {tensor.numel()} numbers in {name} are NaN or infinite, so the model could "
        "only answer noise; download the weights again, or take a checkpoint from before the "
        "training diverged",
        code="weights-not-finite",
        name=name,
        n_bad=n_bad,
        n_numbers=tensor.numel(),
    )


def _require_in_float16(name: str, tensor: Tensor) -> None:
    largest = 0.0 if tensor.numel() == 0 else float(tensor.abs().max())
    # what rounds to the largest number is still held
    if not torch.isfinite(torch.tensor(largest).to(torch.float16)):
        raise WeightError(
            f"{name} holds {largest:g}, and float16 ends at {FLOAT16_MAX:g}; use bfloat16 "
            "or float32",
            code="weights-overflow",
            name=name,
            largest=f"{largest:g}",
            limit=f"{FLOAT16_MAX:g}",
        )
