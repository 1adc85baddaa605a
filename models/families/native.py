"""Our own layout: for models that have no other, such as one with latent attention and GPT's norms.

config.json holds every field of `ModelConfig` (`models/config_json.py`), and tensors have our own
names and shapes, so that whatever can be built can be saved.
"""

from collections.abc import Mapping
from typing import Any

from models.config import ModelConfig
from models.config_json import config_from_json, config_to_json
from models.family import Family
from models.weight_rules import RuleTable, WeightRule

MODEL_TYPE = "glassbox"
# What stands in config.json beside the configuration.
BESIDE = frozenset({"model_type", "torch_dtype", "bos_token_id", "eos_token_id", "pad_token_id"})


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json.

    Raises:
        ConfigError: A key is missing, unknown or holds what cannot be.
    """
    return config_from_json({key: value for key, value in values.items() if key not in BESIDE})


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json."""
    return {"model_type": MODEL_TYPE, **config_to_json(config)}


def rules(config: ModelConfig) -> RuleTable:
    """Every tensor under our name."""
    return RuleTable((WeightRule("{rest}", "{rest}"),))


FAMILY = Family(
    name="Glassbox",
    source="models/config.py",
    model_types=(MODEL_TYPE,),
    presets={},
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    opens_in_transformers=False,
    rules=rules,
)
