"""What each part of a model computes, as a line of text, and the file that does it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

FORMULAS: Mapping[str, str] = {
    "embedding": "x = E[token]",
    "embedding_scaled": "x = s · E[token]",
    "learned": "x = x + P[n]",
    "sinusoidal": "x = x + (sin(n / 10000^(2i/D)), cos(n / 10000^(2i/D)))",
    "layernorm": "w · (x − mean x) / √(var x + ε) + b",
    "rmsnorm": "w · x / √(mean x² + ε)",
    "unit_offset": "(1 + w) · x / √(mean x² + ε)",
    "attention": "Wo · softmax(q kᵀ · scale, keys up to here) v",
    "attention_open": "Wo · softmax(q kᵀ · scale, all keys) v",
    "attention_latent": "c = Wc x;  k = Wk c,  v = Wv c;  Wo · softmax(q kᵀ · scale) v",
    "cross_attention": "Wo · softmax(q kᵀ · scale) v,  k and v of the encoder's text",
    "rope": "pair i of q and k turned by n · θ^(−2i/d)",
    "router": "p = softmax(Wr x);  the experts with the largest p",
    "ffn": "Wdown · act(Wup x)",
    "ffn_gated": "Wdown · (act(Wgate x) ⊙ Wup x)",
    "add": "x = x + sublayer",
    "replace": "x = sublayer",
    "head": "logits = W x",
    "head_tied": "logits = E x",
}


def source_of_part(kind: str) -> str:
    """The file that implements a part, from the top of the project.

    Args:
        kind: As in `explorer.architecture.Part`.
    """
    from explorer.snippets import source_file_of
    from models.attention import Attention
    from models.block import Block
    from models.cross_attention import CrossAttention
    from models.decoder import Decoder
    from models.ffn import FeedForward
    from models.moe import MixtureOfExperts
    from models.norms import build_norm
    from models.positions import sinusoidal_positions
    from models.rope import rotate

    sources: dict[str, Callable[..., Any]] = {
        "embedding": Decoder,
        "learned": Decoder,
        "head": Decoder,
        "sinusoidal": sinusoidal_positions,
        "attention": Attention,
        "cross_attention": CrossAttention,
        "rope": rotate,
        "router": MixtureOfExperts,
        "experts": FeedForward,
        "ffn": FeedForward,
        "add": Block,
        "replace": Block,
    }
    return source_file_of(sources.get(kind, build_norm))
