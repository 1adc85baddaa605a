"""Rotary position embedding: positions as angles.

Queries and keys are cut into d_head / 2 pairs; pair i of the token at position n is turned by

    angle(n, i) = n * frequency(i),    frequency(i) = theta ** (-2 i / d_head)

so that the product of a query at n and a key at m depends on n - m alone
(Su et al. 2021, arXiv 2104.09864, section 3.2.2, eq. 15).

Which numbers form a pair is a convention. Here, as in Hugging Face checkpoints, pair i is
(x[i], x[i + d_head/2]), "split halves"; the paper and Meta's files take neighbours, (x[2i],
x[2i+1]). The two differ by a fixed order of the rows of q_proj and k_proj, undone on loading.

For contexts longer than those of training the low frequencies, whose wavelength reaches beyond
them, are slowed down; the high ones, which tell neighbours apart, are kept:

    pair            0 ............................................ d_head/2 - 1
    wavelength      short                                          long
    linear          / factor everywhere
    llama3, yarn    kept          | blended           | / factor

Tables are pure functions of (config, d_head, positions) and are made anew in each pass: they cost
microseconds, and a cache whose key misses an input (theta!) gives wrong answers silently.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    YarnScaling,
)


def inverse_frequencies(
    config: RopeConfig, d_head: int, n_positions: int = 0
) -> Float[Tensor, "half"]:
    """Radians per token of each pair, fastest first, float32.

    Args:
        config: Base and scaling.
        d_head: Width of a head.
        n_positions: Length of the text, on which dynamic NTK depends; the others do not.
    """
    scaling = config.scaling
    if isinstance(scaling, DynamicNtkScaling):
        return _plain(_grown_base(config.theta, scaling, d_head, n_positions), d_head)
    plain = _plain(config.theta, d_head)
    if isinstance(scaling, LinearScaling):
        return plain / scaling.factor
    if isinstance(scaling, Llama3Scaling):
        return _blend(plain, scaling.factor, llama3_kept_share(scaling, plain))
    if isinstance(scaling, YarnScaling):
        return _blend(plain, scaling.factor, yarn_kept_share(scaling, config.theta, d_head))
    return plain


def _plain(theta: float, d_head: int) -> Tensor:
    exponents = torch.arange(0, d_head, 2, dtype=torch.float32) / d_head
    return 1.0 / (theta**exponents)


def _grown_base(theta: float, scaling: DynamicNtkScaling, d_head: int, n_positions: int) -> float:
    """The base at which the longest wavelength fits the text (Peng et al. 2023, section 3.3)."""
    longer = max(n_positions, scaling.original_context) / scaling.original_context
    growth = scaling.factor * longer - (scaling.factor - 1)
    return float(theta * growth ** (d_head / (d_head - 2)))


def _blend(plain: Tensor, factor: float, kept_share: Tensor) -> Tensor:
    """Between the frequency itself (share 1) and the frequency / factor (share 0)."""
    return kept_share * plain + (1 - kept_share) * plain / factor


def llama3_kept_share(
    scaling: Llama3Scaling, plain: Float[Tensor, "half"]
) -> Float[Tensor, "half"]:
    """How much of each frequency is kept: 1 for short wavelengths, 0 for long ones."""
    turns = scaling.original_context * plain / (2 * math.pi)  # over the original context
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    return ((turns - low) / (high - low)).clamp(0, 1)


def yarn_kept_share(scaling: YarnScaling, theta: float, d_head: int) -> Float[Tensor, "half"]:
    """How much of each frequency is kept, falling in a straight line over the pairs.

    Peng et al. 2023, section 3.2; note that the ramp runs over the *index* of the pair, between
    the pairs that turn beta_fast and beta_slow times over the original context.
    """

    def pair_that_turns(times: float) -> float:
        wavelength = scaling.original_context / times
        return d_head * math.log(wavelength / (2 * math.pi)) / (2 * math.log(theta))

    first, last = pair_that_turns(scaling.beta_fast), pair_that_turns(scaling.beta_slow)
    if scaling.truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, d_head - 1)
    last = last + 0.001 if first == last else last  # a step instead of a division by zero
    pairs = torch.arange(d_head // 2, dtype=torch.float32)
    return 1 - ((pairs - first) / (last - first)).clamp(0, 1)


def rope_tables(
    config: RopeConfig, d_head: int, positions: Int[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T half"], Float[Tensor, "B T half"]]:
    """Cosines and sines of every angle at the given positions, float32.

    YaRN's attention factor is multiplied in: turned queries and keys both carry it, so that scores
    carry its square.
    """
    length = int(positions.max()) + 1 if isinstance(config.scaling, DynamicNtkScaling) else 0
    frequencies = inverse_frequencies(config, d_head, length).to(positions.device)
    angles = positions[..., None].float() * frequencies
    factor = config.scaling.query_key_factor if isinstance(config.scaling, YarnScaling) else 1.0
    return angles.cos() * factor, angles.sin() * factor


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
