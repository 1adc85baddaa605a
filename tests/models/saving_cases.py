"""Configurations and the layout that each is saved in; every dimension is another number."""

from dataclasses import replace

import torch

from models import build_decoder
from models.config import (
    AttentionConfig,
    DropoutConfig,
    FfnConfig,
    ModelConfig,
    MoeConfig,
    NormConfig,
)
from models.mla_config import MlaConfig
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    YarnScaling,
)

HEADS = AttentionConfig(n_heads=6, n_kv_heads=3, d_head=10)
WINDOWED = replace(HEADS, window=9)
LLAMA = ModelConfig(
    vocab_size=97,
    context_length=128,
    d_model=48,
    layer_types=("full",) * 3,
    attention=HEADS,
    ffn=FfnConfig(d_ff=52, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm", eps=1e-4),
    positions="rope",
    rope={"full": RopeConfig(theta=5_000.0)},
)
GPT2 = replace(
    LLAMA,
    d_model=42,
    attention=AttentionConfig(n_heads=6, n_kv_heads=6, d_head=7, qkv_bias=True, out_bias=True),
    ffn=FfnConfig(d_ff=52, activation="gelu_tanh", gated=False, bias=True),
    norm=NormConfig(kind="layernorm", eps=1e-4),
    positions="learned",
    rope={},
    tied_head=True,
    dropout=DropoutConfig(embedding=0.1, attention=0.2, residual=0.3),
)
MISTRAL = replace(
    LLAMA, layer_types=("window",) * 3, attention=WINDOWED, rope={"window": RopeConfig()}
)
MIXED = replace(
    LLAMA,
    layer_types=("window", "window", "full"),
    attention=WINDOWED,
    rope=dict.fromkeys(("window", "full"), RopeConfig(theta=5_000.0)),
)
QWEN3 = replace(LLAMA, attention=replace(HEADS, qk_norm="head"))
MOE = replace(QWEN3, moe=MoeConfig(n_experts=5, n_active=2, d_ff=32, normalise_weights=True))
YARN = YarnScaling(factor=4.0, original_context=16, beta_fast=8.0, beta_slow=1.0)
TWO_ROPES = {"window": RopeConfig(theta=5_000.0), "full": RopeConfig(theta=7_000.0, scaling=YARN)}
OLMO3 = replace(
    MIXED,
    attention=replace(WINDOWED, qk_norm="full"),
    norm_position="post_sublayer",
    rope=TWO_ROPES,
)
GEMMA3 = replace(
    MIXED,
    attention=replace(WINDOWED, qk_norm="head", scale=14**-0.5),
    ffn=FfnConfig(d_ff=52, activation="gelu_tanh", gated=True),
    norm=NormConfig(kind="rmsnorm", eps=1e-4, unit_offset=True),
    norm_position="sandwich",
    rope={"window": RopeConfig(), "full": RopeConfig(theta=9e4, scaling=LinearScaling(factor=8.0))},
    embedding_scale=48**0.5,
    tied_head=True,
)
GEMMA2 = replace(
    GEMMA3,
    attention=replace(WINDOWED, scale=14**-0.5, score_cap=50.0),
    rope=MIXED.rope,
    logit_cap=30.0,
)


def scaled(scaling):
    return replace(LLAMA, rope={"full": RopeConfig(theta=5_000.0, scaling=scaling)})


def with_heads(config, **changes):
    return replace(config, attention=replace(config.attention, **changes))


def with_ffn(config, **changes):
    return replace(config, ffn=replace(config.ffn, **changes))


LLAMA3 = Llama3Scaling(
    factor=8.0, low_frequency_factor=1.0, high_frequency_factor=4.0, original_context=16
)
# name -> (configuration, layout)
IN_TRANSFORMERS = {
    "llama": (LLAMA, "llama"),
    "llama, tied": (replace(LLAMA, tied_head=True), "llama"),
    "llama, biases": (with_heads(LLAMA, qkv_bias=True, out_bias=True), "llama"),
    "llama, biases in the feed-forward": (with_ffn(LLAMA, bias=True), "llama"),
    "llama, gelu": (with_ffn(LLAMA, activation="gelu_tanh"), "llama"),
    "llama, linear": (scaled(LinearScaling(factor=3.0)), "llama"),
    "llama, llama3": (scaled(LLAMA3), "llama"),
    "llama, yarn": (scaled(replace(YARN, attention_factor=1.5)), "llama"),
    "llama, dynamic": (scaled(DynamicNtkScaling(factor=2.0, original_context=128)), "llama"),
    "gpt2": (GPT2, "gpt2"),
    "gpt2, untied": (replace(GPT2, tied_head=False), "gpt2"),
    "gpt2, relu": (with_ffn(GPT2, activation="relu"), "gpt2"),
    "gpt2, unscaled": (with_heads(GPT2, scale=1.0), "gpt2"),
    "mistral": (MISTRAL, "mistral"),
    "a width that llama has not": (replace(LLAMA, d_model=44), "mistral"),
    "qwen2": (with_heads(LLAMA, qkv_bias=True), "qwen2"),
    "qwen2, windows in some layers": (with_heads(MIXED, qkv_bias=True), "qwen2"),
    "qwen3": (QWEN3, "qwen3"),
    "qwen3, tied, biased": (
        with_heads(replace(QWEN3, tied_head=True), qkv_bias=True, out_bias=True),
        "qwen3",
    ),
    "qwen3, windows in some layers": (with_heads(MIXED, qk_norm="head"), "qwen3"),
    "qwen3_moe": (MOE, "qwen3_moe"),
    "qwen3_moe, weights as they are, window": (
        replace(
            MOE,
            moe=replace(MOE.moe, normalise_weights=False),
            layer_types=("window",) * 3,
            attention=replace(WINDOWED, qk_norm="head"),
            rope={"window": RopeConfig()},
        ),
        "qwen3_moe",
    ),
    "gemma2": (GEMMA2, "gemma2"),
    "gemma3": (GEMMA3, "gemma3_text"),
    "olmo2": (
        replace(with_heads(LLAMA, qk_norm="full"), norm_position="post_sublayer"),
        "olmo2",
    ),
    "olmo3": (OLMO3, "olmo3"),
}
# of these `transformers` has a part, but not all of them
OTHERS = {
    "course gpt": replace(
        with_heads(GPT2, qkv_bias=False), tied_head=False, initialisation="torch_default"
    ),
    "heads wider than the stream": with_heads(GPT2, d_head=10),
    "gpt without biases": with_ffn(GPT2, bias=False),
    "sinusoidal": replace(GPT2, positions="sinusoidal"),
    "norms after the addition": replace(GPT2, norm_position="post_residual"),
    "rope and layer norm": replace(LLAMA, norm=NormConfig(kind="layernorm")),
    "latent attention, plain": replace(GPT2, mla=MlaConfig(kv_lora_rank=17)),
    "latent attention, rope": replace(
        with_heads(LLAMA, n_kv_heads=6),
        mla=MlaConfig(q_lora_rank=13, qk_rope_head_dim=4, v_head_dim=5, latent_norm=True),
    ),
    "window and biases": with_heads(MISTRAL, qkv_bias=True, out_bias=True),
    "experts without norms of q and k": replace(MOE, attention=HEADS),
    "experts with biases": with_ffn(MOE, bias=True),
    "experts, windows in some layers": replace(MIXED, attention=WINDOWED, moe=MOE.moe),
    "gemma 3 with caps": with_heads(GEMMA3, score_cap=50.0),
    "gemma with a scale of no whole number": with_heads(GEMMA3, scale=0.3),
    "other rotations in qwen's windows": replace(MIXED, rope=TWO_ROPES),
    "dynamic from another context": scaled(DynamicNtkScaling(factor=2.0, original_context=61)),
    "windows in some layers": MIXED,
    "no norms": replace(LLAMA, norm=NormConfig(kind="none")),
    "no residual stream": replace(GPT2, residual=False),
    "no causal mask": with_heads(LLAMA, causal=False),
    "scaled embeddings": replace(LLAMA, embedding_scale=2.0),
}


def random_model(config, seed=7):
    """A decoder with weights wide enough that a wrong part shows in the logits."""
    generator = torch.Generator().manual_seed(seed)
    model = build_decoder(config, generator).requires_grad_(False)
    for parameter in model.parameters():
        parameter += 0.2 * torch.randn(parameter.shape, generator=generator)
    return model


def random_ids(n_tokens=97):
    return torch.randint(0, 97, (2, n_tokens), generator=torch.Generator().manual_seed(3))
