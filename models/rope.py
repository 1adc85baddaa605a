"""Rotary position embedding: positions as angles.

Queries and keys are cut into d_head / 2 pairs; pair i of the token at position n is turned by

    angle(n, i) = n * theta ** (-2 i / d_head)

so that the product of a query at n and a key at m depends on n - m alone
(Su et al. 2021, arXiv 2104.09864, section 3.2.2, eq. 15).

Which numbers form a pair is a convention. Here, as in Hugging Face checkpoints, pair i is
(x[i], x[i + d_head/2]), "split halves"; the paper and Meta's files take neighbours, (x[2i],
x[2i+1]). The two differ by a fixed order of the rows of q_proj and k_proj, undone on loading.

Tables are pure functions of (config, d_head, positions) and are made anew in each pass: they cost
microseconds, and a cache whose key misses an input (theta!) gives wrong answers silently.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.config import RopeConfig


def inverse_frequencies(config: RopeConfig, d_head: int) -> Float[Tensor, "half"]:
    """Radians per token of each pair, fastest first, float32."""
    exponents = torch.arange(0, d_head, 2, dtype=torch.float32) / d_head
    return 1.0 / (config.theta**exponents)


def rope_tables(
    config: RopeConfig, d_head: int, positions: Int[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T half"], Float[Tensor, "B T half"]]:
    """Cosines and sines of every angle at the given positions, float32."""
    frequencies = inverse_frequencies(config, d_head).to(positions.device)
    angles = positions[..., None].float() * frequencies
    return angles.cos(), angles.sin()


def rotate(
    x: Float[Tensor, "B heads T d"],
    cosines: Float[Tensor, "B T half"],
    sines: Float[Tensor, "B T half"],
) -> Float[Tensor, "B heads T d"]:
    """Turn each pair (x[i], x[i + d/2]) by its angle: a 2 x 2 rotation, written out."""
    first, second = x.float().chunk(2, dim=-1)
    cosines, sines = cosines[:, None], sines[:, None]  # one table for all heads
    turned = (first * cosines - second * sines, second * cosines + first * sines)
    return torch.cat(turned, dim=-1).to(x.dtype)
