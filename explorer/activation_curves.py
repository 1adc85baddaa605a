"""Nonlinearities of the feed-forward layer, their slopes, and what a gate makes of them.

    relu       max(0, x)                  gelu        x Phi(x)
    silu       x / (1 + e^-x)             gelu_tanh   x (1 + tanh(√(2/π) (x + 0.044715 x^3))) / 2
    gated      act(g) u                   SwiGLU with silu (Shazeer 2020, arXiv 2002.05202, eq. 6)

The functions are those of `models/ffn.py`; slopes come from autograd.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError
from models.config import Activation

NAMES: tuple[str, ...] = get_args(Activation)
GATED_BY = (-2.0, -1.0, 0.5, 1.0, 2.0)
N_POINTS = 241


@dataclass(frozen=True, kw_only=True)
class ActivationSettings:
    """What is drawn.

    Args:
        reach: From -reach to reach.
        gate: The nonlinearity of the gate.
    """

    reach: float = field(default=4.0, metadata={"least": 0.5, "most": 10.0, "step": 0.5})
    gate: str = field(default="silu", metadata={"choices": NAMES, "dial": True})


@dataclass(frozen=True, kw_only=True, eq=False)
class ActivationCurves:
    """Functions and slopes at the same places.

    Args:
        x: (n,).
        values: Name -> (n,).
        slopes: Name -> (n,).
        gated: Value of the other branch -> act(x) times it, (n,).
    """

    x: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]
    slopes: dict[str, NDArray[np.float64]]
    gated: dict[float, NDArray[np.float64]]


def compute_activation_curves(settings: ActivationSettings) -> ActivationCurves:
    """Evaluate every nonlinearity and its slope.

    Args:
        settings: How far, and which one gates.

    Raises:
        ConfigError: There is no such nonlinearity.
    """
    import torch

    from models.ffn import activation_function

    if settings.gate not in NAMES:
        known = ", ".join(NAMES)
        raise ConfigError(
            f"gate={settings.gate!r} is unknown; choose {known}",
            code="run-choice",
            name="gate",
            found=settings.gate,
            known=known,
        )
    places = torch.linspace(-settings.reach, settings.reach, N_POINTS, dtype=torch.float64)
    values, slopes = {}, {}
    for name in NAMES:
        x = places.clone().requires_grad_()
        y = activation_function(name)(x)  # type: ignore[arg-type]
        (slope,) = torch.autograd.grad(y.sum(), x)
        values[name], slopes[name] = y.detach().numpy(), slope.numpy()
    gated = {up: values[settings.gate] * up for up in GATED_BY}
    return ActivationCurves(x=places.numpy(), values=values, slopes=slopes, gated=gated)
