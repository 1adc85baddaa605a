"""Small configurations for tests of the core; every dimension is another number."""

from dataclasses import replace

import pytest
import torch

from models.config import AttentionConfig, FfnConfig, ModelConfig, NormConfig, RopeConfig
from models.initialise import build_decoder

LLAMA_LIKE = ModelConfig(
    vocab_size=97,
    context_length=61,
    d_model=44,
    layer_types=("full",) * 3,
    attention=AttentionConfig(n_heads=6, n_kv_heads=3, d_head=10),
    ffn=FfnConfig(d_ff=52, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm"),
    positions="rope",
    rope={"full": RopeConfig(theta=5_000.0)},
)
GPT_LIKE = replace(
    LLAMA_LIKE,
    attention=AttentionConfig(n_heads=6, n_kv_heads=6, d_head=10, qkv_bias=True, out_bias=True),
    ffn=FfnConfig(d_ff=52, activation="gelu_tanh", gated=False, bias=True),
    norm=NormConfig(kind="layernorm"),
    positions="learned",
    rope={},
    tied_head=True,
)


@pytest.fixture
def llama_config():
    return LLAMA_LIKE


@pytest.fixture
def gpt_config():
    return GPT_LIKE


@pytest.fixture(params=[LLAMA_LIKE, GPT_LIKE], ids=["llama-like", "gpt-like"])
def config(request):
    return request.param


@pytest.fixture
def model(config):
    """A decoder with weights wide enough that a wrong part shows in the logits."""
    decoder = build_decoder(replace(config, initialisation="torch_default"), _seeded(5))
    decoder.requires_grad_(False)
    if config.tied_head:
        decoder.embed.weight *= 0.1  # N(0, 1) rows as a head would only ever repeat the last token
    return decoder


@pytest.fixture
def ids():
    return torch.randint(0, 97, (2, 7), generator=_seeded(6))


def _seeded(seed):
    return torch.Generator().manual_seed(seed)
