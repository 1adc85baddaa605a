"""Multi-head latent attention as a family: DeepSeek-V3's dense layout, and the plain form.

DeepSeek-V2 2024, arXiv 2405.04434, section 2.1; V3: arXiv 2412.19437. A block is Llama's with
latent attention (models/mla.py) in the place of grouped queries. Two pairs of matrices are one in
the files:

    kv_a_proj_with_mqa   latent_proj | k_rotary_proj                       (C + r, D)
    kv_b_proj            of each head in turn: its rows of k_proj | v_proj (H (d - r + v), C)

The published models have experts whose routing (sigmoid scores in groups, with a correction) we do
not compute; a config.json with them is refused, one whose layers are all dense opens.

The plain form has no published files. Ours carry `model_type` "mla_plain" and DeepSeek's names,
without what the form lacks: no rotated key, no second latent, and learned positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from models.config import (
    FULL,
    AttentionConfig,
    FfnConfig,
    ModelConfig,
    NormConfig,
    Positions,
)
from models.errors import ConfigError
from models.family import Family, Settings
from models.hf_layout import UsualValues, hf_rules, read_hf_config
from models.mla_config import MlaConfig
from models.rope_config import RopeConfig
from models.weight_rules import Layout, RuleTable, WeightRule

if TYPE_CHECKING:
    from torch import Tensor

PLAIN_TYPE = "mla_plain"
LATENT_NORM_EPS = 1e-6  # of DeepSeek's latents, whatever rms_norm_eps says
YARN_LOG_FACTOR = 0.1  # YaRN, arXiv 2309.00071, eq. 22

# Small enough to train on two cores; GPT-2's vocabulary.
MLA_PLAIN_TINY = ModelConfig(
    vocab_size=50_257,
    context_length=256,
    d_model=256,
    layer_types=(FULL,) * 4,
    attention=AttentionConfig(n_heads=8, n_kv_heads=8, d_head=32),
    mla=MlaConfig(),
    ffn=FfnConfig(d_ff=688, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm", eps=1e-6),
    positions="learned",
    tied_head=True,
)
# The same size in DeepSeek's form: half of each head carries the position.
MLA_ROPE_TINY = replace(
    MLA_PLAIN_TINY,
    mla=MlaConfig(kv_lora_rank=32, q_lora_rank=96, qk_rope_head_dim=16, latent_norm=True),
    positions="rope",
    rope={FULL: RopeConfig(theta=10_000.0)},
)
PRESETS: Mapping[str, ModelConfig] = {
    "mla-plain-tiny": MLA_PLAIN_TINY,
    "mla-rope-tiny": MLA_ROPE_TINY,
}


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json of a dense DeepSeek-V3, or of the plain form.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute;
            so do experts.
    """
    is_plain = values.get("model_type") == PLAIN_TYPE
    settings = Settings(values if is_plain else _without_mscale(values))
    layer_types = (FULL,) * settings.layers("num_hidden_layers")
    if not is_plain:
        _refuse_experts(settings, len(layer_types))
    positions: Positions = "learned" if is_plain else "rope"
    return read_hf_config(
        settings,
        UsualValues(context_length=4_096),
        layer_types,
        attention=_read_heads(settings, _score_scale(Settings(values)), is_plain),
        mla=_read_plain_mla(settings) if is_plain else _read_mla(settings),
        positions=positions,
        rope={} if is_plain else None,
    )


def _refuse_experts(settings: Settings, n_layers: int) -> None:
    dense = settings.whole("first_k_dense_replace", 3, least=0)
    if dense >= n_layers:
        return
    raise ConfigError(
        f"{settings.where} has first_k_dense_replace={dense} of {n_layers} layers: the others have "
        "experts that are chosen in groups by sigmoid scores, which Glassbox does not compute; "
        "choose a model without them, or a Qwen3 with experts",
        code="config-grouped-experts",
        file=settings.where,
        dense=dense,
        layers=n_layers,
    )


def _read_heads(settings: Settings, scale_factor: float, is_plain: bool) -> AttentionConfig:
    n_heads = settings.whole("num_attention_heads")
    settings.refuse_unless(num_key_value_heads=n_heads)
    rotary = 0 if is_plain else settings.whole("qk_rope_head_dim", 64)
    d_head = settings.whole("qk_nope_head_dim", 128) + rotary
    bias = settings.flag("attention_bias", False)
    if bias and not is_plain and settings.raw("q_lora_rank") is None:
        settings.refuse_unless(attention_bias=False)  # their q_proj has none then, ours would
    return AttentionConfig(
        n_heads=n_heads,
        n_kv_heads=n_heads,
        d_head=d_head,
        qkv_bias=bias,
        out_bias=bias,
        scale=None if scale_factor == 1.0 else d_head**-0.5 * scale_factor,
    )


def _read_mla(settings: Settings) -> MlaConfig:
    """DeepSeek's form; `q_lora_rank` null reads queries from the stream."""
    low_rank = settings.raw("q_lora_rank")
    return MlaConfig(
        kv_lora_rank=settings.whole("kv_lora_rank", 512),
        q_lora_rank=None if low_rank is None else settings.whole("q_lora_rank"),
        qk_rope_head_dim=settings.whole("qk_rope_head_dim", 64),
        v_head_dim=settings.whole("v_head_dim", 128),
        latent_norm=True,
        latent_norm_eps=LATENT_NORM_EPS,
        neighbouring_pairs=settings.flag("rope_interleave", True),
    )


