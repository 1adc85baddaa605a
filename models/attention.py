"""Self-attention with any number of key/value heads.

    x ── q_proj ──► q  (B, H, T, d) ──┐ rotate
      ── k_proj ──► k  (B, K, T, d) ──┤ rotate ─► cache
      ── v_proj ──► v  (B, K, T, d) ──┘        ─► cache
                       │
            scores  =  q kᵀ · scale          (B, H, T, S)
            pattern =  softmax(scores where mask, else -inf)
            z       =  pattern v             (B, H, T, d)
      ◄── o_proj ──  heads side by side      (B, T, D)

Vaswani et al. 2017 (arXiv 1706.03762), eq. 1; query heads share key/value heads in groups after
Ainslie et al. 2023 (arXiv 2305.13245).

Two kernels compute the same numbers (a test holds them to 1e-5): PyTorch's fused one, which never
writes scores to memory, and an eager one, written out, for passes whose trace wants to see or
change scores, mask or pattern, or that drop attention weights.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from models.config import AttentionConfig, LayerType, ModelConfig
from models.dropout import dropout
from models.forward_pass import ForwardPass
from models.norms import build_norm
from models.rope import rotate
from models.trace import tap


def attention_scores(
    q: Float[Tensor, "B H T d"], k: Float[Tensor, "B K S d"], config: AttentionConfig
) -> Float[Tensor, "B H T S"]:
    """Scaled products of every query with every key, soft-capped where asked; before the mask."""
    scores = q @ _one_per_query_head(k, q.shape[1]).transpose(-2, -1) * config.score_scale
    return soft_cap(scores, config.score_cap)


def soft_cap(x: Tensor, cap: float | None) -> Tensor:
    """Squeeze into (-cap, cap), almost unchanged near 0; None leaves x (arXiv 2408.00118)."""
    return x if cap is None else cap * torch.tanh(x / cap)


def attention_pattern(
    scores: Float[Tensor, "B H T S"], mask: Bool[Tensor, "batch 1 T S"]
) -> Float[Tensor, "B H T S"]:
    """Softmax over the keys that each query may attend to; in float32, as the fused kernel does.

    A query that may attend to nothing, under a painted mask, reads nothing: its row is 0, as in the
    fused kernel. Softmax alone would give NaN.
    """
    weights = scores.float().masked_fill(~mask, float("-inf")).softmax(dim=-1)
    return weights.masked_fill(~mask, 0.0).to(scores.dtype)


def _one_per_query_head(kv: Tensor, n_heads: int) -> Tensor:
    """(B, K, S, d) -> (B, H, S, d): each key/value head stands for its group of query heads."""
    return kv.repeat_interleave(n_heads // kv.shape[1], dim=1)


@dataclass(frozen=True)
class AttentionKernel:
    """From queries, keys and values to z, in the way that this pass needs; it has no weights.

    Args:
        config: Heads, scale, cap.
        layer_type: Which keys are in reach.
        dropout_rate: On the attention weights.
    """

    config: AttentionConfig
    layer_type: LayerType
    dropout_rate: float

    def attend(
        self,
        q: Float[Tensor, "B H T d"],
        k: Float[Tensor, "B K S d"],
        v: Float[Tensor, "B K S e"],
        *,
        name: str,
        run: ForwardPass,
    ) -> Float[Tensor, "B H T e"]:
        """Pattern times values; `name` is that of the layer in the trace."""
        if not self._needs_eager(name, run):
            return self._fused(q, k, v, run)
        places = run.key_positions(self.layer_type)
        if self._is_watched(name, run) and places is not None:
            # whoever looks at scores wants column n to be position n
            k, v = in_order(k, places, run.n_keys), in_order(v, places, run.n_keys)
            mask = run.mask_by_position(self.layer_type)
        else:
            mask = run.mask(self.layer_type)
        return self._eager(q, k, v, mask.expand(q.shape[0], -1, -1, -1), name, run)

    def attend_where(
        self,
        q: Float[Tensor, "B H T d"],
        k: Float[Tensor, "B K S d"],
        v: Float[Tensor, "B K S e"],
        mask: Bool[Tensor, "B 1 queries S"],
        *,
        name: str,
        run: ForwardPass,
    ) -> Float[Tensor, "B H T e"]:
        """The same with a mask of one's own, for all queries (1) or each: across two texts."""
        if self._needs_eager(name, run):
            return self._eager(q, k, v, mask.expand(-1, -1, q.shape[2], -1), name, run)
        return functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=mask,
            scale=self.config.score_scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )

    def _needs_eager(self, name: str, run: ForwardPass) -> bool:
        if self.config.score_cap is not None:
            return True  # the fused kernel has no place for it
        if run.generator is not None and self.dropout_rate > 0:
            return True  # the fused kernel draws its dropout from the process-wide generator
        return self._is_watched(name, run)

    def _is_watched(self, name: str, run: ForwardPass) -> bool:
        if run.trace is None:
            return False
        return any(run.trace.wants(f"{name}.{part}") for part in ("scores", "mask", "pattern"))

    def _fused(self, q: Tensor, k: Tensor, v: Tensor, run: ForwardPass) -> Tensor:
        simple = run.in_step and run.reaches_all(self.layer_type)
        causal = simple and run.is_causal and run.from_start and run.n_tokens > 1
        # the newest token sees every key, and so does each in an encoder
        sees_all = simple and (run.n_tokens == 1 or not run.is_causal)
        return functional.scaled_dot_product_attention(
            q,
            k,
            v,
            attn_mask=None if causal or sees_all else run.mask(self.layer_type),
            is_causal=causal,
            scale=self.config.score_scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )

    def _eager(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, name: str, run: ForwardPass
    ) -> Tensor:
        scores = attention_scores(q, k, self.config)
        scores = tap(run.trace, f"{name}.scores", scores)
        mask = tap(run.trace, f"{name}.mask", mask)
        pattern = tap(run.trace, f"{name}.pattern", attention_pattern(scores, mask))
        pattern = dropout(pattern, self.dropout_rate, run.generator)
        return torch.matmul(pattern, _one_per_query_head(v, q.shape[1]))


