"""Cross-attention: queries from one text, keys and values from another.

    x (target) ── q_proj ──► q  (B, H, T, d)
    memory     ── k_proj ──► k  (B, K, S, d)      the encoder's last stream
               ── v_proj ──► v  (B, K, S, d)

Vaswani et al. 2017 (arXiv 1706.03762), section 3.2.3, first item. Every query may see every token
of the source; only padding is masked. The source does not grow, so its keys and values can be
computed once for a whole answer.
"""

from jaxtyping import Float
from torch import Tensor, nn

from models.attention import AttentionKernel
from models.config import FULL, ModelConfig
from models.errors import ConfigError
from models.forward_pass import ForwardPass
from models.trace import tap


class CrossAttention(nn.Module):
    """One layer that reads what the encoder has made of its text."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        heads = config.attention
        self.config = heads
        self.kernel = AttentionKernel(heads, FULL, config.dropout.attention)
        q_width, kv_width = heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head
        self.q_proj = nn.Linear(config.d_model, q_width, bias=heads.qkv_bias)
        self.k_proj = nn.Linear(config.d_model, kv_width, bias=heads.qkv_bias)
        self.v_proj = nn.Linear(config.d_model, kv_width, bias=heads.qkv_bias)
        self.o_proj = nn.Linear(q_width, config.d_model, bias=heads.out_bias)

    def forward(
        self, x: Float[Tensor, "B T D"], *, layer: int, run: ForwardPass
    ) -> Float[Tensor, "B T D"]:
        """What this layer reads from the source, for each token of the target.

        Args:
            x: The stream.
            layer: Number of the block, for names in the trace.
            run: Memory and trace of this pass.

        Raises:
            ConfigError: The pass has no memory to read.
        """
        if run.memory is None:
            raise ConfigError("this block reads an encoder's text and was given none; pass memory")
        name = f"{run.prefix}blocks.{layer}.cross_attn"
        q = tap(run.trace, f"{name}.q", self._cut(self.q_proj(x)))
        known = run.memory.keys_values
        k, v = known[layer] if known else self.keys_and_values(run.memory.states)
        k, v = tap(run.trace, f"{name}.k", k), tap(run.trace, f"{name}.v", v)
        z = self.kernel.attend_where(q, k, v, run.memory.mask, name=name, run=run)
        z = tap(run.trace, f"{name}.z", z)
        return self.o_proj(z.transpose(1, 2).flatten(2))

    def keys_and_values(
        self, states: Float[Tensor, "B S D"]
    ) -> tuple[Float[Tensor, "B K S d"], Float[Tensor, "B K S d"]]:
        """Of every token of the source."""
        return self._cut(self.k_proj(states)), self._cut(self.v_proj(states))

    def _cut(self, x: Tensor) -> Tensor:
        """(B, S, K * d) -> (B, K, S, d)."""
        return x.unflatten(-1, (-1, self.config.d_head)).transpose(1, 2)
