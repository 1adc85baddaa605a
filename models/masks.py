"""Which key each query may attend to: bool, True = may attend (as SDPA reads it).

    causal, T = 4        with one padded token in front (p)      window of 2
      k0 k1 k2 k3          p  k0 k1 k2                             k0 k1 k2 k3
  q0  ■  ·  ·  ·       p   ■  ·  ·  ·                          q0  ■  ·  ·  ·
  q1  ■  ■  ·  ·       q0  ·  ■  ·  ·                          q1  ■  ■  ·  ·
  q2  ■  ■  ■  ·       q1  ·  ■  ■  ·                          q2  ·  ■  ■  ·
  q3  ■  ■  ■  ■       q2  ·  ■  ■  ■                          q3  ·  ·  ■  ■

A padded query sees itself, so that softmax has a value; nobody reads it. A window counts the query:
width 2 is the token itself and one before it.

`torch.nn.MultiheadAttention` reads a bool mask the other way round (True = blocked): the same mask
given to both attends only to the future in one of them.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(
    n_tokens: int,
    valid: Bool[Tensor, "B T"] | None,
    device: torch.device,
    window: int | None = None,
) -> Bool[Tensor, "batch 1 T T"]:
    """Each token sees itself and the valid tokens before it, in one row of tokens without cache.

    Args:
        n_tokens: T.
        valid: False marks padding, on either side; None means that there is none.
        device: Where to build it.
        window: How many keys a query sees, itself counted; None sees all.
    """
    lower = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=device).tril()
    if window is not None:
        lower &= lower.new_ones(lower.shape).triu(1 - window)
    if valid is None:
        return lower[None, None]
    itself = torch.eye(n_tokens, dtype=torch.bool, device=device)
    return ((lower & valid[:, None, :]) | itself)[:, None]


def mutual_mask(
    n_tokens: int, valid: Bool[Tensor, "B T"] | None, device: torch.device
) -> Bool[Tensor, "batch 1 T T"]:
    """Each token sees itself and all valid ones, before and after it: in an encoder."""
    if valid is None:
        return torch.ones(1, 1, n_tokens, n_tokens, dtype=torch.bool, device=device)
    itself = torch.eye(n_tokens, dtype=torch.bool, device=device)
    return (valid[:, None, :] | itself)[:, None]


def cached_causal_mask(
    positions: Int[Tensor, "B T"], n_keys: int, window: int | None = None
) -> Bool[Tensor, "B 1 T S"]:
    """Each query sees the cache slots up to its own position.

    The cache keeps the token of position n in slot n, without gaps, so that "not later than I, and
    not further back than the window" is the whole rule; slots beyond a row's length are later than
    any of its queries.
    """
    slots = torch.arange(n_keys, device=positions.device)
    return placed_causal_mask(positions, slots[None], window)


def placed_causal_mask(
    positions: Int[Tensor, "B T"], key_positions: Int[Tensor, "keys S"], window: int | None = None
) -> Bool[Tensor, "B 1 T S"]:
    """The same rule for keys in any order.

    Args:
        positions: Of the queries.
        key_positions: Of the keys, one row or one for each row of queries; -1 marks columns that
            hold no token.
        window: How many keys a query sees, itself counted; None sees all.
    """
    queries, keys = positions[..., None], key_positions[:, None]
    seen = (keys >= 0) & (keys <= queries)
    if window is not None:
        seen &= keys > queries - window
    return seen[:, None]