def in_order(
    kv: Float[Tensor, "B K S d"], places: Int[Tensor, "B S"], n_keys: int
) -> Float[Tensor, "B K keys d"]:
    """Lay keys or values out by position, 0 to n_keys - 1; zeros where a window kept nothing."""
    index = torch.where(places < 0, n_keys, places)  # columns without a token go to one too many
    index = index[:, None, :, None].expand_as(kv)
    laid_out = kv.new_zeros(kv.shape[0], kv.shape[1], n_keys + 1, kv.shape[3])
    return laid_out.scatter(2, index, kv)[:, :, :n_keys]


class Attention(nn.Module):
    """One layer of multi-head, grouped-query or multi-query attention."""

    def __init__(self, config: ModelConfig, *, layer_type: LayerType) -> None:
        super().__init__()
        heads = config.attention
        self.config = heads
        self.layer_type = layer_type
        self.kernel = AttentionKernel(heads, layer_type, config.dropout.attention)
        q_width, kv_width = heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head
        self.q_proj = nn.Linear(config.d_model, q_width, bias=heads.qkv_bias)
        self.k_proj = nn.Linear(config.d_model, kv_width, bias=heads.qkv_bias)
        self.v_proj = nn.Linear(config.d_model, kv_width, bias=heads.qkv_bias)
        self.o_proj = nn.Linear(q_width, config.d_model, bias=heads.out_bias)
        if heads.qk_norm != "none":
            whole = heads.qk_norm == "full"
            self.q_norm = build_norm(config.norm, q_width if whole else heads.d_head)
            self.k_norm = build_norm(config.norm, kv_width if whole else heads.d_head)

    def forward(
        self, x: Float[Tensor, "B T D"], *, layer: int, run: ForwardPass
    ) -> Float[Tensor, "B T D"]:
        """What this layer reads from the tokens before, for each token.

        Args:
            x: The normalised stream.
            layer: Number of the block, for names in the trace and for the cache.
            run: Positions, mask, cache and trace of this pass.
        """
        name = f"{run.prefix}blocks.{layer}.attn"
        q, k, v = self._project(x, name, run)
        if run.cache is not None and run.claim is not None:
            k, v = run.cache.write(layer, k, v, run.claim)
        z = self.kernel.attend(q, k, v, name=name, run=run)
        z = tap(run.trace, f"{name}.z", z)
        return self.o_proj(z.transpose(1, 2).flatten(2))

    def _project(self, x: Tensor, name: str, run: ForwardPass) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, cut into heads, normalised and rotated."""
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.config.qk_norm == "full":
            q, k = self.q_norm(q), self.k_norm(k)
        q, k, v = (
            part.unflatten(-1, (-1, self.config.d_head)).transpose(1, 2) for part in (q, k, v)
        )
        if self.config.qk_norm == "head":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.layer_type in run.rotations:
            cosines, sines = run.rotations[self.layer_type]
            q, k = rotate(q, cosines, sines), rotate(k, cosines, sines)
        return (
            tap(run.trace, f"{name}.q", q),
            tap(run.trace, f"{name}.k", k),
            tap(run.trace, f"{name}.v", v),
        )
