"""Small decoders for tests of training; every dimension is another number."""

from dataclasses import replace

import torch

from models.config import AttentionConfig, FfnConfig, ModelConfig, NormConfig, RopeConfig
from models.decoder import Decoder
from models.initialise import build_decoder

GPT = ModelConfig(
    vocab_size=97,
    context_length=61,
    d_model=44,
    layer_types=("full",) * 2,
    attention=AttentionConfig(n_heads=6, n_kv_heads=6, d_head=10, qkv_bias=True, out_bias=True),
    ffn=FfnConfig(d_ff=52, activation="gelu_tanh", gated=False, bias=True),
    norm=NormConfig(kind="layernorm"),
    positions="learned",
    tied_head=True,
)
LLAMA = replace(
    GPT,
    attention=AttentionConfig(n_heads=6, n_kv_heads=3, d_head=10),
    ffn=FfnConfig(d_ff=52, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm"),
    positions="rope",
    rope={"full": RopeConfig(theta=5_000.0)},
    tied_head=False,
)


def build_tiny(config: ModelConfig = GPT) -> Decoder:
    return build_decoder(config, torch.Generator().manual_seed(3))


def draw_ids(rows: int = 2, tokens: int = 7, seed: int = 6) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, GPT.vocab_size, (rows, tokens), generator=generator)
