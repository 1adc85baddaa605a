"""LayerNorm and RMSNorm, and none; computed in float32 whatever the model's type.

    LayerNorm   y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias   Ba et al. 2016, eq. 4
    RMSNorm     y = x / sqrt(mean(x^2) + eps) * weight            Zhang & Sennrich 2019, eq. 4
    NoNorm      y = x

The variance is the biased one (divided by n, not n - 1): the vector is not a sample from which
something is estimated, it *is* what gets normalised. Half precision would overflow in x^2 from 256
on (fp16), so the sums are taken in float32 and the result is cast back.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from models.config import NormConfig


class LayerNorm(nn.Module):
    """Centre, scale to unit variance, then weight and bias."""

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))
        self.bias = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*rest D"]) -> Float[Tensor, "*rest D"]:
        """Normalise the last axis."""
        # one kernel for the formula above: six in training, with a copy each, take 6 times as long
        weight, bias = self.weight.float(), self.bias.float()
        return functional.layer_norm(x.float(), weight.shape, weight, bias, self.eps).to(x.dtype)


class RMSNorm(nn.Module):
    """Scale to unit root mean square, then weight; no centring, no bias."""

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x: Float[Tensor, "*rest D"]) -> Float[Tensor, "*rest D"]:
        """Normalise the last axis."""
        x32 = x.float()
        mean_square = x32.square().mean(dim=-1, keepdim=True)
        # cast before the weight, as the Llama reference does: in bf16 the order changes digits
        return self.weight * (x32 * torch.rsqrt(mean_square + self.eps)).to(x.dtype)


class UnitOffsetRMSNorm(nn.Module):
    """RMSNorm whose weight is stored as its distance from 1, so that zeros change nothing.

    Gemma's (Gemma Team 2024, arXiv 2403.08295); its reference multiplies before it casts back.
    """

    def __init__(self, *, d_model: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(d_model))

    def forward(self, x: Float[Tensor, "*rest D"]) -> Float[Tensor, "*rest D"]:
        """Normalise the last axis."""
        x32 = x.float()
        mean_square = x32.square().mean(dim=-1, keepdim=True)
        normalised = x32 * torch.rsqrt(mean_square + self.eps)
        return (normalised * (1.0 + self.weight.float())).to(x.dtype)


class NoNorm(nn.Module):
    """Leaves the vector as it is, to see what training is like without normalisation.

    `weight` holds no number and is not saved; it follows the model to a device and a type, so that
    whoever asks a norm where the model is gets an answer here too.
    """

    weight: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.empty(0, device="cpu"), persistent=False)

    def forward(self, x: Float[Tensor, "*rest D"]) -> Float[Tensor, "*rest D"]:
        """The same vector."""
        return x


Norm = LayerNorm | RMSNorm | UnitOffsetRMSNorm | NoNorm


def build_norm(config: NormConfig, d_model: int) -> Norm:
    """The normalisation that the configuration names, over vectors of `d_model` numbers."""
    if config.kind == "none":
        return NoNorm()
    if config.kind == "layernorm":
        return LayerNorm(d_model=d_model, eps=config.eps)
    kind = UnitOffsetRMSNorm if config.unit_offset else RMSNorm
    return kind(d_model=d_model, eps=config.eps)
