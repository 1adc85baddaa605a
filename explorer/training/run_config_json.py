"""`config.json` of a run: the configuration under its own names, and the version of the form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from explorer.training.run_config import RunConfig
from models.config_json import dataclass_from_json, dataclass_to_json
from models.errors import ConfigError

FORMAT = 1


def run_config_to_json(config: RunConfig) -> dict[str, Any]:
    """A configuration as plain JSON values."""
    return {"format": FORMAT, **dataclass_to_json(config)}


def run_config_from_json(values: Mapping[str, Any]) -> RunConfig:
    """The configuration that `run_config_to_json` wrote.

    A field that has come since takes its default: runs of earlier versions open and go on.

    Raises:
        ConfigError: A key without a default is missing, one is unknown or has a value that
            cannot be; or the file was written by a later version.
    """
    content = dict(values)
    found = content.pop("format", None)
    if found != FORMAT:
        raise ConfigError(
            f"config.json has format {found!r}, this version reads {FORMAT}; open the run with the "
            "version that made it"
        )
    config: RunConfig = dataclass_from_json(RunConfig, content, fill_in=True)
    return config
