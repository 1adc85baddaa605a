"""Multi-head latent attention: all heads read their keys and values from one small latent a token.

    x ── latent_proj ──► latent (B, T, C) ─ (norm) ─► cache
                            ├── k_proj ──► k content (B, H, S, d - r)
                            └── v_proj ──► v         (B, H, S, v)
      ── k_rotary_proj ──► one key (B, 1, T, r) for all heads ─ rotate ─► cache
      ── q_proj ──► q = [content | rotary]  (B, H, T, d)
         or q_latent_proj ─ (norm) ─ q_proj

    scores = (q content · k content + q rotary · k rotary) · scale

DeepSeek-V2 2024 (arXiv 2405.04434), section 2.1, eq. 9-19. The plain form leaves the rotary part
out. Rotation cannot be put into the latent: it would stand between q_proj and k_proj, which the
second way below multiplies with each other; hence one small key of its own that carries position.

Two ways to the same numbers (a test holds them to 1e-5):

    expanded   k and v of every token are computed from the latents, then attention as ever; best
               when many queries share that work
    absorbed   q k = q (W latent) = (q W) latent: queries are taken into the latent space instead,
               and attention is multi-query over the latents themselves; best for one new token,
               whose keys would otherwise have to be computed anew for the whole text
"""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

from models.attention import AttentionKernel
from models.config import LayerType, ModelConfig
from models.forward_pass import ForwardPass
from models.mla_config import MlaConfig
from models.norms import build_norm
from models.rope import rotate
from models.trace import tap


