"""What a saved state must agree with before training goes on from it."""

from collections.abc import Iterable

from torch import Tensor

from explorer.errors import WeightError


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
