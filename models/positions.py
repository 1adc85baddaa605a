"""Sinusoidal positions: a fixed vector of waves for each position, added to the embedding.

    PE(n, 2i)   = sin(n / 10000 ** (2i / D))
    PE(n, 2i+1) = cos(n / 10000 ** (2i / D))

Vaswani et al. 2017 (arXiv 1706.03762), section 3.5. Nothing is trained, and there is no last
position.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

BASE = 10_000.0  # section 3.5


def sinusoidal_positions(positions: Int[Tensor, "B T"], d_model: int) -> Float[Tensor, "B T D"]:
    """The vector of each position, float32; `d_model` is even."""
    exponents = torch.arange(0, d_model, 2, dtype=torch.float32, device=positions.device) / d_model
    angles = positions[..., None].float() * BASE**-exponents
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
