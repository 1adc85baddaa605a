"""Llama: RMSNorm, rotary positions, SwiGLU, grouped-query attention, no biases.

Touvron et al. 2023, arXiv 2302.13971 (the architecture) and 2307.09288 (Llama 2). SmolLM2 (Ben
Allal et al. 2025, arXiv 2502.02737) is the same shape with other numbers.

Llama 3.1 and 3.2 stretch the context by rescaled frequencies (Grattafiori et al. 2024, arXiv
2407.21783). Names of tensors and keys of config.json are in `models/hf_layout.py`, since most later
families took them over; Meta's own files are in `llama_meta.py`.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
)
from models.families import llama_chat, llama_meta
from models.family import Family, GgufFormat, Settings, StateDictFormat
from models.gguf_file import GgufFile
from models.gguf_layout import Key, gguf_rules, gguf_settings, read_llama_like
from models.hf_layout import (
    UsualValues,
    hf_rules,
    read_hf_config,
    write_hf_config,
)
from models.hf_rope import write_rope
from models.rope_config import Llama3Scaling, RopeConfig
from models.weight_rules import RuleTable


def _scaled(factor: float) -> Llama3Scaling:
    return Llama3Scaling(
        factor=factor,
        low_frequency_factor=1.0,
        high_frequency_factor=4.0,
        original_context=8_192,  # Llama 3's pre-training length
    )


def _preset(
    *,
    vocab_size: int,
    context_length: int,
    d_model: int,
    n_layers: int,
    n_heads: int,
    n_kv_heads: int,
    d_ff: int,
    theta: float = 10_000.0,
    eps: float = 1e-5,
    tied_head: bool = False,
) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=context_length,
        d_model=d_model,
        layer_types=(FULL,) * n_layers,
        attention=AttentionConfig(
            n_heads=n_heads, n_kv_heads=n_kv_heads, d_head=d_model // n_heads
        ),
        ffn=FfnConfig(d_ff=d_ff, activation="silu", gated=True),
        norm=NormConfig(kind="rmsnorm", eps=eps),
        positions="rope",
        rope={FULL: RopeConfig(theta=theta)},
        tied_head=tied_head,
    )


# huggingface.co/meta-llama/Llama-2-7b-hf/blob/main/config.json
LLAMA2_7B = _preset(
    vocab_size=32_000,
    context_length=4_096,
    d_model=4_096,
    n_layers=32,
    n_heads=32,
    n_kv_heads=32,
    d_ff=11_008,
)
# huggingface.co/meta-llama/Meta-Llama-3-8B/blob/main/config.json
LLAMA3_8B = _preset(
    vocab_size=128_256,
    context_length=8_192,
    d_model=4_096,
    n_layers=32,
    n_heads=32,
    n_kv_heads=8,
    d_ff=14_336,
    theta=500_000.0,
)
# huggingface.co/meta-llama/Llama-3.1-8B/blob/main/config.json
LLAMA31_8B = replace(
    LLAMA3_8B,
    context_length=131_072,
    rope={FULL: RopeConfig(theta=500_000.0, scaling=_scaled(8.0))},
)
# huggingface.co/meta-llama/Llama-3.2-1B/blob/main/config.json
LLAMA32_1B = replace(
    _preset(
        vocab_size=128_256,
        context_length=131_072,
        d_model=2_048,
        n_layers=16,
        n_heads=32,
        n_kv_heads=8,
        d_ff=8_192,
        tied_head=True,
    ),
    rope={FULL: RopeConfig(theta=500_000.0, scaling=_scaled(32.0))},
)
# huggingface.co/meta-llama/Llama-3.2-3B/blob/main/config.json
LLAMA32_3B = replace(
    LLAMA32_1B,
    d_model=3_072,
    layer_types=(FULL,) * 28,
    attention=AttentionConfig(n_heads=24, n_kv_heads=8, d_head=128),
)

# huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct/blob/main/config.json
SMOLLM2_135M = _preset(
    vocab_size=49_152,
    context_length=8_192,
    d_model=576,
    n_layers=30,
    n_heads=9,
    n_kv_heads=3,
    d_ff=1_536,
    theta=100_000.0,
    tied_head=True,
)
# huggingface.co/HuggingFaceTB/SmolLM2-360M/blob/main/config.json
SMOLLM2_360M = _preset(
    vocab_size=49_152,
    context_length=8_192,
    d_model=960,
    n_layers=32,
    n_heads=15,
    n_kv_heads=5,
    d_ff=2_560,
    theta=100_000.0,
    tied_head=True,
)
# huggingface.co/HuggingFaceTB/SmolLM2-1.7B/blob/main/config.json
SMOLLM2_1_7B = _preset(
    vocab_size=49_152,
    context_length=8_192,
    d_model=2_048,
    n_layers=24,
    n_heads=32,
    n_kv_heads=32,
    d_ff=8_192,
    theta=130_000.0,
    tied_head=True,
)

# explorer/starter/recipe.py: the model that this project trains and ships
STARTER = _preset(
    vocab_size=4_096,
    context_length=256,
    d_model=192,
    n_layers=6,
    n_heads=6,
    n_kv_heads=3,
    d_ff=640,
    tied_head=True,
)

PRESETS: Mapping[str, ModelConfig] = {
    "starter": STARTER,
    "llama2-7b": LLAMA2_7B,
    "llama2-7b-chat": LLAMA2_7B,
    "llama3-8b": LLAMA3_8B,
    "llama3.1-8b": LLAMA31_8B,
    "llama3.2-1b": LLAMA32_1B,
    "llama3.2-3b": LLAMA32_3B,
    "smollm2-135m": SMOLLM2_135M,
    "smollm2-360m": SMOLLM2_360M,
    "smollm2-1.7b": SMOLLM2_1_7B,
}


USUAL = UsualValues(context_length=2_048)


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json, in the old form and in that of transformers 5 (`rope_parameters`).

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = Settings(values)
    return read_hf_config(settings, USUAL, (FULL,) * settings.layers("num_hidden_layers"))


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json; None for a width that the reference refuses."""
    if config.d_model % config.attention.n_heads:
        return None
    return write_hf_config(
        config,
        "LlamaForCausalLM",
        "llama",
        USUAL,
        attention_bias=config.attention.qkv_bias,
        mlp_bias=config.ffn.bias,
        **write_rope(config),
    )


