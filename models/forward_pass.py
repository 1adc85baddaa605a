"""What one forward pass carries through the blocks.

Positions, masks, the cache, the trace and the generator of dropout belong to a *run*, not to the
model. They travel together in one frozen value, so that no module has to remember anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from models.cache import KVCache
from models.config import WINDOW, LayerType, ModelConfig
from models.masks import cached_causal_mask, causal_mask
from models.rope import rope_tables
from models.trace import Trace


@dataclass(frozen=True)
class ForwardPass:
    """State of one run through the decoder.

    Args:
        n_tokens: New tokens per row, T.
        device: Where the model is.
        positions: (B, T) position of each token; padding has that of the token before it.
        valid: (B, T) False = padding, or None.
        window: Width of window layers, or None when the model has none.
        rotations: Layer type -> (cosines, sines); empty with learned positions.
        cache: Keys and values of earlier tokens, already grown by this pass.
        slots: (B, T) cache slot of each token, on the CPU.
        trace: Records and edits.
        generator: Source of dropout; None drops nothing.
    """

    n_tokens: int
    device: torch.device
    positions: Tensor
    valid: Tensor | None
    window: int | None
    rotations: Mapping[LayerType, tuple[Tensor, Tensor]]
    cache: KVCache | None = None
    slots: Tensor | None = None
    trace: Trace | None = None
    generator: torch.Generator | None = None

    @cached_property
    def n_keys(self) -> int:
        """Keys that there are, S: those of the cache, new ones included, or just the new ones."""
        return self.n_tokens if self.cache is None else int(self.cache.lengths.max())

    def mask(self, layer_type: LayerType) -> Tensor:
        """(B or 1, 1, T, S) bool, True = may attend."""
        return self._window_mask if layer_type == WINDOW else self._full_mask

    def reaches_all(self, layer_type: LayerType) -> bool:
        """Whether no key is out of reach: always in full layers, in others while S fits."""
        return layer_type != WINDOW or self.window is None or self.n_keys <= self.window

    @cached_property
    def _full_mask(self) -> Tensor:
        return self._build_mask(None)

    @cached_property
    def _window_mask(self) -> Tensor:
        return self._build_mask(self.window)

    def _build_mask(self, window: int | None) -> Tensor:
        if self.cache is None:
            return causal_mask(self.n_tokens, self.valid, self.device, window)
        return cached_causal_mask(self.positions, self.n_keys, window)

    @cached_property
    def in_step(self) -> bool:
        """No padding, and all rows at the same position: then the mask has a short form."""
        if self.valid is not None:
            return False
        return self.slots is None or bool((self.slots == self.slots[0]).all())

    @cached_property
    def from_start(self) -> bool:
        """The new tokens are all there is: queries and keys are the same tokens."""
        return self.slots is None or int(self.slots[:, 0].max()) == 0


def start_pass(
    config: ModelConfig,
    ids: Tensor,
    *,
    valid: Tensor | None,
    cache: KVCache | None,
    trace: Trace | None,
    generator: torch.Generator | None,
) -> ForwardPass:
    """Work out positions, rotations and cache slots for new tokens `ids` (B, T).

    Raises:
        ContextError: The cache has no room for them.
    """
    n_tokens = ids.shape[1]
    slots = None
    if cache is not None:
        slots, _ = cache.claim(n_tokens, valid)
        positions = slots.to(ids.device)
    elif valid is not None:
        positions = (valid.long().cumsum(dim=1) - 1).clamp(min=0)
    else:
        positions = torch.arange(n_tokens, device=ids.device)[None].expand(ids.shape[0], -1)
    rotations = {
        layer_type: rope_tables(rope, config.attention.d_head, positions)
        for layer_type, rope in config.rope.items()
    }
    return ForwardPass(
        n_tokens=n_tokens,
        device=ids.device,
        positions=positions,
        valid=valid,
        window=config.attention.window,
        rotations=rotations,
        cache=cache,
        slots=slots,
        trace=trace,
        generator=generator,
    )
