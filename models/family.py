"""What a family of models is: presets, and how its checkpoints become our configuration and names.

A family is one file under `models/families/` that exports a `Family`; `models/registry.py` lists
them. Nothing outside those two places knows any family by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from models.config import Activation, ModelConfig
from models.errors import ConfigError
from models.weight_rules import RuleTable

# Names that Hugging Face configurations give to the nonlinearities that we have.
ACTIVATIONS: Mapping[str, Activation] = {
    "silu": "silu",
    "swish": "silu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",  # the same formula, rearranged
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
}


Shape = tuple[int, ...]


@dataclass(frozen=True)
class GgufFormat:
    """How a family lies in GGUF files.

    Args:
        architecture: `general.architecture` of its files.
        config_from_metadata: (metadata, name -> shape of each tensor) -> configuration.
        rules: Configuration -> rule table.
    """

    architecture: str
    config_from_metadata: Callable[[Mapping[str, Any], Mapping[str, Shape]], ModelConfig]
    rules: Callable[[ModelConfig], RuleTable]


@dataclass(frozen=True)
class Family:
    """One family.

    Args:
        name: As shown on the page.
        source: The paper.
        model_types: `model_type` of its Hugging Face configurations.
        presets: Exact name -> configuration; each with its source beside it.
        config_from_hf: Parsed config.json -> configuration.
        rules: Configuration -> rule table of its Hugging Face layout.
        gguf: Its GGUF layout, or None.
    """

    name: str
    source: str
    model_types: tuple[str, ...]
    presets: Mapping[str, ModelConfig]
    config_from_hf: Callable[[Mapping[str, Any]], ModelConfig]
    rules: Callable[[ModelConfig], RuleTable]
    gguf: GgufFormat | None = None


def activation_named(name: object) -> Activation:
    """Our name of a nonlinearity that config.json names.

    Raises:
        ConfigError: One that we do not have; lists those that we have.
    """
    if not isinstance(name, str) or name not in ACTIVATIONS:
        raise ConfigError(
            f"config.json asks for the activation {name!r}; known are {', '.join(ACTIVATIONS)}"
        )
    return ACTIVATIONS[name]


@dataclass(frozen=True)
class Settings:
    """Settings of a checkpoint, read with the checks that a file from outside needs.

    Args:
        values: Parsed config.json, or the metadata of a GGUF file.
        where: What the file is called in messages.
    """

    values: Mapping[str, Any]
    where: str = "config.json"

    def whole(self, key: str, default: int | None = None) -> int:
        """A whole number; `default` stands in for an absent key or null.

        Raises:
            ConfigError: Absent without a default, or not a whole number.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._not_a(key, value, "a whole number")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number.

        Raises:
            ConfigError: Absent without a default, or not a number.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self._not_a(key, value, "a number")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false.

        Raises:
            ConfigError: Something else.
        """
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self._not_a(key, value, "true or false")
        return value

    def refuse_unless(self, **harmless: Any) -> None:
        """Refuse settings that would change the numbers and that we do not compute.

        Args:
            **harmless: Key -> the only value, besides null and an absent key, under which our
                numbers are right. A double underscore in a key stands for a dot.

        Raises:
            ConfigError: A key has another value.
        """
        for name, expected in harmless.items():
            key = name.replace("__", ".")
            found = self.values.get(key)
            if found is not None and found != expected:
                raise ConfigError(
                    f"{self.where} has {key}={found!r}, which is not supported; "
                    f"only {expected!r} is",
                    code="config-unsupported",
                    file=self.where,
                    key=key,
                    found=found,
                    expected=expected,
                )

    def _value(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        if value is None:
            value = default
        if value is None:
            raise ConfigError(
                f"{self.where} has no {key!r}; take the file that belongs to the weights",
                code="config-key-missing",
                file=self.where,
                key=key,
            )
        return value

    def _not_a(self, key: str, value: object, kind: str) -> ConfigError:
        return ConfigError(
            f"{self.where} has {key}={value!r}, which is not {kind}; "
            "take the file that belongs to the weights",
            code="config-value-wrong",
            file=self.where,
            key=key,
            found=repr(value)[:80],
        )
