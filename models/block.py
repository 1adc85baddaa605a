"""One transformer block.

    resid_pre ─┬──────────────────────────────────► + ─┬──────────────────────────► + ─► resid_post
               └► (norm) ► attention ► (norm) ─ attn_out └► (norm) ► ffn ► (norm) ─ ffn_out
                                            resid_mid ─┘

Where the norms stand is a value of the configuration:

    pre             in front of each sublayer             GPT-2 (2019), Llama
    post_sublayer   on what each sublayer adds            Olmo 2 (arXiv 2501.00656), Olmo 3
    sandwich        both                                  Gemma 2 and 3 (arXiv 2408.00118)
    post_residual   on the stream after each addition     Vaswani et al. 2017

A configuration without residual puts what a sublayer computes in the stream's place. With it, and
in all norm positions but the last, the stream is only ever added to: whatever a layer writes stays
readable for all later ones. `attn_out` and `ffn_out` are exactly what is added, after any norm.

In the decoder of an encoder-decoder a third sublayer stands between the two: cross-attention, which
reads the other text (`models/encoder_decoder.py`).
"""

from dataclasses import replace

from jaxtyping import Float
from torch import Tensor, nn

from models.attention import Attention
from models.config import LayerType, ModelConfig
from models.cross_attention import CrossAttention
from models.dropout import dropout
from models.ffn import FeedForward
from models.forward_pass import ForwardPass
from models.mla import LatentAttention
from models.moe import MixtureOfExperts
from models.norms import build_norm
from models.trace import tap


def _build_attention(config: ModelConfig, layer_type: LayerType) -> Attention | LatentAttention:
    if config.mla is None:
        return Attention(config, layer_type=layer_type)
    return LatentAttention(config, config.mla, layer_type=layer_type)


def _build_ffn(config: ModelConfig) -> FeedForward | MixtureOfExperts:
    if config.moe is None:
        return FeedForward(config.ffn, d_model=config.d_model)
    expert = replace(config.ffn, d_ff=config.moe.d_ff)
    return MixtureOfExperts(config.moe, expert, d_model=config.d_model)


class Block(nn.Module):
    """Attention, then feed-forward, each added to the stream."""

    def __init__(self, config: ModelConfig, *, layer: int, reads_memory: bool = False) -> None:
        super().__init__()
        self.layer = layer
        self.dropout_rate = config.dropout.residual
        self.norm_position = config.norm_position
        self.residual = config.residual
        self.attn_norm = build_norm(config.norm, config.d_model)
        self.attn = _build_attention(config, config.layer_types[layer])
        self.reads_memory = reads_memory
        if reads_memory:
            self.cross_attn_norm = build_norm(config.norm, config.d_model)
            self.cross_attn = CrossAttention(config)
        self.ffn_norm = build_norm(config.norm, config.d_model)
        self.ffn = _build_ffn(config)
        if config.norm_position == "sandwich":
            self.attn_post_norm = build_norm(config.norm, config.d_model)
            self.ffn_post_norm = build_norm(config.norm, config.d_model)

    def forward(self, x: Float[Tensor, "B T D"], run: ForwardPass) -> Float[Tensor, "B T D"]:
        """The stream with this block's two contributions added."""
        name = f"{run.prefix}blocks.{self.layer}"
        x = tap(run.trace, f"{name}.resid_pre", x)
        attn_out = self.attn(self._before(self.attn_norm, x), layer=self.layer, run=run)
        attn_out = dropout(self._after("attn", attn_out), self.dropout_rate, run.generator)
        x = self._add(self.attn_norm, x, tap(run.trace, f"{name}.attn_out", attn_out))
        x = tap(run.trace, f"{name}.resid_mid", x)
        if self.reads_memory:
            x = self._read_memory(x, name, run)
        ffn_out = self.ffn(self._before(self.ffn_norm, x), name=f"{name}.ffn", run=run)
        ffn_out = dropout(self._after("ffn", ffn_out), self.dropout_rate, run.generator)
        x = self._add(self.ffn_norm, x, tap(run.trace, f"{name}.ffn_out", ffn_out))
        return tap(run.trace, f"{name}.resid_post", x)

    def _read_memory(self, x: Tensor, name: str, run: ForwardPass) -> Tensor:
        """The stream with what the other text says added (Vaswani et al. 2017, figure 1)."""
        norm = self.cross_attn_norm
        out = self.cross_attn(self._before(norm, x), layer=self.layer, run=run)
        out = dropout(out, self.dropout_rate, run.generator)
        x = self._add(norm, x, tap(run.trace, f"{name}.cross_attn_out", out))
        return tap(run.trace, f"{name}.resid_cross", x)

    def _before(self, norm: nn.Module, x: Tensor) -> Tensor:
        return norm(x) if self.norm_position in {"pre", "sandwich"} else x

    def _after(self, sublayer: str, out: Tensor) -> Tensor:
        if self.norm_position == "post_sublayer":
            return (self.attn_norm if sublayer == "attn" else self.ffn_norm)(out)
        if self.norm_position == "sandwich":
            return (self.attn_post_norm if sublayer == "attn" else self.ffn_post_norm)(out)
        return out

    def _add(self, norm: nn.Module, x: Tensor, out: Tensor) -> Tensor:
        x = x + out if self.residual else out
        return norm(x) if self.norm_position == "post_residual" else x