class LatentAttention(nn.Module):
    """One layer of multi-head latent attention, in the place of `Attention`."""

    def __init__(self, config: ModelConfig, mla: MlaConfig, *, layer_type: LayerType) -> None:
        super().__init__()
        heads, width = config.attention, config.d_model
        self.layer_type = layer_type
        self.kernel = AttentionKernel(heads, layer_type, config.dropout.attention)
        self.n_heads, self.rotary_width = heads.n_heads, mla.qk_rope_head_dim
        self.content_width = heads.d_head - mla.qk_rope_head_dim
        self.neighbouring_pairs = mla.neighbouring_pairs
        self.has_query_latent, self.has_latent_norm = mla.q_lora_rank is not None, mla.latent_norm
        latent_width = mla.latent_width(width)
        norm = config.norm
        if mla.latent_norm_eps is not None:
            norm = replace(norm, eps=mla.latent_norm_eps)
        bias = heads.qkv_bias  # on what reads the stream
        if mla.q_lora_rank is None:
            self.q_proj = nn.Linear(width, heads.n_heads * heads.d_head, bias=bias)
        else:
            self.q_latent_proj = nn.Linear(width, mla.q_lora_rank, bias=bias)
            self.q_proj = nn.Linear(mla.q_lora_rank, heads.n_heads * heads.d_head, bias=False)
            if mla.latent_norm:
                self.q_latent_norm = build_norm(norm, mla.q_lora_rank)
        self.latent_proj = nn.Linear(width, latent_width, bias=bias)
        if mla.latent_norm:
            self.latent_norm = build_norm(norm, latent_width)
        if mla.qk_rope_head_dim:
            self.k_rotary_proj = nn.Linear(width, mla.qk_rope_head_dim, bias=bias)
        value_width = heads.n_heads * (mla.v_head_dim or heads.d_head)
        self.k_proj = nn.Linear(latent_width, heads.n_heads * self.content_width, bias=False)
        self.v_proj = nn.Linear(latent_width, value_width, bias=False)
        self.o_proj = nn.Linear(value_width, width, bias=heads.out_bias)

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
        q = tap(run.trace, f"{name}.q", self._queries(x, run))
        new_latent, new_key = self._latents(x, name, run)
        latent, key = new_latent, new_key
        if run.cache is not None and run.claim is not None:
            latent, key = run.cache.write(layer, new_latent, new_key, run.claim)
        if self._absorbs(name, run):
            z = self.attend_absorbed(q, latent, key, name=name, run=run)
        else:
            k, v = self._keys_and_values(new_latent, new_key, latent, key, name, run)
            z = self.kernel.attend(q, k, v, name=name, run=run)
        z = tap(run.trace, f"{name}.z", z)
        return self.o_proj(z.transpose(1, 2).flatten(2))

    def _queries(self, x: Tensor, run: ForwardPass) -> Tensor:
        """(B, H, T, d), the last `rotary_width` numbers of each rotated."""
        if self.has_query_latent:
            x = self.q_latent_proj(x)
            x = self.q_latent_norm(x) if self.has_latent_norm else x
        q = self._cut(self.q_proj(x))
        content, rotary = q.split([self.content_width, self.rotary_width], dim=-1)
        return torch.cat([content, self._rotate(rotary, run)], dim=-1)

    def _latents(self, x: Tensor, name: str, run: ForwardPass) -> tuple[Tensor, Tensor]:
        """What the cache keeps of new tokens: latents (B, 1, T, C), rotated keys (B, 1, T, r)."""
        latent = self.latent_proj(x)
        latent = self.latent_norm(latent) if self.has_latent_norm else latent
        latent = tap(run.trace, f"{name}.latent", latent)
        key = self.k_rotary_proj(x) if self.rotary_width else x[..., :0]
        return latent[:, None], self._rotate(key[:, None], run)

    def _rotate(self, x: Tensor, run: ForwardPass) -> Tensor:
        if not self.rotary_width:
            return x
        if self.neighbouring_pairs:  # of queries and keys alike: their products stay the same
            x = torch.cat([x[..., ::2], x[..., 1::2]], dim=-1)
        return rotate(x, *run.rotations[self.layer_type])

    def _cut(self, x: Tensor) -> Tensor:
        """(B, S, H * width) -> (B, H, S, width)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    # ------------------------------------------------------------------ expanded
    def expand(
        self, latent: Float[Tensor, "B 1 S C"], key: Float[Tensor, "B 1 S r"]
    ) -> tuple[Float[Tensor, "B H S d"], Float[Tensor, "B H S v"]]:
        """Keys and values of every head from latents and shared rotated keys."""
        content = self._cut(self.k_proj(latent[:, 0]))
        k = torch.cat([content, key.expand(-1, self.n_heads, -1, -1)], dim=-1)
        return k, self._cut(self.v_proj(latent[:, 0]))

    def _keys_and_values(
        self,
        new_latent: Tensor,
        new_key: Tensor,
        latent: Tensor,
        key: Tensor,
        name: str,
        run: ForwardPass,
    ) -> tuple[Tensor, Tensor]:
        """Of all tokens; those of the new ones go through the trace and may come back edited."""
        if run.claim is None:
            k, v = self.expand(new_latent, new_key)
            return tap(run.trace, f"{name}.k", k), tap(run.trace, f"{name}.v", v)
        k, v = self.expand(latent, key)
        if self._shows_keys(name, run):
            new_k, new_v = self.expand(new_latent, new_key)
            k = self._put_new(k, tap(run.trace, f"{name}.k", new_k), run)
            v = self._put_new(v, tap(run.trace, f"{name}.v", new_v), run)
        return k, v

    def _put_new(self, kv: Tensor, new: Tensor, run: ForwardPass) -> Tensor:
        """Lay keys or values of the new tokens over those computed from the cache."""
        columns = run.positions
        places = run.key_positions(self.layer_type)
        is_there = torch.ones_like(columns, dtype=torch.bool) if run.valid is None else run.valid
        if places is not None:
            match = places[:, None, :] == columns[..., None]  # (B, T, S)
            columns = match.int().argmax(dim=-1)
        rows, tokens = torch.nonzero(is_there, as_tuple=True)
        kv = kv.clone()
        kv[rows, :, columns[rows, tokens]] = new[rows, :, tokens]
        return kv

    # ------------------------------------------------------------------ absorbed
    def _absorbs(self, name: str, run: ForwardPass) -> bool:
        """One new token and a text before it; keys that someone wants to see must be expanded."""
        if run.claim is None or run.n_tokens > 1 or self._shows_keys(name, run):
            return False
        return type(self.k_proj) is nn.Linear  # a matrix in another form cannot be multiplied with

    def _shows_keys(self, name: str, run: ForwardPass) -> bool:
        return run.trace is not None and any(run.trace.wants(f"{name}.{part}") for part in "kv")

    def attend_absorbed(
        self,
        q: Float[Tensor, "B H T d"],
        latent: Float[Tensor, "B 1 S C"],
        key: Float[Tensor, "B 1 S r"],
        *,
        name: str,
        run: ForwardPass,
    ) -> Float[Tensor, "B H T v"]:
        """Read without keys or values of any head: multi-query attention over the latents."""
        content, rotary = q.split([self.content_width, self.rotary_width], dim=-1)
        k_weight = self.k_proj.weight.unflatten(0, (self.n_heads, -1))  # (H, d - r, C)
        v_weight = self.v_proj.weight.unflatten(0, (self.n_heads, -1))  # (H, v, C)
        q = torch.cat([content @ k_weight, rotary], dim=-1)
        k = torch.cat([latent, key], dim=-1)
        read = self.kernel.attend(q, k, latent, name=name, run=run)  # (B, H, T, C)
        return read @ v_weight.transpose(-2, -1)
