"""A deep little net with and without shortcuts: how far the gradient reaches.

    without   x = gelu(W x + b)                  with   x = x + gelu(W x + b)

All layers are `width` wide but the last, which gives one number; loss (output - 0)^2. Shown is the
mean absolute gradient of each weight matrix (He et al. 2016, arXiv 1512.03385, section 3). Initial
weights by law:

    torch     U(-1/sqrt(in), 1/sqrt(in))        xavier   N(0, 2 / (in + out))
    he        N(0, 2 / in)                      unit     N(0, 1)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError

if TYPE_CHECKING:
    from torch import Generator, Tensor

LAWS = ("torch", "xavier", "he", "unit")
ACTIVATIONS = ("gelu_tanh", "relu", "silu")


@dataclass(frozen=True, kw_only=True)
class ShortcutSettings:
    """The net.

    Args:
        depth: Layers.
        width: Numbers in each layer but the last.
        law: Of the initial weights.
        activation: After each layer.
        seed: Of the initial weights.
    """

    depth: int = field(default=5, metadata={"least": 1, "most": 60, "step": 1})
    width: int = field(default=3, metadata={"least": 1, "most": 256, "step": 1})
    law: str = field(default="torch", metadata={"choices": LAWS, "dial": True})
    activation: str = field(default="gelu_tanh", metadata={"choices": ACTIVATIONS, "dial": True})
    seed: int = field(default=123, metadata={"least": 0, "most": 9_999, "step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class ShortcutGradients:
    """Mean absolute gradient of each layer's weights, first layer first.

    Args:
        without: (depth,) without shortcuts.
        with_them: (depth,) with them.
    """

    without: NDArray[np.float64]
    with_them: NDArray[np.float64]


def compute_shortcut_gradients(settings: ShortcutSettings) -> ShortcutGradients:
    """One backward pass through the net, with and without shortcuts; the same weights.

    Args:
        settings: The net.

    Raises:
        ConfigError: An unknown law or activation.
    """
    _require(settings.law, "law", LAWS)
    _require(settings.activation, "activation", ACTIVATIONS)
    return ShortcutGradients(
        without=_gradients(settings, shortcuts=False),
        with_them=_gradients(settings, shortcuts=True),
    )


def _require(found: str, name: str, known: tuple[str, ...]) -> None:
    if found not in known:
        raise ConfigError(
            f"{name}={found!r} is unknown; choose {', '.join(known)}",
            code="run-choice",
            name=name,
            found=found,
            known=", ".join(known),
        )


def _gradients(settings: ShortcutSettings, *, shortcuts: bool) -> NDArray[np.float64]:
    import torch

    from models.ffn import activation_function

    activation = activation_function(settings.activation)  # type: ignore[arg-type]
    layers = _draw_layers(settings)
    x = torch.tensor([[1.0, 0.0, -1.0] * (settings.width // 3 + 1)])[:, : settings.width]
    for weight, bias in layers:
        out = activation(x @ weight.T + bias)
        x = x + out if shortcuts and out.shape == x.shape else out
    loss = x.square().mean()
    slopes = torch.autograd.grad(loss, [weight for weight, _ in layers])
    return np.array([float(slope.abs().mean()) for slope in slopes])


def _draw_layers(settings: ShortcutSettings) -> list[tuple[Tensor, Tensor]]:
    import torch

    generator = torch.Generator().manual_seed(settings.seed)
    widths = [settings.width] * settings.depth + [1]
    layers = []
    for n_in, n_out in zip(widths[:-1], widths[1:], strict=True):
        weight, bias = torch.empty(n_out, n_in), torch.empty(n_out)
        _DRAWS[settings.law](weight, bias, generator)
        layers.append((weight.requires_grad_(), bias))
    return layers


def _draw_torch(weight: Tensor, bias: Tensor, generator: Generator) -> None:
    """As `nn.Linear` does, weight before bias: a seed gives the numbers that it gives there."""
    bound = 1 / math.sqrt(weight.shape[1])
    weight.uniform_(-bound, bound, generator=generator)
    bias.uniform_(-bound, bound, generator=generator)


def _draw_normal(std_of: Callable[[int, int], float]) -> Callable[..., None]:
    def draw(weight: Tensor, bias: Tensor, generator: Generator) -> None:
        n_out, n_in = weight.shape
        weight.normal_(0, std_of(n_in, n_out), generator=generator)
        bias.zero_()

    return draw


_DRAWS: dict[str, Callable[..., None]] = {
    "torch": _draw_torch,
    "xavier": _draw_normal(lambda n_in, n_out: math.sqrt(2 / (n_in + n_out))),
    "he": _draw_normal(lambda n_in, n_out: math.sqrt(2 / n_in)),
    "unit": _draw_normal(lambda n_in, n_out: 1.0),
}
