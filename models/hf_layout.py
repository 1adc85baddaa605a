"""What config.json files and checkpoints of Llama's descendants have in common.

Mistral, Qwen, Gemma and Olmo write their settings under Llama's keys and their tensors under
Llama's names, and add a few of their own. Here stands the common part, read and written; a family's
file says what differs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.config import (
    Activation,
    AttentionConfig,
    DropoutConfig,
    FfnConfig,
    LayerType,
    ModelConfig,
    NormConfig,
    NormPosition,
)
from models.errors import ConfigError
from models.family import Settings, activation_named
from models.hf_rope import LAYER_TYPE_NAMES, LAYER_TYPES, read_rope
from models.rope_config import RopeConfig
from models.weight_rules import SPLIT_EXPERTS, SPLIT_GATE_UP, RuleTable, WeightRule

ACTIVATION_NAMES: Mapping[Activation, str] = {
    "silu": "silu",
    "gelu": "gelu",
    "gelu_tanh": "gelu_pytorch_tanh",
    "relu": "relu",
}

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


@dataclass(frozen=True, kw_only=True)
class UsualValues:
    """What a family's files may leave out, because the reference has a value for it.

    Args:
        context_length: Where `max_position_embeddings` is absent.
        eps: Where `rms_norm_eps` is absent.
        tied_head: Where `tie_word_embeddings` is absent.
        activation_key: The key that names the nonlinearity.
        activation: Where that key is absent.
    """

    context_length: int
    eps: float = 1e-6
    tied_head: bool = False
    activation_key: str = "hidden_act"
    activation: str = "silu"


def read_hf_config(
    settings: Settings,
    usual: UsualValues,
    layer_types: Sequence[LayerType],
    *,
    rope: Mapping[LayerType, RopeConfig] | None = None,
    unit_offset: bool = False,
    **own: Any,
) -> ModelConfig:
    """A whole configuration: what all of them have, with a family's own parts.

    Args:
        settings: Parsed config.json.
        usual: For keys that are absent.
        layer_types: One for each block.
        rope: A family's own rotations; None reads one for all types of layers.
        unit_offset: As in `NormConfig`.
        **own: Fields of `ModelConfig` that are not Llama's, such as `attention`.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    eps = settings.number("rms_norm_eps", usual.eps)
    common: dict[str, Any] = {
        "vocab_size": settings.whole("vocab_size"),
        "context_length": settings.whole("max_position_embeddings", usual.context_length),
        "d_model": settings.whole("hidden_size"),
        "layer_types": tuple(layer_types),
        "attention": own.pop("attention", None) or read_heads(settings),
        "ffn": read_gated_ffn(settings, usual.activation_key, usual.activation),
        "norm": NormConfig(kind="rmsnorm", eps=eps, unit_offset=unit_offset),
        "positions": "rope",
        "rope": read_rope(settings, layer_types) if rope is None else rope,
        "tied_head": settings.flag("tie_word_embeddings", usual.tied_head),
        "dropout": DropoutConfig(attention=settings.number("attention_dropout", 0.0)),
    }
    return ModelConfig(**{**common, **own})


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


def write_hf_config(
    config: ModelConfig, architecture: str, model_type: str, usual: UsualValues, **own: Any
) -> dict[str, Any]:
    """The inverse of `read_hf_config`: settings under the keys that all of them have.

    Args:
        config: What is written.
        architecture: The class of `transformers` that computes it.
        model_type: The family's name there.
        usual: Whose `activation_key` names the nonlinearity.
        **own: A family's own keys.
    """
    heads = config.attention
    return {
        "architectures": [architecture],
        "model_type": model_type,
        "vocab_size": config.vocab_size,
        "max_position_embeddings": config.context_length,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": heads.n_heads,
        "num_key_value_heads": heads.n_kv_heads,
        "head_dim": heads.d_head,
        "intermediate_size": config.ffn.d_ff,
        usual.activation_key: ACTIVATION_NAMES[config.ffn.activation],
        "rms_norm_eps": config.norm.eps,
        "tie_word_embeddings": config.tied_head,
        "attention_dropout": config.dropout.attention,
        **own,
    }


def write_layer_types(config: ModelConfig) -> list[str]:
    """The inverse of `read_layer_types`."""
    return [LAYER_TYPE_NAMES[layer_type] for layer_type in config.layer_types]


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
