"""Blocks whose activations are computed twice, to save memory in training.

    forward     x ─► block ─► y        only x is kept for the backward pass
    backward    x ─► block again ─► activations ─► gradients ─► freed, before the block in front

Chen et al. 2016, arXiv 1604.06174, section 4.3, with one segment per block: the memory of
activations falls from all layers to one layer and the streams between them, for a third more
arithmetic.

The second time has to drop the same values as the first. Dropout draws from an explicit generator,
which has moved on since; it is put back for the recomputation and then forward to where it was.
"""

from contextlib import nullcontext
from types import TracebackType

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from models.forward_pass import ForwardPass


class _GeneratorPutBack:
    """While it lasts, a generator stands where it stood when this was made."""

    def __init__(self, generator: torch.Generator | None) -> None:
        self._generator = generator
        self._then = None if generator is None else generator.get_state()
        self._now: Tensor | None = None

    def __enter__(self) -> None:
        if self._generator is not None and self._then is not None:
            self._now = self._generator.get_state()
            self._generator.set_state(self._then)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._generator is not None and self._now is not None:
            self._generator.set_state(self._now)


def recompute_in_backward(block: nn.Module, x: Tensor, run: ForwardPass) -> Tensor:
    """`block(x, run)`, of which only `x` is kept; gradients are the same bits.

    Args:
        block: Maps a stream to a stream.
        x: (B, T, D).
        run: Without a cache: its keys would be written twice.
    """
    return checkpoint(
        block,
        x,
        run,
        use_reentrant=False,
        preserve_rng_state=False,  # the process-wide one, which nothing draws from
        context_fn=lambda: (nullcontext(), _GeneratorPutBack(run.generator)),
    )
