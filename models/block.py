"""One transformer block, normalised before each sublayer ("pre-norm").

    resid_pre ──┬─────────────────────────────► + ──┬──────────────────────► + ──► resid_post
                └► attn_norm ─► attention ─ attn_out └► ffn_norm ─► ffn ─ ffn_out
                                        resid_mid ──┘

The stream itself is only ever added to: whatever a layer writes stays readable for all later ones.
Pre-norm after Radford et al. 2019 (GPT-2), section 2.3.
"""

from jaxtyping import Float
from torch import Tensor, nn

from models.attention import Attention
from models.config import ModelConfig
from models.dropout import dropout
from models.ffn import FeedForward
from models.forward_pass import ForwardPass
from models.norms import build_norm
from models.trace import tap


class Block(nn.Module):
    """Attention, then feed-forward, each added to the stream."""

    def __init__(self, config: ModelConfig, *, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.dropout_rate = config.dropout.residual
        self.attn_norm = build_norm(config.norm, config.d_model)
        self.attn = Attention(
            config.attention,
            d_model=config.d_model,
            dropout_rate=config.dropout.attention,
            layer_type=config.layer_types[layer],
        )
        self.ffn_norm = build_norm(config.norm, config.d_model)
        self.ffn = FeedForward(config.ffn, d_model=config.d_model)

    def forward(self, x: Float[Tensor, "B T D"], run: ForwardPass) -> Float[Tensor, "B T D"]:
        """The stream with this block's two contributions added."""
        name = f"blocks.{self.layer}"
        x = tap(run.trace, f"{name}.resid_pre", x)
        attn_out = self.attn(self.attn_norm(x), layer=self.layer, run=run)
        attn_out = dropout(attn_out, self.dropout_rate, run.generator)
        x = tap(run.trace, f"{name}.resid_mid", x + tap(run.trace, f"{name}.attn_out", attn_out))
        ffn_out = self.ffn(self.ffn_norm(x), layer=self.layer, run=run)
        ffn_out = dropout(ffn_out, self.dropout_rate, run.generator)
        return tap(run.trace, f"{name}.resid_post", x + tap(run.trace, f"{name}.ffn_out", ffn_out))
