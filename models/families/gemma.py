"""Gemma 2 and 3, the text part.

Gemma 2 (Gemma Team 2024, arXiv 2408.00118): embeddings times sqrt(d_model), norms before and after
each sublayer whose weights are stored as their distance from 1, soft caps on scores and logits,
window and full layers in turn. Gemma 3 (Gemma Team 2025, arXiv 2503.19786): five window layers to
one full one, queries and keys normalised over each head in place of the caps, and two rotations:
base 10,000 in window layers, base 1,000,000 in full ones, whose positions are divided by 8 from 4B
on.

The window counts the query: 512 is the token itself and 511 before it.
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
from models.rope_config import LinearScaling, RopeConfig
from models.tokenizers.chat_format import ChatFormat
from models.weight_rules import RuleTable, WeightRule


def _pattern(n_layers: int, period: int) -> tuple[LayerType, ...]:
    """Window layers, every `period`-th one full."""
    return tuple(FULL if (i + 1) % period == 0 else WINDOW for i in range(n_layers))


def _gemma3(
    d_model: int, n_layers: int, n_heads: int, n_kv_heads: int, d_ff: int, window: int
) -> ModelConfig:
    return ModelConfig(
        vocab_size=262_144,
        context_length=32_768,
        d_model=d_model,
        layer_types=_pattern(n_layers, 6),
        attention=AttentionConfig(
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            d_head=256,
            scale=256**-0.5,
            window=window,
            qk_norm="head",
        ),
        ffn=FfnConfig(d_ff=d_ff, activation="gelu_tanh", gated=True),
        norm=NormConfig(kind="rmsnorm", eps=1e-6, unit_offset=True),
        norm_position="sandwich",
        positions="rope",
        rope={WINDOW: RopeConfig(theta=10_000.0), FULL: RopeConfig(theta=1_000_000.0)},
        embedding_scale=d_model**0.5,
        tied_head=True,
    )


PRESETS: Mapping[str, ModelConfig] = {
    "gemma3-270m": _gemma3(640, 18, 4, 1, 2_048, 512),  # huggingface.co/google/gemma-3-270m
    "gemma3-1b": _gemma3(1_152, 26, 4, 1, 6_912, 512),  # huggingface.co/google/gemma-3-1b-pt
    # huggingface.co/google/gemma-3-4b-pt, its text_config
    "gemma3-4b": replace(
        _gemma3(2_560, 34, 8, 4, 10_240, 1_024),
        vocab_size=262_208,
        context_length=131_072,
        rope={
            WINDOW: RopeConfig(theta=10_000.0),
            FULL: RopeConfig(theta=1_000_000.0, scaling=LinearScaling(factor=8.0)),
        },
    ),
}


GEMMA2_USUAL = UsualValues(
    context_length=8_192,
    tied_head=True,
    activation_key="hidden_activation",
    activation="gelu_pytorch_tanh",
)
GEMMA3_USUAL = replace(GEMMA2_USUAL, context_length=131_072)


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json of Gemma 2 and 3; of a multimodal one, its `text_config`.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    third = values.get("model_type") != "gemma2"
    if isinstance(values.get("text_config"), dict):
        values = {**MULTIMODAL_DEFAULTS, **values["text_config"]}
    settings = Settings(values)
    settings.refuse_unless(use_bidirectional_attention=False)
    period = settings.whole("sliding_window_pattern", 6) if third else 2
    usual = _pattern(settings.layers("num_hidden_layers"), period)
    return read_hf_config(
        settings,
        GEMMA3_USUAL if third else GEMMA2_USUAL,
        read_layer_types(settings, usual),
        attention=_read_heads(settings, third),
        norm_position="sandwich",
        unit_offset=True,
        rope=_read_ropes(settings) if third else None,
        embedding_scale=settings.whole("hidden_size") ** 0.5,
        logit_cap=_cap(settings, "final_logit_softcapping", None if third else 30.0),
    )


def _read_heads(settings: Settings, third: bool) -> AttentionConfig:
    return read_heads(
        settings,
        d_head=settings.whole("head_dim", 256),
        scale=settings.whole("query_pre_attn_scalar", 256) ** -0.5,
        window=settings.whole("sliding_window", 4_096),
        score_cap=_cap(settings, "attn_logit_softcapping", None if third else 50.0),
        qk_norm="head" if third else "none",
    )


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json of Gemma 3's text part where queries and keys have norms, else of Gemma 2.

    None for a width that the reference refuses. Gemma 3's fast attention there has no caps.
    """
    heads = config.attention
    if config.d_model % heads.n_heads:
        return None
    own: dict[str, Any] = {
        "attention_bias": heads.qkv_bias,
        "query_pre_attn_scalar": _query_scalar(heads),
        "sliding_window": heads.window if WINDOW in config.layer_types else 4_096,
        "layer_types": write_layer_types(config),
    }
    if heads.qk_norm != "none":
        own |= write_ropes(config)
        return write_hf_config(config, "Gemma3ForCausalLM", "gemma3_text", GEMMA3_USUAL, **own)
    own |= {
        "attn_logit_softcapping": heads.score_cap,
        "final_logit_softcapping": config.logit_cap,
        **write_rope(config),
    }
    return write_hf_config(config, "Gemma2ForCausalLM", "gemma2", GEMMA2_USUAL, **own)


