"""A configuration as JSON and back: every field of every part, under its own name.

    ModelConfig ─► {"vocab_size": 97, "attention": {"n_heads": 6, ...}, ...}

Fields and their types are read from the dataclasses, so that a new field needs no line here. Where
a field may hold one of several dataclasses (a RoPE scaling), "type" says which.
"""

from __future__ import annotations

import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from models.config import ModelConfig
from models.errors import ConfigError
from models.family import MOST_LAYERS, Settings
from models.rope_config import DynamicNtkScaling, LinearScaling, Llama3Scaling, YarnScaling

TAG = "type"
# Names in files, which must outlive a renamed class.
TYPE_NAMES: Mapping[type, str] = {
    LinearScaling: "linear",
    DynamicNtkScaling: "dynamic_ntk",
    Llama3Scaling: "llama3",
    YarnScaling: "yarn",
}


def config_to_json(config: ModelConfig) -> dict[str, Any]:
    """Write a configuration as plain JSON values.

    Args:
        config: Any configuration.

    Returns:
        Objects, lists, numbers, texts, true, false and null; every field is there.
    """
    return dataclass_to_json(config)


def config_from_json(values: Mapping[str, Any], *, where: str = "config.json") -> ModelConfig:
    """Read what `config_to_json` wrote.

    Args:
        values: The parsed object. Whole numbers may stand for decimal ones.
        where: What the file is called in messages.

    Raises:
        ConfigError: A key is missing, unknown or holds what cannot be, or values that do not go
            together; names the key.
    """
    found: ModelConfig = dataclass_from_json(ModelConfig, values, where)
    return found


def dataclass_to_json(part: Any) -> dict[str, Any]:
    """Write any frozen dataclass of plain values, tuples, mappings and further dataclasses.

    Args:
        part: An instance.
    """
    return _write_fields(part)


def dataclass_from_json(
    kind: type,
    values: Mapping[str, Any],
    where: str = "config.json",
    *,
    fill_in: bool = False,
) -> Any:
    """Read what `dataclass_to_json` wrote.

    Args:
        kind: The dataclass.
        values: The parsed object.
        where: What the file is called in messages.
        fill_in: Take a missing field that has a default as that: the file is from before it.

    Raises:
        ConfigError: As `config_from_json`.
    """
    return _Reader(where, fill_in=fill_in).read(kind, values, "")


def _write(value: Any) -> Any:
    if is_dataclass(value):
        return _write_fields(value)
    if isinstance(value, Mapping):
        return {key: _write(value[key]) for key in sorted(value)}
    return [_write(entry) for entry in value] if isinstance(value, tuple) else value


def _write_fields(part: Any) -> dict[str, Any]:
    tag = {TAG: TYPE_NAMES[type(part)]} if type(part) in TYPE_NAMES else {}
    return tag | {field.name: _write(getattr(part, field.name)) for field in fields(part)}


class _Reader:
    """Reads a value as the type that a field asks for; `path` is its key in messages."""

    def __init__(self, where: str, *, fill_in: bool) -> None:
        self._where = where
        self._fill_in = fill_in

    def read(self, kind: Any, value: Any, path: str) -> Any:
        origin = get_origin(kind)
        if origin in (Union, types.UnionType):
            return self._read_one_of(get_args(kind), value, path)
        if origin is tuple:
            return self._read_list(get_args(kind)[0], value, path)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self._read_mapping(get_args(kind), value, path)
        if origin is Literal:
            return self._read_choice(get_args(kind), value, path)
        if is_dataclass(kind):
            return self._read_fields(kind, value, path)
        return self._read_plain(kind, value, path)

    def _read_plain(self, kind: Any, value: Any, path: str) -> Any:
        settings = Settings({path: value}, self._where)
        if value is None:  # which `Settings` takes for a missing key
            raise self._wrong(path, value, f"of type {kind.__name__}")
        if kind is bool:
            return settings.flag(path, False)
        if kind is str:
            return self._read_text(value, path)
        # whether a whole number may be 0 is known to the dataclass alone
        return settings.whole(path, least=0) if kind is int else settings.number(path)

    def _read_text(self, value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise self._wrong(path, value, "a text")
        return value

    def _read_choice(self, choices: Sequence[str], value: Any, path: str) -> str:
        if not isinstance(value, str) or value not in choices:
            raise self._wrong(path, value, f"one of {', '.join(choices)}")
        return value

    def _read_list(self, kind: Any, value: Any, path: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple) or len(value) > MOST_LAYERS:
            raise self._wrong(path, value, f"a list of at most {MOST_LAYERS}")
        return tuple(self.read(kind, entry, f"{path}[{i}]") for i, entry in enumerate(value))

    def _read_mapping(self, kinds: Sequence[Any], value: Any, path: str) -> dict[str, Any]:
        key_kind, kind = kinds
        return {
            self.read(key_kind, key, path): self.read(kind, entry, f"{path}.{key}")
            for key, entry in self._object(value, path).items()
        }

    def _read_one_of(self, kinds: Sequence[Any], value: Any, path: str) -> Any:
        if value is None and type(None) in kinds:
            return None
        kinds = [kind for kind in kinds if kind is not type(None)]
        if len(kinds) == 1:
            return self.read(kinds[0], value, path)
        content = dict(self._object(value, path))
        by_name = {TYPE_NAMES[kind]: kind for kind in kinds}
        name = self._read_choice(tuple(by_name), content.pop(TAG, None), _join(path, TAG))
        return self.read(by_name[name], content, path)

    def _read_fields(self, kind: Any, value: Any, path: str) -> Any:
        content, hints = self._object(value, path), get_type_hints(kind)
        optional = {field.name for field in fields(kind) if self._fill_in and _has_default(field)}
        missing = [name for name in hints if name not in content and name not in optional]
        unknown = [str(key) for key in content if key not in hints]
        if missing:
            raise Settings({}, self._where).missing(_join(path, missing[0]))
        if unknown:
            raise self._unknown(_join(path, unknown[0]))
        given = [name for name in hints if name in content]
        return kind(**{n: self.read(hints[n], content[n], _join(path, n)) for n in given})

    def _object(self, value: Any, path: str) -> Mapping[str, Any]:
        if not isinstance(value, Mapping):
            raise self._wrong(path, value, "an object")
        return value

    def _wrong(self, path: str, value: Any, kind: str) -> ConfigError:
        return Settings({}, self._where).wrong(path or "the whole", value, kind)

    def _unknown(self, key: str) -> ConfigError:
        return ConfigError(
            f"{self._where} has a key {key[:80]!r} that no part of a model here has; take it out, "
            "or open the file with the version that wrote it",
            code="config-key-unknown",
            file=self._where,
            key=key[:80],
        )


def _has_default(field: Field[Any]) -> bool:
    return field.default is not MISSING or field.default_factory is not MISSING


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
