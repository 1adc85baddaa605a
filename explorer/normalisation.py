"""LayerNorm and RMSNorm of one vector, step by step, with the numbers of each step.

    LayerNorm   (x - mean) / sqrt(var + eps)      Ba et al. 2016 (arXiv 1607.06450), eq. 4
    RMSNorm     x / sqrt(mean of squares + eps)   Zhang & Sennrich 2019 (arXiv 1910.07467), eq. 4

The variance is the biased one, divided by n. Dividing by n - 1 estimates the variance of a
population from a sample; here the vector is not a sample of anything, it is all that there is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError

Vector = NDArray[np.float64]
MOST_NUMBERS = 64
MOST_SIZE = 1e9
# The first row of randn(2, 5) after seed 123, through Linear(5, 6) and ReLU.
FIRST_NUMBERS = "0.2260 0.3470 0 0.2216 0 0"


@dataclass(frozen=True, kw_only=True)
class NormSettings:
    """What is normalised.

    Args:
        numbers: Between spaces or commas.
        eps: Under the root.
    """

    numbers: str = field(default=FIRST_NUMBERS, metadata={"text": True})
    eps: float = field(default=1e-5, metadata={"least": 1e-8, "most": 0.5, "step": 1e-8})


@dataclass(frozen=True, kw_only=True, eq=False)
class NormSteps:
    """Every step of both.

    Args:
        x: The vector.
        mean: Of x.
        centred: x - mean.
        variance: Biased, divided by n.
        sample_variance: Divided by n - 1; NaN for one number.
        mean_square: Of x.
        layer_norm: The result of LayerNorm.
        with_sample_variance: What the other variance would give.
        rms_norm: The result of RMSNorm.
    """

    x: Vector
    mean: float
    centred: Vector
    variance: float
    sample_variance: float
    mean_square: float
    layer_norm: Vector
    with_sample_variance: Vector
    rms_norm: Vector


def compute_norm_steps(x: Vector, eps: float) -> NormSteps:
    """Normalise one vector in both ways.

    Args:
        x: (n,).
        eps: Under the root.
    """
    n, mean = len(x), float(x.mean())
    centred = x - mean
    variance, mean_square = float((centred**2).sum() / n), float((x**2).mean())
    sample = float((centred**2).sum() / (n - 1)) if n > 1 else math.nan
    return NormSteps(
        x=x,
        mean=mean,
        centred=centred,
        variance=variance,
        sample_variance=sample,
        mean_square=mean_square,
        layer_norm=centred / math.sqrt(variance + eps),
        with_sample_variance=centred / math.sqrt(sample + eps),
        rms_norm=x / math.sqrt(mean_square + eps),
    )


def parse_numbers(text: str) -> Vector:
    """Read the numbers of a vector.

    Raises:
        ConfigError: Something is no finite number, or there are none or too many.
    """
    words = text.replace(",", " ").split()
    if not 1 <= len(words) <= MOST_NUMBERS:
        raise _not_numbers(f"found {len(words)}")
    try:
        x = np.array([float(word) for word in words])
    except ValueError as error:
        raise _not_numbers(str(error)) from None
    if not (np.abs(x) <= MOST_SIZE).all():
        raise _not_numbers(f"a number is not finite or above {MOST_SIZE:g}")
    return x


def _not_numbers(problem: str) -> ConfigError:
    return ConfigError(
        f"give 1 to {MOST_NUMBERS} numbers between spaces ({problem})",
        code="numbers-wrong",
        most=MOST_NUMBERS,
        problem=problem,
    )
