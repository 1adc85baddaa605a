"""Dropout from an explicit generator.

`torch.nn.Dropout` draws from the process-wide generator; here one process serves many visitors and
runs, each of which must be repeatable, so the generator is an argument. The same seed gives the
same mask as `torch.nn.functional.dropout` after `torch.manual_seed(seed)`.

Whether a pass drops anything is decided by the argument, not by `.train()` and `.eval()`: no
generator, no dropout. A model has no mode that one visitor could switch under another.
"""

import torch
from torch import Tensor


def dropout(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Zero each value with probability `rate` and divide the rest by 1 - rate.

    The division keeps the expected value, so that nothing has to change when dropout is off
    (Srivastava et al. 2014, section 10, "inverted dropout").

    Args:
        x: Any float tensor.
        rate: At least 0 and below 1.
        generator: Source of the draws, on x's device; None returns x unchanged.
    """
    if generator is None or rate == 0.0:
        return x
    keep = torch.empty_like(x).bernoulli_(1 - rate, generator=generator)
    return x * keep.div_(1 - rate)
