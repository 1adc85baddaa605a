"""In which layout a model is saved: that of the first family whose config.json says all of it.

A family writes a config.json and reads it back. If that gives the same model, its files will too,
and `transformers` will compute the same numbers; if anything got lost (a bias, a norm, a window),
the next family is asked, and in the end our own layout, which holds everything.

Which values are lost without changing a number of the trained model: dropout rates and the law by
which fresh weights were drawn, windows and rotations of layers that are not there, and a scale that
is 1 / sqrt(d_head) anyway. A layout keeps what it has a key for: GPT-2's all three dropout rates,
Llama's the one of attention.

No torch here: a page can say in which layout a model will be saved before there is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from models.config import WINDOW, DropoutConfig, ModelConfig
from models.errors import ConfigError
from models.family import Family
from models.registry import FAMILIES


@dataclass(frozen=True, kw_only=True)
class SavingLayout:
    """Where a configuration fits.

    Args:
        family: Whose rules name the tensors.
        values: Content of config.json.
    """

    family: Family
    values: Mapping[str, Any]

    @property
    def model_type(self) -> str:
        """`model_type` of config.json."""
        return str(self.values["model_type"])


def choose_saving_layout(config: ModelConfig) -> SavingLayout:
    """Find the layout of a model.

    Args:
        config: Any configuration.

    Raises:
        ConfigError: A value beyond those that a file may ask for; names its key.
    """
    problem = "no layout has it"
    for family in FAMILIES:
        values = None if family.config_to_hf is None else family.config_to_hf(config)
        if values is None:
            continue
        try:
            found = _read_back(family, values)
        except ConfigError as error:  # a value for which this layout has no room
            problem = error.message
            continue
        if _as_computed(found) == _as_computed(config):
            return SavingLayout(family=family, values=values)
    raise ConfigError(f"no layout holds this configuration ({problem}); choose another value")


def _read_back(family: Family, values: Mapping[str, Any]) -> ModelConfig:
    assert family.config_from_hf is not None  # who writes a config.json reads it
    return family.config_from_hf(values)


def _as_computed(config: ModelConfig) -> ModelConfig:
    """The same for all configurations whose trained models give the same numbers."""
    used = set(config.layer_types)
    heads = config.attention
    return replace(
        config,
        attention=replace(
            heads, scale=heads.score_scale, window=heads.window if WINDOW in used else None
        ),
        rope={layer_type: rope for layer_type, rope in config.rope.items() if layer_type in used},
        dropout=DropoutConfig(),
        initialisation="normal_scaled",
    )