def _query_scalar(heads: AttentionConfig) -> int:
    """The whole number whose root divides the scores, or the nearest that a file can hold."""
    return round(min(max(heads.score_scale, 1e-4), 1.0) ** -2)


# What the text_config of a multimodal Gemma 3 leaves to the reference's defaults.
MULTIMODAL_DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 262_208,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
}


def _cap(settings: Settings, key: str, default: float | None) -> float | None:
    """A soft cap; null switches it off, an absent key leaves the family's default."""
    if key in settings.values and settings.values[key] is None:
        return None
    return default if key not in settings.values else settings.number(key)


def _read_ropes(settings: Settings) -> dict[LayerType, RopeConfig]:
    """Window and full layers turn by different bases."""
    local = settings.number("rope_local_base_freq", 10_000.0)
    theta = settings.number("rope_theta", 1_000_000.0)
    return read_two_ropes(settings, {WINDOW: local, FULL: theta})


def rules(config: ModelConfig) -> RuleTable:
    """Names of the text model, alone or inside a multimodal file whose other parts are dropped."""
    alone = hf_rules(config).rules
    inside = [
        replace(rule, theirs=form + rule.theirs.removeprefix("model."))
        for rule in alone
        for form in ("language_model.model.", "model.language_model.")
        if rule.theirs.startswith("model.")
    ]
    head: str | tuple[str, ...] = () if config.tied_head else "head.weight"
    dropped = [
        WeightRule(f"{prefix}{part}.{{rest}}", ())
        for prefix in ("", "model.")
        for part in ("vision_tower", "multi_modal_projector")
    ]
    rows = (*alone, *inside, WeightRule("language_model.lm_head.weight", head), *dropped)
    return RuleTable(rows, optional_prefix="model.")


# Architecture -> number of blocks of the one size whose scores are scaled by d_model / n_heads in
# place of d_head, 27B in both; files do not say.
SCALED_BY_MODEL: Mapping[str, int] = {"gemma2": 46, "gemma3": 62}


def config_from_gguf(gguf: GgufFile) -> ModelConfig:
    """Read a GGUF file of architecture "gemma2" or "gemma3".

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings, common = gguf_settings(gguf), read_llama_like(gguf)
    third = gguf.architecture == "gemma3"
    layer_types = read_gguf_layer_types(settings, common.n_layers, usual_period=6 if third else 2)
    heads = common.attention
    scale = heads.scale
    if scale is None and common.n_layers == SCALED_BY_MODEL[gguf.architecture]:
        scale = (common.d_model / heads.n_heads) ** -0.5
    full = common.rope[FULL]
    local = RopeConfig(theta=settings.number(Key.ROPE_BASE_WINDOW, 10_000.0)) if third else full
    return replace(
        common,
        layer_types=layer_types,
        attention=replace(
            heads,
            scale=scale,
            # Gemma 2's first files leave it out; all its sizes have 4,096
            window=settings.whole(Key.WINDOW, None if third else 4_096),
            score_cap=None if third else settings.number(Key.SCORE_CAP, 50.0),
            qk_norm="head" if third else "none",
        ),
        ffn=replace(common.ffn, activation="gelu_tanh"),
        norm=replace(common.norm, unit_offset=True),
        norm_position="sandwich",
        rope={WINDOW: local, FULL: full},
        embedding_scale=common.d_model**0.5,
        logit_cap=_gguf_logit_cap(settings, third),
    )


def _gguf_logit_cap(settings: Settings, third: bool) -> float | None:
    if third and settings.raw(Key.LOGIT_CAP) is None:
        return None
    return settings.number(Key.LOGIT_CAP, 30.0)


# Gemma has no place for a system message: it goes in front of the first of the user's.
CHAT = ChatFormat(
    name="Gemma",
    source="Gemma formatting and system instructions, ai.google.dev",
    template=(
        "{{ bos_token }}"
        "{% set first = 1 if messages[0].role == 'system' else 0 %}"
        "{% for message in messages[first:] %}"
        "{% if message.role != ('assistant' if loop.index0 % 2 else 'user') %}"
        "{{ raise_exception('After an optional system message, user and assistant take turns') }}"
        "{% endif %}"
        "{{ '<start_of_turn>' + ('model' if message.role == 'assistant' else 'user') + '\n' }}"
        "{% if loop.first and first %}{{ messages[0].content + '\n\n' }}{% endif %}"
        "{{ message.content | trim + '<end_of_turn>\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
    ),
    needs=("<start_of_turn>",),
    ends=("<end_of_turn>",),
)

FAMILY = Family(
    name="Gemma",
    source="Gemma Team 2024 and 2025, arXiv 2408.00118 and 2503.19786",
    model_types=("gemma2", "gemma3_text", "gemma3"),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    rules=rules,
    gguf=GgufFormat(("gemma2", "gemma3"), config_from_gguf, gguf_rules),
    chat_formats=(CHAT,),
)
