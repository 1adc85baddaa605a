"""Configurations as JSON: every preset and any other comes back equal; what is wrong is named."""

import dataclasses
import json
import random
from dataclasses import fields, is_dataclass, replace
from typing import get_args

import pytest

from models.config import (
    Activation,
    AttentionConfig,
    DropoutConfig,
    FfnConfig,
    Initialisation,
    ModelConfig,
    MoeConfig,
    NormConfig,
    NormPosition,
)
from models.config_json import TYPE_NAMES, config_from_json, config_to_json
from models.errors import ConfigError
from models.mla_config import MlaConfig
from models.registry import presets
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    RopeScaling,
    YarnScaling,
)


def random_scaling(draw):
    return draw.choice(
        [
            None,
            LinearScaling(factor=draw.uniform(1, 9)),
            DynamicNtkScaling(factor=2, original_context=draw.randint(1, 99)),
            Llama3Scaling(
                factor=8.0,
                low_frequency_factor=draw.random(),
                high_frequency_factor=4.0,
                original_context=17,
            ),
            YarnScaling(
                factor=draw.uniform(1, 9),
                original_context=16,
                attention_factor=draw.choice([None, draw.random()]),
                truncate=draw.random() < 0.5,
            ),
        ]
    )


def random_config(seed):
    """Any configuration that can be, with every part there in some and absent in others."""
    draw = random.Random(seed)

    def maybe(value):
        return value if draw.random() < 0.5 else None

    positions = draw.choice(["learned", "rope", "sinusoidal"])
    mla = maybe(MlaConfig(q_lora_rank=maybe(9), qk_rope_head_dim=4 if positions == "rope" else 0))
    return ModelConfig(
        vocab_size=draw.randint(1, 300),
        context_length=61,
        d_model=2 * draw.randint(1, 40),
        layer_types=tuple(draw.choice(["full", "window"]) for _ in range(draw.randint(1, 7))),
        attention=AttentionConfig(
            n_heads=6,
            n_kv_heads=6 if mla else draw.choice([1, 2, 3, 6]),
            d_head=10,
            qkv_bias=draw.random() < 0.5,
            scale=maybe(draw.random() + 0.1),
            window=draw.randint(1, 50),
            score_cap=maybe(50.0),
            qk_norm="none" if mla else draw.choice(["none", "head", "full"]),
        ),
        ffn=FfnConfig(d_ff=52, activation=draw.choice(get_args(Activation)), gated=True),
        norm=NormConfig(kind="rmsnorm", eps=draw.random() / 9 + 1e-9, unit_offset=True),
        positions=positions,
        rope={t: RopeConfig(theta=draw.uniform(2, 1e6), scaling=random_scaling(draw))
              for t in ("window", "full")} if positions == "rope" else {},
        mla=mla,
        moe=maybe(MoeConfig(n_experts=5, n_active=2, d_ff=7, normalise_weights=True)),
        norm_position=draw.choice(get_args(NormPosition)),
        embedding_scale=draw.random(),
        logit_cap=maybe(30.0),
        tied_head=draw.random() < 0.5,
        dropout=DropoutConfig(embedding=draw.random(), residual=draw.random()),
        initialisation=draw.choice(get_args(Initialisation)),
    )  # fmt: skip


def through_text(config):
    return config_from_json(json.loads(json.dumps(config_to_json(config), allow_nan=False)))


@pytest.mark.parametrize("name", presets())
def test_every_preset_comes_back_equal(name):
    config = presets()[name]
    assert through_text(config) == config


@pytest.mark.parametrize("seed", range(60))
def test_any_configuration_comes_back_equal(seed):
    config = random_config(seed)
    assert through_text(config) == config


def test_json_holds_every_field_of_every_part_in_plain_values():
    config = random_config(next(s for s in range(99) if random_config(s).mla))

    def compare(part, values):
        assert {f.name for f in fields(part)} == set(values) - {"type"}
        for field in fields(part):
            inner = getattr(part, field.name)
            if is_dataclass(inner):
                compare(inner, values[field.name])

    compare(config, config_to_json(config))