def _read_plain_mla(settings: Settings) -> MlaConfig:
    settings.refuse_unless(q_lora_rank=None, qk_rope_head_dim=0)
    given = [key for key in ("kv_lora_rank", "v_head_dim") if settings.raw(key) is not None]
    widths = {key: settings.whole(key) for key in given}
    return MlaConfig(kv_lora_rank=widths.get("kv_lora_rank"), v_head_dim=widths.get("v_head_dim"))


# DeepSeek states YaRN's attention factor by two numbers: `mscale` for queries and keys, of which
# `mscale_all_dim` moves a share to the scores of the whole head.
def _without_mscale(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with YaRN's attention factor in the place of the two."""
    found = {}
    for key in ("rope_parameters", "rope_scaling"):
        rope = Settings(values).table(key)
        if not rope.get("mscale") and not rope.get("mscale_all_dim"):
            continue
        inside = Settings(rope, f"{key} of config.json")
        both = inside.raw("mscale") and inside.raw("mscale_all_dim")
        kept = {k: v for k, v in rope.items() if k not in ("mscale", "mscale_all_dim")}
        if both and kept.get("attention_factor") is None:
            kept["attention_factor"] = _mscale(inside, "mscale") / _mscale(inside, "mscale_all_dim")
        found[key] = kept
    return {**values, **found}


def _mscale(rope: Settings, key: str) -> float:
    factor = rope.number("factor", 1.0)
    return 1.0 if factor <= 1 else YARN_LOG_FACTOR * rope.number(key) * math.log(factor) + 1.0


def _score_scale(settings: Settings) -> float:
    """The factor on scores that stands for `mscale_all_dim`; 1 without it."""
    rope = Settings(settings.table("rope_parameters") or settings.table("rope_scaling"))
    kind = rope.values.get("rope_type", rope.values.get("type", "default"))
    if kind == "default" or not rope.raw("mscale_all_dim"):
        return 1.0
    return _mscale(rope, "mscale_all_dim") ** 2


# ---------------------------------------------------------------------------------- weights
def _split_latent(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    rotary = 0 if config.mla is None else config.mla.qk_rope_head_dim
    return list(tensors[0].split([tensors[0].shape[0] - rotary, rotary]))


def _join(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    import torch  # late: tables are read to list families, without loading torch

    return [torch.cat(tensors)]


def _split_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    """Of each head: its rows of k, then its rows of v."""
    heads = tensors[0].unflatten(0, (config.attention.n_heads, -1))
    content, value = _head_widths(config)
    return [part.flatten(0, 1) for part in heads.split([content, value], dim=1)]


def _join_heads(tensors: list[Tensor], config: ModelConfig) -> list[Tensor]:
    import torch

    n_heads = config.attention.n_heads
    return [torch.cat([t.unflatten(0, (n_heads, -1)) for t in tensors], dim=1).flatten(0, 1)]


def _head_widths(config: ModelConfig) -> tuple[int, int]:
    """Numbers of a head's key that are read from the latent, and of its value."""
    d_head, mla = config.attention.d_head, config.mla or MlaConfig()
    return d_head - mla.qk_rope_head_dim, mla.v_head_dim or d_head


SPLIT_LATENT = Layout("split latent and rotated key", _split_latent, _join)
SPLIT_HEADS = Layout("split k and v of each head", _split_heads, _join_heads)


def rules(config: ModelConfig) -> RuleTable:
    """DeepSeek's names of attention, before Llama's for all the rest."""
    theirs, ours = "model.layers.{i}.self_attn", "blocks.{i}.attn"
    mla = config.mla or MlaConfig()
    rows = [
        WeightRule(
            f"{theirs}.kv_b_proj.weight",
            (f"{ours}.k_proj.weight", f"{ours}.v_proj.weight"),
            (SPLIT_HEADS,),
        ),
        WeightRule(f"{theirs}.kv_a_layernorm.weight", f"{ours}.latent_norm.weight"),
        WeightRule("model.embed_positions.weight", "position_embed.weight"),  # the plain form's
    ]
    for kind in ("weight", "bias"):
        latent, rotary = f"{ours}.latent_proj.{kind}", f"{ours}.k_rotary_proj.{kind}"
        down = f"{theirs}.kv_a_proj_with_mqa.{kind}"
        rows.append(
            WeightRule(down, (latent, rotary), (SPLIT_LATENT,))
            if mla.qk_rope_head_dim
            else WeightRule(down, latent)
        )
        if mla.q_lora_rank is not None:
            rows.append(WeightRule(f"{theirs}.q_a_proj.{kind}", f"{ours}.q_latent_proj.{kind}"))
    if mla.q_lora_rank is not None:
        rows.append(WeightRule(f"{theirs}.q_a_layernorm.weight", f"{ours}.q_latent_norm.weight"))
        rows.append(WeightRule(f"{theirs}.q_b_proj.weight", f"{ours}.q_proj.weight"))
    return RuleTable((*rows, *hf_rules(config).rules), optional_prefix="model.")


FAMILY = Family(
    name="Latent attention",
    source="DeepSeek-AI 2024, arXiv 2405.04434 and 2412.19437",
    model_types=("deepseek_v3", PLAIN_TYPE),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    rules=rules,
)
