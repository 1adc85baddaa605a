"""How many parameters a configuration has, from its numbers alone: nothing is allocated.

embedding       V D  (+ context D with learned positions)
attention       D H d + 2 D K d + H d D, and biases
feed-forward    2 D F (plain) or 3 D F (gated), and biases
norms           D each (RMSNorm) or 2 D (LayerNorm), two a block and one at the end
head            V D, or none of its own when tied
"""

from collections.abc import Mapping
from dataclasses import dataclass

from models.config import ModelConfig


@dataclass(frozen=True)
class ParameterCount:
    """Parameters of one model.

    Args:
        total: With a tied head counted as a matrix of its own.
        unique: Numbers that are really stored: tied weights once.
        parts: Part -> its parameters, over all blocks; sums to `unique`.
    """

    total: int
    unique: int
    parts: Mapping[str, int]


def count_parameters(config: ModelConfig) -> ParameterCount:
    """Count by part, in closed form."""
    width, heads, ffn = config.d_model, config.attention, config.ffn
    q_width, kv_width = heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head
    attention = width * (q_width + 2 * kv_width) + q_width * width
    attention += (q_width + 2 * kv_width) * heads.qkv_bias + width * heads.out_bias
    into = 2 if ffn.gated else 1
    feed_forward = (into + 1) * width * ffn.d_ff + (into * ffn.d_ff + width) * ffn.bias
    norm = width * (2 if config.norm.kind == "layernorm" else 1)
    embedding = config.vocab_size * width
    parts = {
        "embedding": embedding,
        "positions": config.context_length * width if config.positions == "learned" else 0,
        "attention": attention * config.n_layers,
        "feed-forward": feed_forward * config.n_layers,
        "norms": norm * (2 * config.n_layers + 1),
        "head": 0 if config.tied_head else embedding,
    }
    unique = sum(parts.values())
    return ParameterCount(
        total=unique + (embedding if config.tied_head else 0), unique=unique, parts=parts
    )