def config_from_gguf(gguf: GgufFile) -> ModelConfig:
    """Read a GGUF file of architecture "llama", which is Mistral's too.

    A window that the file states is kept, since the weights were trained with it; llama.cpp itself
    reads such files without it.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = gguf_settings(gguf)
    settings.refuse_unless(**{Key.EXPERT_COUNT.value: 0})
    common = read_llama_like(gguf)
    window = settings.whole(Key.WINDOW, 0, least=0)  # 0 stands for none
    if not window:
        return common
    return replace(
        common,
        layer_types=(WINDOW,) * common.n_layers,
        attention=replace(common.attention, window=window),
        rope={WINDOW: common.rope[FULL]},
    )


def llama_gguf_rules(config: ModelConfig) -> RuleTable:
    """Names of GGUF files; rows of q and k lie in neighbouring pairs there."""
    return gguf_rules(config, neighbouring_pairs=True)


FAMILY = Family(
    name="Llama",
    source="Touvron et al. 2023, arXiv 2302.13971",
    model_types=("llama",),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    rules=hf_rules,
    gguf=GgufFormat(("llama",), config_from_gguf, llama_gguf_rules),
    chat_formats=llama_chat.CHAT_FORMATS,
    state_dict=StateDictFormat(
        llama_meta.MARKER,
        partial(llama_meta.config_from_params, presets=PRESETS.values()),
        llama_meta.rules,
    ),
)
