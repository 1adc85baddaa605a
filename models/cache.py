"""The key/value cache: what makes generating token n cost one token and not n.

    slot        0    1    2    3    4 ...  capacity-1
    row 0     [ The  cat  sat            |            ]   lengths[0] = 3
    row 1     [ I    am   very  glad     |            ]   lengths[1] = 4

Per layer two tensors (B, K, capacity, d_head), allocated once. The token of position n lies in slot
n: padding is never stored, so rows may have different lengths and the mask is "slot <= position".

The cache is an argument of the forward pass, not a part of the model: one model serves many
conversations, and `truncate` rewinds one of them without touching the others.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.config import ModelConfig
from models.errors import ContextError


class KVCache:
    """Keys and values of all layers for a batch of rows.

    Args:
        config: The model's configuration.
        batch: Rows, B.
        capacity: Tokens that a row can hold.
        dtype: Type of keys and values: the model's.
        device: Where they live: the model's.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch: int,
        capacity: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        heads = config.attention
        shape = (config.n_layers, batch, heads.n_kv_heads, capacity, heads.d_head)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)
        self.capacity = capacity
        self.lengths = torch.zeros(batch, dtype=torch.int64)  # on the CPU: read at every step

    @property
    def nbytes(self) -> int:
        """Bytes allocated for keys and values."""
        return self.keys.nbytes + self.values.nbytes

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on, in all rows. Nothing is copied."""
        self.lengths.clamp_(max=length)

    def claim(
        self, n_tokens: int, valid: Bool[Tensor, "B T"] | None
    ) -> tuple[Int[Tensor, "B T"], Bool[Tensor, "B T"] | None]:
        """Reserve slots for the next tokens and grow `lengths`; returns (slots, valid), on the CPU.

        A slot is the token's position. Padding gets the slot before it (0 at the start), from which
        it reads and to which it never writes.

        Raises:
            ContextError: A row would hold more than `capacity` tokens.
        """
        rows = self.lengths.shape[0]
        counts = torch.ones(rows, n_tokens, dtype=torch.int64)
        if valid is not None:
            valid = valid.cpu()
            counts = valid.long()
        slots = (self.lengths[:, None] + counts.cumsum(dim=1) - 1).clamp(min=0)
        grown = self.lengths + counts.sum(dim=1)
        if int(grown.max()) > self.capacity:
            raise ContextError(
                f"the cache holds {self.capacity} tokens a row, {int(grown.max())} were asked for; "
                "shorten the text or make a cache with more capacity",
                code="context-cache-full",
                capacity=self.capacity,
                asked=int(grown.max()),
            )
        self.lengths = grown
        return slots, valid

    def write(
        self,
        layer: int,
        keys: Float[Tensor, "B K T d"],
        values: Float[Tensor, "B K T d"],
        slots: Int[Tensor, "B T"],
        valid: Bool[Tensor, "B T"] | None,
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values (B, K, T, d) and return all of them, (B, K, S, d).

        S is the longest row's length. Rows that move in step, without padding, are written and read
        as plain slices; others token by token.
        """
        n_keys = int(self.lengths.max())
        if valid is None and bool((slots == slots[0]).all()):
            start, stop = int(slots[0, 0]), int(slots[0, -1]) + 1
            self.keys[layer, :, :, start:stop] = keys
            self.values[layer, :, :, start:stop] = values
        else:
            rows, columns = torch.nonzero(
                torch.ones_like(slots, dtype=torch.bool) if valid is None else valid, as_tuple=True
            )
            targets = slots[rows, columns]
            self.keys[layer][rows, :, targets] = keys[rows, :, columns]
            self.values[layer][rows, :, targets] = values[rows, :, columns]
        return self.keys[layer, :, :, :n_keys], self.values[layer, :, :, :n_keys]
