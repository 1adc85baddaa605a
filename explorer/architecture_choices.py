"""Which architectures can be laid side by side, and what each of them is.

By exact name: every preset of a real model, the Transformers of 2017, `loaded` (the model on the
page) and `own` (a preset with values changed, or a pasted config.json).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from explorer.architecture import AnyConfig, Architecture, describe_architecture
from explorer.config_edits import edit_config
from models.config import ModelConfig
from models.encoder_decoder_config import ENCODER_DECODERS
from models.registry import get_preset, presets

LOADED, OWN, NONE = "loaded", "own", "none"
REAL = tuple(presets())
NAMES = (*REAL, *ENCODER_DECODERS, LOADED, OWN)
MORE_NAMES = (NONE, *NAMES)
_NAMED = {"as_named": True}


@dataclass(frozen=True, kw_only=True)
class ArchitectureSettings:
    """What to lay side by side.

    Args:
        first: A name of `NAMES`.
        second: Another, or `none`.
        third: As `second`.
        fourth: As `second`.
        own_base: The preset that `own` starts from.
        changes: What is changed in it; see `explorer.config_edits`.
        n_tokens: Length of a text, for costs that depend on it.
        batch: Texts at once in training.
    """

    first: str = field(default="gpt2-xl", metadata={"choices": NAMES, **_NAMED})
    second: str = field(default="llama2-7b", metadata={"choices": MORE_NAMES, **_NAMED})
    third: str = field(default="llama3-8b", metadata={"choices": MORE_NAMES, **_NAMED})
    fourth: str = field(default=NONE, metadata={"choices": MORE_NAMES, **_NAMED})
    own_base: str = field(default="llama3.2-1b", metadata={"choices": REAL, **_NAMED})
    changes: str = field(default="", metadata={"text": True})
    n_tokens: int = field(default=4_096, metadata={"least": 1, "most": 10_000_000, "step": 1})
    batch: int = field(default=1, metadata={"least": 1, "most": 4_096, "step": 1})

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names, without repetitions."""
        names = (self.first, self.second, self.third, self.fourth)
        return tuple(dict.fromkeys(name for name in names if name != NONE))


def describe_chosen(
    settings: ArchitectureSettings, loaded: tuple[str, ModelConfig] | None = None
) -> tuple[Architecture, ...]:
    """Describe what was chosen, from left to right.

    Args:
        settings: What was chosen.
        loaded: Name and configuration of the model on the page; None leaves it out.

    Raises:
        ConfigError: An unknown name, or changes that no model can have.
    """
    found = []
    for name in settings.chosen:
        if name == LOADED:
            if loaded is not None:
                found.append(describe_architecture(*loaded))
        else:
            found.append(describe_architecture(name, _config_of(name, settings)))
    return tuple(found)


def _config_of(name: str, settings: ArchitectureSettings) -> AnyConfig:
    if name == OWN:
        return edit_config(get_preset(settings.own_base), settings.changes)
    return ENCODER_DECODERS[name] if name in ENCODER_DECODERS else get_preset(name)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One value that differs between models.

    Args:
        part: Kind of the part that has it.
        fact: Its name.
        values: For each model what it is, "–" where there is none.
    """

    part: str
    fact: str
    values: tuple[str, ...]


def find_differences(found: Sequence[Architecture]) -> tuple[Difference, ...]:
    """The values in which models differ, by part, in the order of the pass."""
    keys = dict.fromkeys(
        (part.kind, fact) for model in found for part in model.parts for fact in part.facts
    )
    rows = [
        Difference(part=part, fact=fact, values=tuple(_fact(m, part, fact) for m in found))
        for part, fact in keys
    ]
    return tuple(row for row in rows if len(set(row.values)) > 1)


def _fact(model: Architecture, kind: str, fact: str) -> str:
    """What all parts of that kind say, each text once."""
    said = dict.fromkeys(
        part.facts[fact] for part in model.parts if part.kind == kind and fact in part.facts
    )
    return " / ".join(said) or "–"
