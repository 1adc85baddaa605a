"""Where the first NaN or infinity comes from, once a loss or a gradient is not finite.

A loss says that something went wrong, not where. Numbers flow one way, so the first tensor in the
order of the pass that is not finite is the place to look: weights, then activations from the
embedding to the logits, then gradients.
"""

import torch
from torch import Tensor, nn

from models.trace import Trace


class _FirstNonFinite(Trace):
    """A trace that looks at every activation and keeps none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: str | None = None

    def wants(self, name: str) -> bool:
        """All of them, scores and patterns too."""
        return True

    def visit(self, name: str, tensor: Tensor) -> Tensor:
        """Look, and let it pass."""
        if self.found is None and not _is_finite(tensor):
            self.found = name
        return tensor


def find_non_finite(
    model: nn.Module, *texts: Tensor, generator: torch.Generator | None = None
) -> str | None:
    """Name of the first tensor that holds NaN or infinity, or None.

    Args:
        model: With the weights and gradients of the step that went wrong.
        *texts: (B, T), what it read: one text, or a source and a target.
        generator: Of dropout, where it stood before that step, so that the same is dropped.

    Returns:
        A parameter's name (`blocks.0.attn.q_proj.weight`), an activation's as in `models/trace.py`
        (`blocks.0.attn.scores`), or a parameter's name with `.grad` behind it.
    """
    for name, parameter in model.named_parameters():
        if not _is_finite(parameter):
            return name
    trace = _FirstNonFinite()
    with torch.no_grad():
        model(*texts, trace=trace, generator=generator)
    return trace.found or _find_gradient(model)


def _find_gradient(model: nn.Module) -> str | None:
    """From the last parameter to the first: the order of the backward pass."""
    for name, parameter in reversed(list(model.named_parameters())):
        if parameter.grad is not None and not _is_finite(parameter.grad):
            return f"{name}.grad"
    return None


def _is_finite(tensor: Tensor) -> bool:
    return bool(torch.isfinite(tensor.detach()).all())
