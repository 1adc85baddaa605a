"""Nine ways to compute the same causal multi-head attention, each a small module.

All have the same weights (queries, keys, values and the output projection, with a bias on the last)
and give the same numbers to 1e-5; what differs is how many products they make, what they keep in
memory, and what PyTorch does for them. Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.

Two traps are in here on purpose, and handled:

- `nn.MultiheadAttention` reads a bool mask as "is blocked", `scaled_dot_product_attention` as "may
  attend". The same mask given to both attends only to the future in one of them.
- `nn.MultiheadAttention` has an output projection of its own: a second one behind it would be a
  different layer.

FlexAttention (PyTorch 2.5, `torch.nn.attention.flex_attention`) has a backward pass only on a GPU;
without compiling it computes all scores, as the formula does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional


class Way(nn.Module):
    """What all ways share: the weights.

    Args:
        d_model: Width of the stream.
        n_heads: Heads; the width of a head is d_model / n_heads.
    """

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__()
        self.n_heads = n_heads
        self.d_head = d_model // n_heads
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model)

    def take(self, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, bias: Tensor) -> None:
        """Take over weights, each (out, in), as `nn.Linear` keeps them."""
        given = zip(self._projections(), (w_q, w_k, w_v, w_o), strict=True)
        for layer, weight in given:
            layer.weight.copy_(weight)
        self.o_proj.bias.copy_(bias)

    def _projections(self) -> tuple[nn.Linear, ...]:
        return self.q_proj, self.k_proj, self.v_proj, self.o_proj

    def _split(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, H, T, d)."""
        return x.unflatten(-1, (self.n_heads, self.d_head)).transpose(1, 2)

    def _join(self, z: Tensor) -> Tensor:
        """(B, H, T, d) -> (B, T, D), through the output projection."""
        return self.o_proj(z.transpose(1, 2).flatten(2))


class HeadsInAList(Way):
    """One head after the other, with its own rows of each matrix; the results side by side."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        said = []
        for head in range(self.n_heads):
            rows = slice(head * self.d_head, (head + 1) * self.d_head)
            q, k, v = (functional.linear(x, p.weight[rows]) for p in self._projections()[:3])
            said.append(_attend(q, k, v))
        return self.o_proj(torch.cat(said, dim=-1))


class SplitHeads(Way):
    """One product for all heads, then cut into heads: an axis more."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = (self._split(p(x)) for p in self._projections()[:3])
        return self._join(_attend(q, k, v))


class FusedQkv(Way):
    """Queries, keys and values from one matrix (3 D, D)."""

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__(d_model, n_heads)
        del self.q_proj, self.k_proj, self.v_proj
        self.qkv_proj = nn.Linear(d_model, 3 * d_model, bias=False)

    def take(self, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, bias: Tensor) -> None:
        """Take over weights; the three stand below each other."""
        self.qkv_proj.weight.copy_(torch.cat([w_q, w_k, w_v]))
        self.o_proj.weight.copy_(w_o)
        self.o_proj.bias.copy_(bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = (self._split(part) for part in self.qkv_proj(x).chunk(3, dim=-1))
        return self._join(_attend(q, k, v))


class Einsum(Way):
    """Every product as a sum over named axes, with the matrices cut into heads instead of x."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        shape = (self.n_heads, self.d_head)
        q, k, v = (
            torch.einsum("btm,hdm->bhtd", x, p.weight.unflatten(0, shape))
            for p in self._projections()[:3]
        )
        scores = torch.einsum("bhtd,bhsd->bhts", q, k) / self.d_head**0.5
        weights = _mask_future(scores).softmax(dim=-1)
        z = torch.einsum("bhts,bhsd->bhtd", weights, v)
        w_o = self.o_proj.weight.unflatten(1, shape)
        return torch.einsum("bhtd,mhd->btm", z, w_o) + self.o_proj.bias


class SdpaCausal(Way):
    """PyTorch's fused kernel, told that it is causal: no mask, and no scores in memory."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = (self._split(p(x)) for p in self._projections()[:3])
        return self._join(functional.scaled_dot_product_attention(q, k, v, is_causal=True))


class SdpaMask(Way):
    """The same kernel with a mask (T, T): True = may attend."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        q, k, v = (self._split(p(x)) for p in self._projections()[:3])
        may_attend = _future(x.shape[1], x.device).logical_not()
        return self._join(functional.scaled_dot_product_attention(q, k, v, attn_mask=may_attend))


class _TorchModule(Way):
    """`nn.MultiheadAttention`: its own matrices, its own output projection, True = is blocked."""

    need_weights = False

    def __init__(self, d_model: int, n_heads: int) -> None:
        super().__init__(d_model, n_heads)
        del self.q_proj, self.k_proj, self.v_proj, self.o_proj
        self.inner = nn.MultiheadAttention(d_model, n_heads, bias=True, batch_first=True)
        # its bias on queries, keys and values: the other ways have none
        self.inner.in_proj_bias.requires_grad_(False).zero_()

    def take(self, w_q: Tensor, w_k: Tensor, w_v: Tensor, w_o: Tensor, bias: Tensor) -> None:
        """Take over weights; the three stand below each other."""
        self.inner.in_proj_weight.copy_(torch.cat([w_q, w_k, w_v]))
        self.inner.out_proj.weight.copy_(w_o)
        self.inner.out_proj.bias.copy_(bias)

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        is_blocked = _future(x.shape[1], x.device)
        out, _ = self.inner(x, x, x, attn_mask=is_blocked, need_weights=self.need_weights)
        return out


class TorchWithoutWeights(_TorchModule):
    """`nn.MultiheadAttention(..., need_weights=False)`: uses the fused kernel."""


class TorchWithWeights(_TorchModule):
    """`nn.MultiheadAttention(..., need_weights=True)`: computes and returns all weights."""

    need_weights = True


class Flex(Way):
    """FlexAttention: the mask is a function of batch, head, query and key."""

    def forward(self, x: Tensor) -> Tensor:
        """(B, T, D) -> (B, T, D)."""
        from torch.nn.attention.flex_attention import flex_attention

        def only_the_past(score: Tensor, b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
            return torch.where(q >= k, score, float("-inf"))

        q, k, v = (self._split(p(x)) for p in self._projections()[:3])
        return self._join(flex_attention(q, k, v, score_mod=only_the_past))


WAYS: tuple[tuple[str, type[Way]], ...] = (
    ("list", HeadsInAList),
    ("split", SplitHeads),
    ("fused", FusedQkv),
    ("einsum", Einsum),
    ("sdpa_causal", SdpaCausal),
    ("sdpa_mask", SdpaMask),
    ("torch", TorchWithoutWeights),
    ("torch_weights", TorchWithWeights),
    ("flex", Flex),
)


def _attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    return _mask_future(scores).softmax(dim=-1) @ v


def _mask_future(scores: Tensor) -> Tensor:
    return scores.masked_fill(_future(scores.shape[-1], scores.device), float("-inf"))


def _future(n_tokens: int, device: torch.device) -> Tensor:
    """(T, T), True where the key comes after the query."""
    return torch.ones(n_tokens, n_tokens, dtype=torch.bool, device=device).triu(1)
