"""Which key each query may attend to: bool, True = may attend (as SDPA reads it).

    causal, T = 4        with one padded token in front (p)
      k0 k1 k2 k3          p  k0 k1 k2
  q0  ■  ·  ·  ·       p   ■  ·  ·  ·      a padded query sees itself, so that
  q1  ■  ■  ·  ·       q0  ·  ■  ·  ·      softmax has a value; nobody reads it
  q2  ■  ■  ■  ·       q1  ·  ■  ■  ·
  q3  ■  ■  ■  ■       q2  ·  ■  ■  ■

`torch.nn.MultiheadAttention` reads a bool mask the other way round (True = blocked): the same mask
given to both attends only to the future in one of them.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def causal_mask(
    n_tokens: int, valid: Bool[Tensor, "B T"] | None, device: torch.device
) -> Bool[Tensor, "batch 1 T T"]:
    """Each token sees itself and the valid tokens before it, in one row of tokens without cache.

    Args:
        n_tokens: T.
        valid: False marks padding, on either side; None means that there is none.
        device: Where to build it.
    """
    lower = torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=device).tril()
    if valid is None:
        return lower[None, None]
    itself = torch.eye(n_tokens, dtype=torch.bool, device=device)
    return ((lower & valid[:, None, :]) | itself)[:, None]


def cached_causal_mask(positions: Int[Tensor, "B T"], n_keys: int) -> Bool[Tensor, "B 1 T S"]:
    """Each query sees the cache slots up to its own position.

    The cache keeps the token of position n in slot n, without gaps, so that "not later than I" is
    the whole rule; slots beyond a row's length are later than any of its queries.
    """
    slots = torch.arange(n_keys, device=positions.device)
    return (slots <= positions[..., None])[:, None]
