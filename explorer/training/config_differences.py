"""In what the configurations of several runs differ."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from explorer.training.run_config import RunConfig
from explorer.training.run_config_json import run_config_to_json


def find_differences(configs: Sequence[RunConfig]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The settings that are not the same in all.

    Args:
        configs: Two or more.

    Returns:
        Path of a setting in config.json, such as `optimiser.learning_rate`, and its value in each,
        empty where a configuration has no such setting.
    """
    flat = [flatten(run_config_to_json(config)) for config in configs]
    keys = dict.fromkeys(key for values in flat for key in values)
    rows = ((key, tuple(values.get(key, "") for values in flat)) for key in keys)
    return tuple((key, values) for key, values in rows if len(set(values)) > 1)


def flatten(values: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Nested values by their paths, as texts.

    Args:
        values: As in config.json.
        prefix: What all paths begin with.
    """
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value if isinstance(value, str) else json.dumps(value)
    return flat
