"""Configurations of encoder-decoders: two stacks and how they share embeddings; no torch.

Presets by exact name in `ENCODER_DECODERS`: `transformer-base` is the base model of Vaswani et al.
2017 (arXiv 1706.03762), table 3, which gives it 65 million parameters: with "about 37000" shared
tokens its matrices sum to 63.0 million, and no exact vocabulary is published. `transformer-tiny` is
small enough to train on two cores.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from models.config import (
    FULL,
    AttentionConfig,
    DropoutConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
)
from models.counting import VECTORS_OF_NORM, ParameterCount, count_parameters
from models.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig:
    """An encoder-decoder Transformer as of 2017: post-norm, sinusoidal positions.

    Args:
        encoder: Reads the source; its vocabulary, layers, heads.
        decoder: Writes the target; with `tied_head`, its output layer is the target embedding.
        shared_embedding: Source, target and output are one matrix (section 3.4); needs one
            vocabulary and `tied_head`.
    """

    encoder: ModelConfig
    decoder: ModelConfig
    shared_embedding: bool

    def __post_init__(self) -> None:
        for name, side in (("encoder", self.encoder), ("decoder", self.decoder)):
            _check_side(name, side)
        if self.encoder.d_model != self.decoder.d_model:
            raise ConfigError(
                f"the encoder is {self.encoder.d_model} wide and the decoder "
                f"{self.decoder.d_model}; choose one d_model for both"
            )
        if not self.shared_embedding:
            return
        if self.encoder.vocab_size != self.decoder.vocab_size:
            raise ConfigError(
                f"shared_embedding needs one vocabulary, found {self.encoder.vocab_size} and "
                f"{self.decoder.vocab_size} tokens; choose one, or shared_embedding=False"
            )
        if not self.decoder.tied_head:
            raise ConfigError(
                "shared_embedding shares the output layer too; set the decoder's tied_head=True"
            )

    @property
    def d_model(self) -> int:
        """Width of both streams."""
        return self.decoder.d_model


def _check_side(name: str, side: ModelConfig) -> None:
    for field, found, wanted in (
        ("positions", side.positions, "sinusoidal"),
        ("norm_position", side.norm_position, "post_residual"),
        ("layer_types", set(side.layer_types), {FULL}),
        ("mla", side.mla, None),
        ("attention.qk_norm", side.attention.qk_norm, "none"),
        ("logit_cap", side.logit_cap, None),
    ):
        if found != wanted:
            raise ConfigError(
                f"{name}: {field}={found!r} is not part of the 2017 Transformer; choose {wanted!r}"
            )


def count_encoder_decoder(config: EncoderDecoderConfig) -> ParameterCount:
    """Parameters by part, in closed form."""
    encoder = count_parameters(config.encoder).parts
    decoder = count_parameters(config.decoder).parts
    source, target = encoder["embedding"], decoder["embedding"]
    a_norm = config.d_model * VECTORS_OF_NORM[config.decoder.norm.kind]
    final_norm = config.d_model * VECTORS_OF_NORM[config.encoder.norm.kind]
    parts = {
        "embedding": source if config.shared_embedding else source + target,
        "encoder attention": encoder["attention"],
        "encoder feed-forward": encoder["feed-forward"],
        "decoder attention": decoder["attention"],
        "cross-attention": decoder["attention"],  # the same four matrices
        "decoder feed-forward": decoder["feed-forward"],
        # a decoder-only model has a norm at the end; these have none, and one more a block
        "norms": encoder["norms"]
        - final_norm
        + decoder["norms"]
        - a_norm
        + config.decoder.n_layers * a_norm,
        "head": 0 if config.decoder.tied_head else target,
    }
    unique = sum(parts.values())
    copies = (source if config.shared_embedding else 0) + (
        target if config.decoder.tied_head else 0
    )
    return ParameterCount(total=unique + copies, unique=unique, parts=parts)


def _both_sides(one: ModelConfig) -> EncoderDecoderConfig:
    return EncoderDecoderConfig(encoder=one, decoder=one, shared_embedding=True)


_BASE = ModelConfig(
    vocab_size=37_000,  # section 5.1: "about 37000 tokens", shared by source and target
    context_length=512,  # no last position; the length of our answers and batches
    d_model=512,
    layer_types=(FULL,) * 6,
    attention=AttentionConfig(n_heads=8, n_kv_heads=8, d_head=64),
    ffn=FfnConfig(d_ff=2_048, activation="relu", gated=False, bias=True),
    norm=NormConfig(kind="layernorm"),
    positions="sinusoidal",
    norm_position="post_residual",
    embedding_scale=math.sqrt(512),  # section 3.4
    tied_head=True,
    dropout=DropoutConfig(embedding=0.1, residual=0.1),  # section 5.4
    initialisation="truncated_normal",
)
_TINY = replace(
    _BASE,
    vocab_size=256,
    context_length=64,
    d_model=64,
    layer_types=(FULL,) * 2,
    attention=AttentionConfig(n_heads=4, n_kv_heads=4, d_head=16),
    ffn=replace(_BASE.ffn, d_ff=256),
    embedding_scale=8.0,
)
ENCODER_DECODERS: Mapping[str, EncoderDecoderConfig] = {
    "transformer-base": _both_sides(_BASE),
    "transformer-tiny": _both_sides(_TINY),
}
