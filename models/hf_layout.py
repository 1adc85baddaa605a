"""What config.json files and checkpoints of Llama's descendants have in common.

Mistral, Qwen, Gemma and Olmo write their settings under Llama's keys and their tensors under
Llama's names, and add a few of their own. Here stands the common part; a family's file says what
differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    FfnConfig,
    LayerType,
    ModelConfig,
    NormPosition,
)
from models.errors import ConfigError
from models.family import Settings, activation_named
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    RopeScaling,
    YarnScaling,
)
from models.weight_rules import SPLIT_EXPERTS, SPLIT_GATE_UP, RuleTable, WeightRule

LAYER_TYPES: Mapping[str, LayerType] = {"full_attention": FULL, "sliding_attention": WINDOW}

# Our norms of a block and their names, which follow from where the norms stand. Llama's
# `post_attention_layernorm` stands *before* the feed-forward; Olmo's and Gemma's after attention.
NORM_NAMES: Mapping[NormPosition, Mapping[str, str]] = {
    "pre": {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm"},
    "post_sublayer": {
        "attn_norm": "post_attention_layernorm",
        "ffn_norm": "post_feedforward_layernorm",
    },
    "sandwich": {
        "attn_norm": "input_layernorm",
        "attn_post_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "ffn_post_norm": "post_feedforward_layernorm",
    },
}


def read_heads(settings: Settings, **changes: Any) -> AttentionConfig:
    """Head counts and widths, with a family's own values on top.

    Raises:
        ConfigError: A key is missing or has a value that cannot be.
    """
    n_heads = settings.whole("num_attention_heads")
    bias = settings.flag("attention_bias", False)
    return AttentionConfig(
        **{
            "n_heads": n_heads,
            "n_kv_heads": settings.whole("num_key_value_heads", n_heads),
            "d_head": settings.whole("head_dim", settings.whole("hidden_size") // n_heads),
            "qkv_bias": bias,
            "out_bias": bias,
            **changes,
        }
    )


def read_gated_ffn(settings: Settings, activation_key: str, default: str) -> FfnConfig:
    """The gated feed-forward.

    Raises:
        ConfigError: A key is missing, or an activation that we do not have.
    """
    return FfnConfig(
        d_ff=settings.whole("intermediate_size"),
        activation=activation_named(settings.values.get(activation_key, default)),
        gated=True,
        bias=settings.flag("mlp_bias", False),
    )


def read_layer_types(settings: Settings, default: Sequence[LayerType]) -> tuple[LayerType, ...]:
    """`layer_types`, or the family's usual pattern where the file leaves it to that.

    Raises:
        ConfigError: A type that we do not have, or not one for each layer.
    """
    names = settings.values.get("layer_types")
    if names is None:
        return tuple(default)
    n_layers = settings.layers("num_hidden_layers")
    if not isinstance(names, list) or len(names) != n_layers or set(names) - set(LAYER_TYPES):
        raise ConfigError(
            f"{settings.where} has layer_types {str(names)[:120]}; "
            f"expected {n_layers} of {', '.join(LAYER_TYPES)}",
            code="config-value-wrong",
            file=settings.where,
            key="layer_types",
            found=str(names)[:80],
        )
    return tuple(LAYER_TYPES[name] for name in names)


def read_rope(
    settings: Settings, layer_types: Sequence[LayerType], default_theta: float = 10_000.0
) -> dict[LayerType, RopeConfig]:
    """One rotation for all layer types, in the old form and in that of transformers 5.

    Old: `rope_theta` and `rope_scaling` side by side. New: both inside `rope_parameters`, which may
    hold one set of them for each layer type.

    Raises:
        ConfigError: A scaling that we do not have.
    """
    found = settings.table("rope_parameters") or settings.table("rope_scaling")
    inside = Settings(found, settings.where)
    by_type = {ours: inside.table(name) for name, ours in LAYER_TYPES.items() if inside.table(name)}
    theta = settings.number("rope_theta", default_theta)
    return {
        layer_type: read_one_rope(settings, by_type.get(layer_type, found), theta)
        for layer_type in set(layer_types)
    }


def read_one_rope(settings: Settings, found: Mapping[str, Any], theta: float) -> RopeConfig:
    """One rotation from its parameters; `theta` where they do not hold one.

    Raises:
        ConfigError: A scaling that we do not have, or a partial rotation.
    """
    rope = Settings({**found, "original": _original_context(settings, found)}, settings.where)
    rope.refuse_unless(partial_rotary_factor=1.0)
    settings.refuse_unless(partial_rotary_factor=1.0)
    return RopeConfig(theta=rope.number("rope_theta", theta), scaling=_read_scaling(rope))


def _original_context(settings: Settings, found: Mapping[str, Any]) -> object:
    return found.get("original_max_position_embeddings") or settings.values.get(
        "max_position_embeddings"
    )


def _read_scaling(rope: Settings) -> RopeScaling | None:
    kind = rope.values.get("rope_type", rope.values.get("type", "default"))
    if kind == "default":
        return None
    if kind == "linear":
        return LinearScaling(factor=rope.number("factor"))
    if kind == "dynamic":
        return DynamicNtkScaling(
            factor=rope.number("factor"), original_context=rope.whole("original")
        )
    if kind == "llama3":
        return Llama3Scaling(
            factor=rope.number("factor"),
            low_frequency_factor=rope.number("low_freq_factor"),
            high_frequency_factor=rope.number("high_freq_factor"),
            original_context=rope.whole("original"),
        )
    if kind == "yarn":
        return _read_yarn(rope)
    raise scaling_error(rope.where, str(kind))


def _read_yarn(rope: Settings) -> YarnScaling:
    rope.refuse_unless(mscale=None, mscale_all_dim=None)  # DeepSeek's own attention factor
    stated = rope.values.get("attention_factor")
    return YarnScaling(
        factor=rope.number("factor"),
        original_context=rope.whole("original"),
        beta_fast=rope.number("beta_fast", 32.0),
        beta_slow=rope.number("beta_slow", 1.0),
        attention_factor=None if stated is None else rope.number("attention_factor"),
        truncate=rope.flag("truncate", True),
    )


def scaling_error(where: str, kind: str) -> ConfigError:
    """The error for a RoPE scaling that we do not compute."""
    return ConfigError(
        f"{where} asks for RoPE scaling {kind!r}, which is not supported; known are default, "
        "linear, dynamic, llama3 and yarn; choose another model",
        code="config-rope-scaling",
        file=where,
        kind=kind,
    )


def hf_rules(config: ModelConfig, further: Sequence[WeightRule] = ()) -> RuleTable:
    """Rules for Llama's names, as far as the configuration has those parts.

    Args:
        config: What is to be filled.
        further: A family's own rows.
    """
    theirs, ours = "model.layers.{i}", "blocks.{i}"
    rows = [
        WeightRule("model.embed_tokens.weight", "embed.weight"),
        WeightRule("model.norm.weight", "final_norm.weight"),
        # a tied checkpoint may hold a copy of the embedding under the head's name
        WeightRule("lm_head.weight", () if config.tied_head else "head.weight"),
        # a table, not a weight; files written before transformers 4.32 hold it
        WeightRule(f"{theirs}.self_attn.rotary_emb.inv_freq", ()),
    ]
    for our_norm, their_norm in NORM_NAMES[config.norm_position].items():
        rows.append(WeightRule(f"{theirs}.{their_norm}.weight", f"{ours}.{our_norm}.weight"))
    for norm in ("q_norm", "k_norm"):
        rows.append(WeightRule(f"{theirs}.self_attn.{norm}.weight", f"{ours}.attn.{norm}.weight"))
    for kind in ("weight", "bias"):
        rows += [
            WeightRule(f"{theirs}.self_attn.{p}.{kind}", f"{ours}.attn.{p}.{kind}")
            for p in ("q_proj", "k_proj", "v_proj", "o_proj")
        ]
        rows += [
            WeightRule(f"{theirs}.mlp.{p}.{kind}", f"{ours}.ffn.{p}.{kind}")
            for p in ("gate_proj", "up_proj", "down_proj")
        ]
    rows += [*_expert_rules(config, theirs, ours), *further]
    return RuleTable(tuple(rows), optional_prefix="model.")


def _expert_rules(config: ModelConfig, theirs: str, ours: str) -> list[WeightRule]:
    """Experts one by one, as on the Hub, or stacked, as transformers 5 keeps them in memory."""
    if config.moe is None:
        return []
    rows = [WeightRule(f"{theirs}.mlp.gate.weight", f"{ours}.ffn.router.weight")]
    rows += [
        WeightRule(f"{theirs}.mlp.experts.{{e}}.{p}.weight", f"{ours}.ffn.experts.{{e}}.{p}.weight")
        for p in ("gate_proj", "up_proj", "down_proj")
    ]
    numbers = range(config.moe.n_experts)
    down = tuple(f"{ours}.ffn.experts.{e}.down_proj.weight" for e in numbers)
    gate_up = tuple(
        f"{ours}.ffn.experts.{e}.{p}.weight" for e in numbers for p in ("gate_proj", "up_proj")
    )
    return [
        *rows,
        WeightRule(f"{theirs}.mlp.experts.gate_up_proj", gate_up, (SPLIT_GATE_UP,)),
        WeightRule(f"{theirs}.mlp.experts.down_proj", down, (SPLIT_EXPERTS,)),
    ]
