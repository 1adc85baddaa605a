"""Python that takes the step by hand again, for "Copy as Python"."""

from __future__ import annotations

import numpy as np

from explorer.snippets import make_snippet
from explorer.training.by_hand import TinyNet, TinySettings, take_tiny_step


def make_by_hand_snippet(net: TinyNet, settings: TinySettings) -> str:
    """Python that gives the same losses and gradients."""
    values = ", ".join(f"{name}={value!r}" for name, value in vars(settings).items())
    return make_snippet(
        (TinyNet, TinySettings, take_tiny_step),
        "import numpy as np",
        "",
        f"net = {TinyNet.__name__}(",
        f"    x=np.array({net.x.tolist()}),",
        f"    w1=np.array({net.w1.tolist()}),",
        f"    w2=np.array({net.w2.tolist()}),",
        f"    target={net.target},",
        ")",
        f"step = {take_tiny_step.__name__}(net, {TinySettings.__name__}({values}))",
        "print(step.loss, step.loss_after)",
        "print(step.by_formula.w1, step.by_autograd.w1, step.by_differences.w1)",
        "print(step.after.w1, step.after.w2)",
    )


def say_matrix(matrix: np.ndarray) -> str:
    """A matrix as it is typed: a row a line."""
    return "\n".join(" ".join(f"{number:g}" for number in row) for row in np.atleast_2d(matrix))
