"""How many parameters a configuration has, from its numbers alone: nothing is allocated.

embedding       V D  (+ context D with learned positions)
attention       D H d + 2 D K d + H d D, and biases
feed-forward    2 D F (plain) or 3 D F (gated), and biases; with experts E times that, + D E
norms           D each (RMSNorm), 2 D (LayerNorm) or 0 (none), two or four a block and one at
                the end, and those of queries and keys
head            V D, or none of its own when tied
"""

from collections.abc import Mapping
from dataclasses import dataclass

from models.config import ModelConfig, NormKind
from models.counting_mla import mla_normalised_widths, mla_parameters

# Weight and bias, weight alone, nothing.
VECTORS_OF_NORM: Mapping[NormKind, int] = {"layernorm": 2, "rmsnorm": 1, "none": 0}


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
    embedding = config.vocab_size * config.d_model
    learned = config.positions == "learned"
    parts = {
        "embedding": embedding,
        "positions": config.context_length * config.d_model if learned else 0,
        "attention": _attention(config) * config.n_layers,
        "feed-forward": _feed_forward(config) * config.n_layers,
        "norms": _norms(config) * config.n_layers + _norm(config, config.d_model),
        "head": 0 if config.tied_head else embedding,
    }
    unique = sum(parts.values())
    return ParameterCount(
        total=unique + (embedding if config.tied_head else 0), unique=unique, parts=parts
    )


def _widths(config: ModelConfig) -> tuple[int, int]:
    """Numbers in all queries and in all keys of a token."""
    heads = config.attention
    return heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head


def _attention(config: ModelConfig) -> int:
    if config.mla is not None:
        return mla_parameters(config, config.mla)
    width, heads = config.d_model, config.attention
    q_width, kv_width = _widths(config)
    weights = width * (q_width + 2 * kv_width) + q_width * width
    return weights + (q_width + 2 * kv_width) * heads.qkv_bias + width * heads.out_bias


def _feed_forward(config: ModelConfig) -> int:
    if config.moe is None:
        return _one_feed_forward(config, config.ffn.d_ff)
    experts = config.moe.n_experts * _one_feed_forward(config, config.moe.d_ff)
    return experts + config.d_model * config.moe.n_experts


def _one_feed_forward(config: ModelConfig, d_ff: int) -> int:
    width, ffn = config.d_model, config.ffn
    into = 2 if ffn.gated else 1
    return (into + 1) * width * d_ff + (into * d_ff + width) * ffn.bias


def _norm(config: ModelConfig, width: int) -> int:
    return width * VECTORS_OF_NORM[config.norm.kind]


def _norms(config: ModelConfig) -> int:
    """Of one block."""
    of_stream = (4 if config.norm_position == "sandwich" else 2) * _norm(config, config.d_model)
    heads = config.attention
    if config.mla is not None:
        return of_stream + sum(_norm(config, w) for w in mla_normalised_widths(config, config.mla))
    if heads.qk_norm == "none":
        return of_stream
    q_width, kv_width = _widths(config) if heads.qk_norm == "full" else (heads.d_head, heads.d_head)
    return of_stream + _norm(config, q_width) + _norm(config, kv_width)
