"""Saved state: what it must agree with before training goes on from it, and how it is laid out."""

from collections.abc import Iterable
from pickle import UnpicklingError
from typing import Any

from torch import Tensor

from explorer.errors import ExplorerError, WeightError

# What `torch.load`, `load_model` and a state raise for files that were cut, overwritten or
# exchanged.
UNREADABLE = (
    ExplorerError,
    UnpicklingError,
    OSError,
    RuntimeError,
    ValueError,
    TypeError,
    EOFError,
    LookupError,
)


def make_state_error(problem: str) -> WeightError:
    """The error for a state that belongs to another run."""
    return WeightError(
        f"the saved training state does not fit this run ({problem}); take the checkpoint that "
        "belongs to its configuration, or begin a new run from the weights alone",
        code="training-state",
        problem=problem,
    )


def require_same_names(found: Iterable[str], expected: Iterable[str]) -> None:
    """Refuse a state of other parameters.

    Raises:
        WeightError: A name is missing or too many.
    """
    if different := sorted(set(found) ^ set(expected)):
        raise make_state_error(f"parameters differ: {', '.join(different[:3])}")


def require_same_shape(name: str, found: Tensor, expected: Tensor) -> None:
    """Refuse a state of a parameter of another shape.

    Raises:
        WeightError: The shapes differ.
    """
    if found.shape != expected.shape:
        raise make_state_error(f"{name} is {tuple(found.shape)}, not {tuple(expected.shape)}")


def lay_out_like(saved: Tensor, parameter: Any) -> Tensor:
    """A copy of a saved tensor as the parameter is: on its device, and in parts where it is.

    Under `fully_shard` each process holds a part; all call this together with the whole.
    """
    saved = saved.detach().to(parameter.device, copy=True)
    if saved.ndim == 0 or not hasattr(parameter, "device_mesh"):  # a count is whole everywhere
        return saved
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(saved, parameter.device_mesh, parameter.placements)
