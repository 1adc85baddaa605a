"""Olmo 2 and 3: norms after the sublayers, and over all queries and keys at once.

OLMo Team 2024, arXiv 2501.00656, section 3: what a sublayer adds is normalised, not what it reads,
and RMSNorm goes over the whole projection of queries and keys before it is cut into heads. Olmo 3
(OLMo Team 2025) has three window layers to one full one, and YaRN on the full ones only: window
layers never look far enough to need it.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    FfnConfig,
    LayerType,
    ModelConfig,
    NormConfig,
)
from models.family import Family, GgufFormat, Settings
from models.gguf_file import GgufFile
from models.gguf_layout import (
    Key,
    gguf_rules,
    gguf_settings,
    read_gguf_layer_types,
    read_llama_like,
)
from models.hf_layout import (
    UsualValues,
    hf_rules,
    read_heads,
    read_hf_config,
    read_layer_types,
    write_hf_config,
    write_layer_types,
)
from models.hf_rope import read_two_ropes, write_rope, write_ropes
from models.rope_config import RopeConfig, YarnScaling
from models.tokenizers.chat_format import CHATML


def _pattern(n_layers: int) -> tuple[LayerType, ...]:
    """Three window layers, then a full one."""
    return tuple(FULL if (i + 1) % 4 == 0 else WINDOW for i in range(n_layers))


# huggingface.co/allenai/Olmo-3-1025-7B/blob/main/config.json
OLMO3_7B = ModelConfig(
    vocab_size=100_278,
    context_length=65_536,
    d_model=4_096,
    layer_types=_pattern(32),
    attention=AttentionConfig(n_heads=32, n_kv_heads=32, d_head=128, window=4_096, qk_norm="full"),
    ffn=FfnConfig(d_ff=11_008, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm", eps=1e-6),
    norm_position="post_sublayer",
    positions="rope",
    rope={
        WINDOW: RopeConfig(theta=500_000.0),
        FULL: RopeConfig(theta=500_000.0, scaling=YarnScaling(factor=8.0, original_context=8_192)),
    },
)
# huggingface.co/allenai/Olmo-3-1125-32B/blob/main/config.json
OLMO3_32B = replace(
    OLMO3_7B,
    d_model=5_120,
    layer_types=_pattern(64),
    attention=replace(OLMO3_7B.attention, n_heads=40, n_kv_heads=8),
    ffn=replace(OLMO3_7B.ffn, d_ff=27_648),
)

# huggingface.co/allenai/OLMo-2-0425-1B/blob/main/config.json
OLMO2_1B = replace(
    OLMO3_7B,
    vocab_size=100_352,
    context_length=4_096,
    d_model=2_048,
    layer_types=(FULL,) * 16,
    attention=AttentionConfig(n_heads=16, n_kv_heads=16, d_head=128, qk_norm="full"),
    ffn=replace(OLMO3_7B.ffn, d_ff=8_192),
    rope={FULL: RopeConfig(theta=500_000.0)},
)

PRESETS: Mapping[str, ModelConfig] = {
    "olmo2-1b": OLMO2_1B,
    "olmo3-7b": OLMO3_7B,
    "olmo3-32b": OLMO3_32B,
}


USUAL = UsualValues(context_length=2_048, eps=1e-5)


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json of Olmo 2 and 3.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = Settings(values)
    third = values.get("model_type") == "olmo3"
    n_layers = settings.layers("num_hidden_layers")
    window = settings.whole("sliding_window", 4_096) if third else None
    return read_hf_config(
        settings,
        USUAL,
        read_layer_types(settings, _pattern(n_layers) if third else (FULL,) * n_layers),
        attention=read_heads(settings, window=window, qk_norm="full"),
        norm_position="post_sublayer",
        rope=_read_ropes(settings) if third else None,
    )


def _read_ropes(settings: Settings) -> dict[LayerType, RopeConfig]:
    theta = settings.number("rope_theta", 500_000.0)
    return read_two_ropes(settings, {WINDOW: theta, FULL: theta})


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json of Olmo 3 where there are window layers, else of Olmo 2."""
    bias = config.attention.qkv_bias
    if WINDOW not in config.layer_types:
        own = {"attention_bias": bias, **write_rope(config)}
        return write_hf_config(config, "Olmo2ForCausalLM", "olmo2", USUAL, **own)
    return write_hf_config(
        config,
        "Olmo3ForCausalLM",
        "olmo3",
        USUAL,
        attention_bias=bias,
        sliding_window=config.attention.window,
        layer_types=write_layer_types(config),
        **write_ropes(config),
    )


def config_from_gguf(gguf: GgufFile) -> ModelConfig:
    """Read a GGUF file of architecture "olmo2"; one with a window is Olmo 3.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = gguf_settings(gguf)
    common = read_llama_like(gguf)
    common = replace(
        common,
        attention=replace(common.attention, qk_norm="full"),
        norm_position="post_sublayer",
    )
    window = settings.whole(Key.WINDOW, 0, least=0)  # 0 stands for none
    if not window:
        return common
    full = common.rope[FULL]
    theta = settings.number(Key.ROPE_BASE_WINDOW, full.theta)
    return replace(
        common,
        layer_types=read_gguf_layer_types(settings, common.n_layers, usual_period=4),
        attention=replace(common.attention, window=window),
        rope={WINDOW: RopeConfig(theta=theta), FULL: full},
    )


FAMILY = Family(
    name="Olmo",
    source="OLMo Team 2024, arXiv 2501.00656",
    model_types=("olmo2", "olmo3"),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    rules=hf_rules,
    gguf=GgufFormat(("olmo2",), config_from_gguf, gguf_rules),
    chat_formats=(CHATML,),
)
