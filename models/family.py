"""What a family of models is: presets, and how its checkpoints become our configuration and names.

A family is one file under `models/families/` that exports a `Family`; `models/registry.py` lists
them. Nothing outside those two places knows any family by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from models.config import Activation, ModelConfig
from models.errors import ConfigError
from models.tokenizers.chat_format import ChatFormat
from models.weight_rules import RuleTable

if TYPE_CHECKING:
    from models.gguf_file import GgufFile
    from models.tokenizers import Tokenizer

MOST_SIZE = 2**31 - 1  # of a width, a vocabulary or a context
MOST_LAYERS = 1_000  # the deepest published models have about 130
MOST_NUMBER = 1e15

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
        architectures: `general.architecture` of its files.
        config_from_file: Open file -> configuration.
        rules: Configuration -> rule table.
    """

    architectures: tuple[str, ...]
    config_from_file: Callable[[GgufFile], ModelConfig]
    rules: Callable[[ModelConfig], RuleTable]


class StateDict(Protocol):
    """What a family may ask of a state dict to make its configuration."""

    @property
    def shapes(self) -> Mapping[str, Shape]:
        """Name -> shape of each tensor."""

    def equal(self, one: str, other: str) -> bool:
        """Whether two tensors hold the same numbers."""


@dataclass(frozen=True)
class StateDictFormat:
    """How a family lies in PyTorch's own files (.pth), which have no config.json.

    Args:
        marker: A tensor that each of its files has, and no other family's.
        config_from_file: (tensors, settings beside the file) -> configuration.
        rules: Configuration -> rule table.
        usual_tokenizer: Configuration -> the tokenizer of files that bring none; None where there
            is no usual one.
    """

    marker: str
    config_from_file: Callable[[StateDict, Settings], ModelConfig]
    rules: Callable[[ModelConfig], RuleTable]
    usual_tokenizer: Callable[[ModelConfig], Tokenizer | None] | None = None


@dataclass(frozen=True)
class ForeignFormat:
    """Files of a family that we do not open, and what to open instead.

    Args:
        pattern: Names of such files in a folder.
        name: What they are.
        instead: Where the same weights are in a form that we open.
    """

    pattern: str
    name: str
    instead: str


@dataclass(frozen=True)
class Family:
    """One family.

    Args:
        name: As shown on the page.
        source: The paper.
        model_types: `model_type` of its Hugging Face configurations.
        presets: Exact name -> configuration; each with its source beside it.
        config_from_hf: Parsed config.json -> configuration; None without `model_types`.
        config_to_hf: The inverse: configuration -> what config.json would say, or None where it
            clearly cannot say it. What `transformers` does not compute is left out, so that reading
            back tells (models/saving_layout.py).
        opens_in_transformers: Whether `transformers` knows the `model_types`.
        rules: Configuration -> rule table of its Hugging Face layout, or of the only one it has.
        gguf: Its GGUF layout, or None.
        chat_formats: How its instruct models write conversations, for files without a template;
            the first that fits is used (models/tokenizers/chat_format.py has the rule).
        state_dict: Its layout in PyTorch's own files, or None.
        foreign: Files of it that we do not open.
    """

    name: str
    source: str
    model_types: tuple[str, ...]
    presets: Mapping[str, ModelConfig]
    config_from_hf: Callable[[Mapping[str, Any]], ModelConfig] | None
    rules: Callable[[ModelConfig], RuleTable]
    config_to_hf: Callable[[ModelConfig], dict[str, Any] | None] | None = None
    opens_in_transformers: bool = True
    gguf: GgufFormat | None = None
    chat_formats: tuple[ChatFormat, ...] = ()
    state_dict: StateDictFormat | None = None
    foreign: tuple[ForeignFormat, ...] = ()


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
        values: Parsed config.json or params.json, or the metadata of a GGUF file.
        where: What the file is called in messages.
        prefix: Stands before every key in the file.
    """

    values: Mapping[str, Any]
    where: str = "config.json"
    prefix: str = ""

    def raw(self, key: str) -> Any:
        """The value as it stands there; None where the key is absent."""
        return self.values.get(self.prefix + key)

    def whole(
        self, key: str, default: int | None = None, *, least: int = 1, most: int = MOST_SIZE
    ) -> int:
        """A whole number; `default` stands in for an absent key or null.

        Raises:
            ConfigError: Absent without a default, not a whole number, or out of range.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.wrong(key, value, "a whole number")
        if not least <= value <= most:
            raise self.wrong(key, value, f"between {least} and {most}")
        return value

    def layers(self, key: str) -> int:
        """The number of blocks: a whole number within reason, since each becomes an object.

        Raises:
            ConfigError: Absent, not a whole number, or out of range.
        """
        return self.whole(key, most=MOST_LAYERS)

    def table(self, key: str) -> Mapping[str, Any]:
        """An object of further settings; empty where the key is absent or null.

        Raises:
            ConfigError: Something else than an object.
        """
        value = self.raw(key)
        if value is None:
            return {}
        if not isinstance(value, Mapping):
            raise self.wrong(key, value, "an object")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """A number.

        Raises:
            ConfigError: Absent without a default, or not a number.
        """
        value = self._value(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(key, value, "a number")
        if not abs(value) < MOST_NUMBER:  # also refuses NaN, which compares with nothing
            raise self.wrong(key, value, "a number of reasonable size")
        return float(value)

    def flag(self, key: str, default: bool) -> bool:
        """True or false.

        Raises:
            ConfigError: Something else.
        """
        value = self._value(key, default)
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
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
            bare = name.replace("__", ".")
            key, found = self.prefix + bare, self.raw(bare)
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
        value = self.raw(key)
        if value is None:
            value = default
        if value is None:
            raise self.missing(key)
        return value

    def missing(self, key: str) -> ConfigError:
        """The error for a key that is absent."""
        key = self.prefix + key
        return ConfigError(
            f"{self.where} has no {key!r}; take the file that belongs to the weights",
            code="config-key-missing",
            file=self.where,
            key=key,
        )

    def wrong(self, key: str, value: object, kind: str) -> ConfigError:
        """The error for a value that cannot be; `kind` says what was expected."""
        key = self.prefix + key
        return ConfigError(
            f"{self.where} has {key}={repr(value)[:80]}, which is not {kind}; "
            "take the file that belongs to the weights",
            code="config-value-wrong",
            file=self.where,
            key=key,
            found=repr(value)[:80],
        )
