"""The rotation in config.json files of Llama's descendants, read and written.

Old form: `rope_theta` and `rope_scaling` side by side. New form, of transformers 5: both inside
`rope_parameters`, which may hold one set of them for each type of layer. Source: *Utilities for
Rotary Embedding* in the documentation of transformers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from models.config import FULL, WINDOW, LayerType, ModelConfig
from models.errors import ConfigError
from models.family import Settings
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    RopeScaling,
    YarnScaling,
)

LAYER_TYPES: Mapping[str, LayerType] = {"full_attention": FULL, "sliding_attention": WINDOW}
LAYER_TYPE_NAMES: Mapping[LayerType, str] = {ours: name for name, ours in LAYER_TYPES.items()}


def read_rope(
    settings: Settings, layer_types: Sequence[LayerType], default_theta: float = 10_000.0
) -> dict[LayerType, RopeConfig]:
    """One rotation for all layer types, in either form.

    Raises:
        ConfigError: A scaling that we do not have.
    """
    found = settings.table("rope_parameters") or settings.table("rope_scaling")
    inside = Settings(found, settings.where)
    by_type = {ours: inside.table(name) for name, ours in LAYER_TYPES.items() if inside.table(name)}
    theta = settings.number("rope_theta", default_theta)
    return {
        layer_type: _read_one_rope(settings, by_type.get(layer_type, found), theta)
        for layer_type in set(layer_types)
    }


def read_two_ropes(
    settings: Settings, thetas: Mapping[LayerType, float]
) -> dict[LayerType, RopeConfig]:
    """A rotation for each type of layer; `thetas` where the file does not say the base.

    Scaling is for full layers only, also where the file states it once for all.

    Raises:
        ConfigError: A scaling that we do not have.
    """
    found = Settings(settings.table("rope_parameters"), settings.where)
    full = found.table("full_attention") or settings.table("rope_scaling")
    window = found.table("sliding_attention")
    return {
        WINDOW: _read_one_rope(settings, window, thetas[WINDOW]),
        FULL: _read_one_rope(settings, full, thetas[FULL]),
    }


def _read_one_rope(settings: Settings, found: Mapping[str, Any], theta: float) -> RopeConfig:
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


def write_rope(config: ModelConfig) -> dict[str, Any]:
    """The rotation of the first layer for all, in both forms (see `read_rope`).

    Where layers differ, that says less than the configuration, as reading back shows.
    """
    rope = config.rope.get(config.layer_types[0], RopeConfig())
    parameters = _write_one_rope(rope)
    scaling = {k: v for k, v in parameters.items() if k != "rope_theta"} if rope.scaling else None
    return {"rope_theta": rope.theta, "rope_scaling": scaling, "rope_parameters": parameters}


def write_ropes(config: ModelConfig) -> dict[str, Any]:
    """One rotation for each type of layer, in the form of transformers 5."""
    ropes = {name: config.rope.get(ours, RopeConfig()) for name, ours in LAYER_TYPES.items()}
    return {"rope_parameters": {name: _write_one_rope(rope) for name, rope in ropes.items()}}


def _write_one_rope(rope: RopeConfig) -> dict[str, Any]:
    kind, scaling = _write_scaling(rope.scaling)
    return {"rope_type": kind, "rope_theta": rope.theta, **scaling}


def _write_scaling(scaling: RopeScaling | None) -> tuple[str, dict[str, Any]]:
    if scaling is None:
        return "default", {}
    if isinstance(scaling, LinearScaling):
        return "linear", {"factor": scaling.factor}
    if isinstance(scaling, DynamicNtkScaling):
        # the reference takes max_position_embeddings for the original context, whatever is said
        return "dynamic", {"factor": scaling.factor}
    original = {"original_max_position_embeddings": scaling.original_context}
    if isinstance(scaling, Llama3Scaling):
        return "llama3", original | {
            "factor": scaling.factor,
            "low_freq_factor": scaling.low_frequency_factor,
            "high_freq_factor": scaling.high_frequency_factor,
        }
    return "yarn", original | {
        "factor": scaling.factor,
        "beta_fast": scaling.beta_fast,
        "beta_slow": scaling.beta_slow,
        "attention_factor": scaling.attention_factor,
        "truncate": scaling.truncate,
    }
