"""The key/value cache: what makes generating token n cost one token and not n.

    slot        0    1    2    3    4 ...  capacity-1
    row 0     [ The  cat  sat            |            ]   lengths[0] = 3
    row 1     [ I    am   very  glad     |            ]   lengths[1] = 4

The token of position n lies in slot n: padding is never stored, so rows may have different lengths
and the mask is "slot <= position". Layers keep what they need, in tensors allocated once:

    full      keys and values (B, K, capacity, d) each
    window    the same, but of the last window + rewind tokens only: a ring, where the token of
              position n lies in slot n mod (window + rewind)
    latent    with `MlaConfig`: one latent and one rotated key a token, whatever the number of heads
              (DeepSeek-V2 2024, arXiv 2405.04434, table 1); may be a window too

A long piece of text that comes at once would push out of the ring what its own first tokens must
see. So it is scored against the tokens before it and itself, and trimmed *after* that.

The cache is an argument of the forward pass, not a part of the model: one model serves many
conversations, and `truncate` rewinds one of them without touching the others.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from models.config import WINDOW, LayerType, ModelConfig
from models.errors import ContextError

NOWHERE = -1  # position of a column that holds no token
REWIND = 32  # a few words: to take back a stop string or a draft


@dataclass(frozen=True)
class Claim:
    """Places for the new tokens of one forward pass; all on the CPU.

    Args:
        slots: (B, T) position of each token; padding has that of the token before it (0 at the
            start), from which it reads and to which it never writes.
        valid: (B, T) False = padding, or None.
        before: (B,) tokens of each row without the new ones.
        after: (B,) tokens of each row with them.
    """

    slots: Tensor
    valid: Tensor | None
    before: Tensor
    after: Tensor

    @property
    def n_keys(self) -> int:
        """Length of the longest row, S."""
        return int(self.after.max())

    @property
    def in_step(self) -> bool:
        """Whether all rows are at the same position and none has padding."""
        return self.valid is None and bool((self.slots == self.slots[0]).all())


class KVCache:
    """Keys and values of all layers for a batch of rows.

    Args:
        config: The model's configuration.
        batch: Rows, B.
        capacity: Tokens that a row can hold.
        dtype: Type of keys and values: the model's.
        device: Where they live: the model's.
        rewind: How many tokens `truncate` can take back where the model has window layers; each
            costs one more slot in them.
    """

    def __init__(
        self,
        config: ModelConfig,
        batch: int,
        capacity: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        rewind: int = REWIND,
    ) -> None:
        self.capacity = capacity
        self.lengths = torch.zeros(batch, dtype=torch.int64)  # on the CPU: read at every step
        self._reached = self.lengths.clone()  # longest that each row has been
        self._layer_types = config.layer_types
        self._window = config.attention.window or capacity
        self._ring = min(capacity, self._window + rewind)
        n_heads, widths = _kept_of_a_token(config)

        def allocate(width: int) -> list[Tensor]:
            return [
                torch.zeros(batch, n_heads, slots, width, dtype=dtype, device=device)
                for slots in map(self._n_slots, config.layer_types)
            ]

        self._first, self._second = allocate(widths[0]), allocate(widths[1])

    @property
    def nbytes(self) -> int:
        """Bytes allocated for keys and values."""
        return sum(tensor.nbytes for tensor in (*self._first, *self._second))

    def truncate(self, length: int) -> None:
        """Forget every token from position `length` on, in all rows. Nothing is copied.

        Raises:
            ContextError: Window layers have dropped tokens that the next one would see.
        """
        if length < 0:
            raise ContextError(f"length={length} is below 0; give the tokens to keep, 0 for none")
        shorter = self.lengths > length
        oldest_seen = max(0, length - self._window + 1)
        lost = shorter & (self._reached - self._ring > oldest_seen)
        if WINDOW in self._layer_types and length > 0 and bool(lost.any()):
            longest = int(self._reached[lost].max())
            possible = longest - (self._ring - self._window) - 1
            raise ContextError(
                f"the cache cannot go back from {longest} tokens to {length}: window layers keep "
                f"the last {self._ring}; go back to {possible} at the least, to 0, or make the "
                f"cache with rewind={longest - length}",
                code="context-rewind",
                asked=length,
                held=longest,
                possible=possible,
            )
        # new tensors: those that a pass in inference mode made cannot be changed outside it
        self.lengths = self.lengths.clamp(max=length)
        self._reached = torch.where(self.lengths == 0, 0, self._reached)

    def select_rows(self, rows: Int[Tensor, "B"]) -> None:
        """Let row i go on from what row `rows[i]` holds; beams change places this way."""
        on_device = rows.to(self._first[0].device)
        for tensors in (self._first, self._second):
            for layer, tensor in enumerate(tensors):
                tensors[layer] = tensor.index_select(0, on_device)
        self.lengths, self._reached = self.lengths[rows], self._reached[rows]

    def claim(self, n_tokens: int, valid: Bool[Tensor, "B T"] | None) -> Claim:
        """Reserve slots for the next tokens and grow `lengths`.

        Raises:
            ContextError: A row would hold more than `capacity` tokens.
        """
        before = self.lengths
        counts = torch.ones(before.shape[0], n_tokens, dtype=torch.int64)
        if valid is not None:
            valid = valid.cpu()
            counts = valid.long()
        slots = (before[:, None] + counts.cumsum(dim=1) - 1).clamp(min=0)
        after = before + counts.sum(dim=1)
        if int(after.max()) > self.capacity:
            raise ContextError(
                f"the cache holds {self.capacity} tokens a row, {int(after.max())} were asked for; "
                "shorten the text or make a cache with more capacity",
                code="context-cache-full",
                capacity=self.capacity,
                asked=int(after.max()),
            )
        self.lengths = after.clone()
        self._reached = torch.maximum(self._reached, after)
        return Claim(slots=slots, valid=valid, before=before.clone(), after=after)

    def give_back(self, claim: Claim) -> None:
        """Undo a claim whose pass failed: its tokens were not read, and its slots are free."""
        self.lengths = claim.before.clone()

    def write(
        self,
        layer: int,
        first: Float[Tensor, "B K T d"],
        second: Float[Tensor, "B K T e"],
        claim: Claim,
    ) -> tuple[Tensor, Tensor]:
        """Store new keys and values (latents and rotated keys) and return those to attend to.

        They are (B, K, S, ...), column n holding position n, unless `key_positions` says otherwise.
        """
        n_slots = self._n_slots(self._layer_types[layer])
        found = []
        for kept, new in ((self._first[layer], first), (self._second[layer], second)):
            if self._comes_at_once(n_slots, claim):
                before = _gather(kept, _last_positions(claim, self._window))
                _store(kept, new, claim)
                found.append(torch.cat([before, new], dim=2))
            else:
                _store(kept, new, claim)
                found.append(kept[:, :, : claim.n_keys])
        return found[0], found[1]

    def key_positions(self, layer_type: LayerType, claim: Claim) -> Int[Tensor, "B S"] | None:
        """Position of the token in each column that `write` returns; None when column n holds n.

        `NOWHERE` marks columns without a token. On the CPU.
        """
        n_slots = self._n_slots(layer_type)
        if claim.n_keys <= n_slots:
            return None
        if not self._comes_at_once(n_slots, claim):
            newest = claim.after.clamp(min=1)[:, None] - 1  # a row of padding alone reads slot 0
            positions = newest - (newest - torch.arange(n_slots)) % n_slots
            return positions.clamp(min=NOWHERE)
        before = _last_positions(claim, self._window).clamp(min=NOWHERE)
        new = claim.slots.clone()
        if claim.valid is not None:
            new[~claim.valid] = NOWHERE
            new[claim.after == 0, 0] = 0  # softmax needs one key
        return torch.cat([before, new], dim=1)

    def _n_slots(self, layer_type: LayerType) -> int:
        return self._ring if layer_type == WINDOW else self.capacity

    def _comes_at_once(self, n_slots: int, claim: Claim) -> bool:
        """Whether storing all new tokens would push out what the first of them must see."""
        return claim.n_keys > n_slots and claim.slots.shape[1] > n_slots - self._window + 1


def _kept_of_a_token(config: ModelConfig) -> tuple[int, tuple[int, int]]:
    """Heads that are kept apart, and the widths of the two vectors kept of each."""
    heads, mla = config.attention, config.mla
    if mla is not None:
        return 1, (mla.latent_width(config.d_model), mla.qk_rope_head_dim)
    return heads.n_kv_heads, (heads.d_head, heads.d_head)


def _last_positions(claim: Claim, window: int) -> Int[Tensor, "B S"]:
    """Those before the new tokens that they can see, oldest first; below 0 where there is none."""
    # at least one: padding reads the token before it even in a window of 1
    n_seen = min(max(window - 1, 1), int(claim.before.max()))
    return claim.before[:, None] - n_seen + torch.arange(n_seen)


def _gather(kept: Tensor, positions: Tensor) -> Tensor:
    """Copy the tokens of those positions out of the ring (B, K, slots, d)."""
    slots = (positions.clamp(min=0) % kept.shape[2]).to(kept.device)
    index = slots[:, None, :, None].expand(-1, kept.shape[1], -1, kept.shape[3])
    return kept.gather(2, index)


def _store(kept: Tensor, new: Tensor, claim: Claim) -> None:
    """Write new tokens to their slots; of more than fit into the ring, the last ones.

    Rows that move in step, without padding, are written as a plain slice; others token by token.
    """
    n_slots, start = kept.shape[2], int(claim.slots[0, 0]) % kept.shape[2]
    if claim.in_step and start + new.shape[2] <= n_slots:
        kept[:, :, start : start + new.shape[2]] = new
        return
    fits = claim.slots >= claim.after[:, None] - n_slots
    if claim.valid is not None:
        fits &= claim.valid
    rows, columns = torch.nonzero(fits, as_tuple=True)
    kept[rows, :, claim.slots[rows, columns] % n_slots] = new[rows, :, columns]
