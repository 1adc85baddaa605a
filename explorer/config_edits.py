"""What if: a configuration with some values changed, or read from a pasted config.json.

    n_heads=16, n_kv_heads=4, d_ff=8192

A name is looked for in the configuration and in its parts, or is the one that Hugging Face uses for
it in its files; a value is read as the type that stands there. What cannot work together is refused
by the configuration itself, with a remedy.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from explorer.errors import ConfigError
from models.config import FULL, WINDOW, ModelConfig
from models.registry import find_family
from models.rope_config import RopeConfig

MOST_CHARACTERS = 50_000  # the longest published config.json has about 10,000
MOST_LAYERS = 1_000
LAYERS, THETA = "n_layers", "theta"
# Parts whose fields are offered by their own names; `d_ff` of experts is `expert_d_ff`.
PARTS = ("attention", "ffn", "norm", "moe", "mla", "dropout")
EXPERT = "expert_"
# Names in a config.json -> ours.
THEIR_NAMES: Mapping[str, str] = {
    "head_dim": "d_head",
    "hidden_act": "activation",
    "hidden_size": "d_model",
    "intermediate_size": "d_ff",
    "max_position_embeddings": "context_length",
    "moe_intermediate_size": "expert_d_ff",
    "num_attention_heads": "n_heads",
    "num_experts": "n_experts",
    "num_experts_per_tok": "n_active",
    "num_hidden_layers": "n_layers",
    "num_key_value_heads": "n_kv_heads",
    "rms_norm_eps": "eps",
    "rope_theta": "theta",
    "sliding_window": "window",
    "tie_word_embeddings": "tied_head",
}


def edit_config(config: ModelConfig, text: str) -> ModelConfig:
    """Change values of a configuration.

    Args:
        config: Where to start.
        text: `name=value` pairs between commas or on lines, or the whole of a config.json of
            Hugging Face, which replaces the configuration.

    Raises:
        ConfigError: An unknown name, a value of another kind, or values that do not go together.
    """
    if len(text) > MOST_CHARACTERS:
        raise _problem(f"the text has {len(text)} characters, at most {MOST_CHARACTERS} are read")
    if text.lstrip().startswith("{"):
        return read_config_json(text)
    changes = dict(_parse_pairs(text))
    for name, value in changes.items():
        config = _change(config, name, value)
    return _checked(config)


def _checked(config: ModelConfig) -> ModelConfig:
    """Checked as a whole: of two values that only go together the first alone may not pass."""
    held: dict[str, Any] = {name: getattr(config, name) for name in PARTS}
    parts = {name: replace(part) for name, part in held.items() if part is not None}
    ropes = {kind: replace(rope) for kind, rope in config.rope.items()}
    return replace(config, rope=ropes, **parts)


def read_config_json(text: str) -> ModelConfig:
    """Read a config.json of Hugging Face.

    Raises:
        ConfigError: It is no JSON object, or of no family that we have.
    """
    try:
        values = json.loads(text)
    except ValueError as error:
        raise _problem(f"this is no JSON ({error}); paste the whole config.json") from None
    if not isinstance(values, dict):
        raise _problem("this is JSON, but no object; paste the whole config.json")
    family = find_family(values)
    if family.config_from_hf is None:
        raise _problem(f"{family.name} has no config.json; choose a preset")
    return family.config_from_hf(values)


def changeable_names(config: ModelConfig) -> Mapping[str, Any]:
    """Every name that can be changed, and its present value."""
    names: dict[str, Any] = {
        name.name: getattr(config, name.name)
        for name in fields(config)
        if _is_plain(getattr(config, name.name)) and name.name not in PARTS
    }
    names[LAYERS] = config.n_layers
    if config.rope:
        names[THETA] = next(iter(config.rope.values())).theta
    for part in PARTS:
        held = getattr(config, part)
        if is_dataclass(held):
            prefix = EXPERT if part == "moe" else ""
            for inner in fields(held):
                name = inner.name if inner.name not in names else f"{prefix}{inner.name}"
                names.setdefault(name, getattr(held, inner.name))
    return names


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _parse_pairs(text: str) -> Iterator[tuple[str, str]]:
    for piece in text.replace("\n", ",").split(","):
        if not piece.strip():
            continue
        name, equals, value = piece.partition("=")
        if not equals or not value.strip():
            raise _problem(f"{piece.strip()[:60]!r} is no change; write name=value, as n_heads=16")
        name = name.strip()
        yield THEIR_NAMES.get(name, name), value.strip()


def _change(config: ModelConfig, name: str, text: str) -> ModelConfig:
    known = changeable_names(config)
    if name not in known:
        close = difflib.get_close_matches(name, known, n=3, cutoff=0.0)
        raise ConfigError(
            f"a model has no value {name[:40]!r}; the closest are {', '.join(close)}",
            code="config-edit-unknown",
            name=name[:40],
            close=", ".join(close),
        )
    value = _read_value(name, text, known[name])
    if name == LAYERS:
        return _with_layers(config, value)
    if name == THETA:
        ropes = {kind: replace(rope, theta=value) for kind, rope in config.rope.items()}
        return _unchecked(config, rope=ropes)
    if any(found.name == name for found in fields(config)):
        return _with_field(config, name, value)
    for part in PARTS:
        held = getattr(config, part)
        inner = name.removeprefix(EXPERT) if part == "moe" else name
        if is_dataclass(held) and any(found.name == inner for found in fields(held)):
            return _unchecked(config, **{part: _unchecked(held, **{inner: value})})
    raise AssertionError("a known name has a place")


def _read_value(name: str, text: str, present: Any) -> Any:
    """The text as the type of what stands there now."""
    if text.lower() in {"none", "null"}:
        return None
    if isinstance(present, bool) or text.lower() in {"true", "false"}:
        if text.lower() not in {"true", "false"}:
            raise _problem(f"{name}={text!r} has to be true or false")
        return text.lower() == "true"
    if isinstance(present, str):
        return text
    try:
        number = float(text.replace("_", ""))
    except ValueError:
        raise _problem(f"{name}={text[:40]!r} has to be a number") from None
    whole = number.is_integer() and not isinstance(present, float)
    return int(number) if whole else number


def _with_layers(config: ModelConfig, n_layers: Any) -> ModelConfig:
    """So many layers, with the types repeated in their order."""
    if not isinstance(n_layers, int) or not 1 <= n_layers <= MOST_LAYERS:
        raise _problem(f"n_layers={n_layers} has to be a whole number from 1 to {MOST_LAYERS}")
    types = config.layer_types
    return _unchecked(config, layer_types=tuple(types[i % len(types)] for i in range(n_layers)))


def _with_field(config: ModelConfig, name: str, value: Any) -> ModelConfig:
    """Positions bring or take the rotation along."""
    if name == "positions" and value == "rope" and not config.rope:
        return _unchecked(config, positions=value, rope={FULL: RopeConfig(), WINDOW: RopeConfig()})
    if name == "positions" and value != "rope":
        return _unchecked(config, positions=value, rope={})
    return _unchecked(config, **{name: value})


def _unchecked(part: Any, **changes: Any) -> Any:
    """A copy with other values, whose checks wait until all changes are made."""
    copy = object.__new__(type(part))
    for held in fields(part):
        object.__setattr__(copy, held.name, changes.get(held.name, getattr(part, held.name)))
    return copy


def _problem(problem: str) -> ConfigError:
    return ConfigError(problem, code="run-setting", problem=problem)