def test_every_scaling_has_a_name_in_files():
    assert set(TYPE_NAMES) == set(get_args(RopeScaling))
    assert len(set(TYPE_NAMES.values())) == len(TYPE_NAMES)


def changed(config, path, value):
    values = config_to_json(config)
    *above, last = path.split(".")
    inner = values
    for key in above:
        inner = inner[key]
    if value is MISSING:
        del inner[last]
    else:
        inner[last] = value
    return values


MISSING = object()
YARN = YarnScaling(factor=4.0, original_context=16)
WRONG = {
    "missing": ("attention.n_kv_heads", MISSING, "config-key-missing"),
    "missing whole part": ("ffn", MISSING, "config-key-missing"),
    "unknown": ("norm.width", 7, "config-key-unknown"),
    "unknown at the top": ("n_layers", 7, "config-key-unknown"),
    "text for a number": ("d_model", "44", "config-value-wrong"),
    "true for a number": ("vocab_size", True, "config-value-wrong"),
    "a number for true": ("tied_head", 1, "config-value-wrong"),
    "null for true": ("tied_head", None, "config-value-wrong"),
    "null for a number": ("ffn.d_ff", None, "config-value-wrong"),
    "decimal for whole": ("attention.d_head", 10.5, "config-value-wrong"),
    "huge": ("context_length", 10**12, "config-value-wrong"),
    "infinite": ("embedding_scale", float("inf"), "config-value-wrong"),
    "not a number": ("norm.eps", float("nan"), "config-value-wrong"),
    "unknown choice": ("norm_position", "behind", "config-value-wrong"),
    "list for a choice": ("ffn.activation", ["silu"], "config-value-wrong"),
    "text for an object": ("attention", "wide", "config-value-wrong"),
    "object for a list": ("layer_types", {"full": 3}, "config-value-wrong"),
    "too many layers": ("layer_types", ["full"] * 1_001, "config-value-wrong"),
    "list for a mapping": ("rope", [], "config-value-wrong"),
    "unknown scaling": ("rope.full.scaling.type", "ntk", "config-value-wrong"),
    "scaling without its type": ("rope.full.scaling.type", MISSING, "config-value-wrong"),
    "field of another scaling": ("rope.full.scaling.low_frequency_factor", 1, "config-key-unknown"),
}


@pytest.mark.parametrize(("path", "value", "code"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_refused_by_its_key(llama_config, path, value, code):
    config = replace(llama_config, rope={"full": RopeConfig(scaling=YARN)})
    with pytest.raises(ConfigError) as caught:
        config_from_json(changed(config, path, value), where="run.json")
    assert (caught.value.code, caught.value.facts["key"]) == (code, path)
    assert "run.json" in caught.value.message


def test_an_unknown_type_of_layer_is_named_by_its_place(llama_config):
    with pytest.raises(ConfigError, match=r"layer_types\[1\]='global'"):
        config_from_json(changed(llama_config, "layer_types", ["full", "global", "full"]))


def test_values_that_do_not_go_together_are_refused_as_ever(llama_config):
    with pytest.raises(ConfigError, match="n_heads=6 is not a multiple of n_kv_heads=4"):
        config_from_json(changed(llama_config, "attention.n_kv_heads", 4))
    with pytest.raises(ConfigError, match="d_ff=0"):
        config_from_json(changed(llama_config, "ffn.d_ff", 0))


def test_what_is_no_object_is_refused():
    with pytest.raises(ConfigError, match="not an object"):
        config_from_json(["vocab_size"])


def test_a_new_field_of_a_part_needs_no_line_of_its_own(llama_config):
    wider = dataclasses.make_dataclass(
        "NormConfig", [("shift", float, 0.25)], bases=(NormConfig,), frozen=True, kw_only=True
    )
    values = config_to_json(replace(llama_config, norm=wider(kind="rmsnorm")))
    assert values["norm"]["shift"] == 0.25
