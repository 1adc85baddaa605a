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

from models.cache import Claim, KVCache
from models.config import WINDOW, LayerType, ModelConfig
from models.masks import cached_causal_mask, causal_mask, mutual_mask, placed_causal_mask
from models.rope import rope_tables
from models.trace import Trace


@dataclass(frozen=True)
class Memory:
    """What an encoder has made of its text.

    Args:
        states: (B, S, D), its last stream.
        valid: (B, S) False = padding, or None.
        keys_values: Per decoder block the keys and values read from it, (B, K, S, d) each, where
            they were computed once for many passes; empty computes them in each.
    """

    states: Tensor
    valid: Tensor | None = None
    keys_values: tuple[tuple[Tensor, Tensor], ...] = ()

    @cached_property
    def mask(self) -> Tensor:
        """(B, 1, 1, S) bool, True = may be read; of a row of padding alone, all."""
        if self.valid is None:
            rows, n_keys = self.states.shape[:2]
            return torch.ones(rows, 1, 1, n_keys, dtype=torch.bool, device=self.states.device)
        return (self.valid | ~self.valid.any(dim=1, keepdim=True))[:, None, None]

    def repeat_row(self, n_rows: int) -> Memory:
        """The same text for each of so many rows; this one holds one row."""
        return Memory(
            states=self.states.expand(n_rows, -1, -1),
            valid=None if self.valid is None else self.valid.expand(n_rows, -1),
            keys_values=tuple(
                (k.expand(n_rows, -1, -1, -1), v.expand(n_rows, -1, -1, -1))
                for k, v in self.keys_values
            ),
        )


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
        claim: Places of the new tokens in the cache, or None.
        trace: Records and edits.
        generator: Source of dropout; None drops nothing.
        prefix: In front of all names in the trace: the side of an encoder-decoder.
        is_causal: Whether tokens see only those before them; in an encoder they see all.
        memory: What a decoder reads from its encoder, or None.
    """

    n_tokens: int
    device: torch.device
    positions: Tensor
    valid: Tensor | None
    window: int | None
    rotations: Mapping[LayerType, tuple[Tensor, Tensor]]
    cache: KVCache | None = None
    claim: Claim | None = None
    trace: Trace | None = None
    generator: torch.Generator | None = None
    prefix: str = ""
    is_causal: bool = True
    memory: Memory | None = None

    @cached_property
    def n_keys(self) -> int:
        """Positions that there are, S: those in the cache, new ones included, or just the new."""
        return self.n_tokens if self.claim is None else self.claim.n_keys

    def mask(self, layer_type: LayerType) -> Tensor:
        """(B or 1, 1, T, S) bool, True = may attend, over the keys as they come."""
        if layer_type != WINDOW:
            return self._full_mask
        return self._window_mask if self.window_key_positions is None else self._kept_window_mask

    def mask_by_position(self, layer_type: LayerType) -> Tensor:
        """(B or 1, 1, T, S) bool, True = may attend, over positions 0 to S - 1."""
        return self._window_mask if layer_type == WINDOW else self._full_mask

    def key_positions(self, layer_type: LayerType) -> Tensor | None:
        """(B, S) position of each key as they come, -1 = none; None when they come in order."""
        return self.window_key_positions if layer_type == WINDOW else None

    def reaches_all(self, layer_type: LayerType) -> bool:
        """Whether no key is out of reach: always in full layers, in others while S fits."""
        return layer_type != WINDOW or self.window is None or self.n_keys <= self.window

    @cached_property
    def window_key_positions(self) -> Tensor | None:
        """`key_positions` of window layers, worked out once for all of them."""
        if self.cache is None or self.claim is None:
            return None
        positions = self.cache.key_positions(WINDOW, self.claim)
        return None if positions is None else positions.to(self.device)

    @cached_property
    def _full_mask(self) -> Tensor:
        return self._build_mask(None)

    @cached_property
    def _window_mask(self) -> Tensor:
        return self._build_mask(self.window)

    @cached_property
    def _kept_window_mask(self) -> Tensor:
        assert self.window_key_positions is not None
        return placed_causal_mask(self.positions, self.window_key_positions, self.window)

    def _build_mask(self, window: int | None) -> Tensor:
        if not self.is_causal:
            return self._build_mutual_mask()
        if self.claim is None:
            return causal_mask(self.n_tokens, self.valid, self.device, window)
        return cached_causal_mask(self.positions, self.n_keys, window)

    def _build_mutual_mask(self) -> Tensor:
        if self.claim is None:
            return mutual_mask(self.n_tokens, self.valid, self.device)
        # each query reaches as far as the last one of its row
        last = self.positions.amax(dim=1, keepdim=True).expand_as(self.positions)
        return cached_causal_mask(last, self.n_keys)

    @cached_property
    def in_step(self) -> bool:
        """No padding, and all rows at the same position: then the mask has a short form."""
        return self.valid is None and (self.claim is None or self.claim.in_step)

    @cached_property
    def from_start(self) -> bool:
        """The new tokens are all there is: queries and keys are the same tokens."""
        return self.claim is None or int(self.claim.before.max()) == 0


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
    claim = None
    if cache is not None:
        claim = cache.claim(n_tokens, valid)
        positions = claim.slots.to(ids.device)
    elif valid is not None:
        positions = (valid.long().cumsum(dim=1) - 1).clamp(min=0)
    else:
        positions = torch.arange(n_tokens, device=ids.device)[None].expand(ids.shape[0], -1)
    rotations = {
        layer_type: rope_tables(rope, config.rotary_width, positions)
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
        claim=claim,
        trace=trace,
        generator=generator,
        is_causal=config.attention.causal,
    )
