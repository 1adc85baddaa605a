"""A run of a toy translation made: a folder with its configuration, from which all else follows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from explorer.training.run_folder import RunFolder, make_run_id
from explorer.training.translation_setup import TranslationSetup, build_translation_run

_UNFINISHED = ".making-"


def make_translation_run(
    runs: Path, setup: TranslationSetup, about: Mapping[str, Any]
) -> RunFolder:
    """Make the folder of a run, not yet started; it appears only when it is complete.

    Args:
        runs: Where runs are kept; made if it is not there.
        setup: What the form says.
        about: Further values of `about.json`, such as the owner.

    Raises:
        ConfigError: A value that cannot be used.
        DataError: The task has not so many pairs.
        OSError: The disk is full.
    """
    config = build_translation_run(setup)
    run = RunFolder(runs / make_run_id())
    making = RunFolder(runs / f"{_UNFINISHED}{run.id}")
    try:
        making.path.mkdir(parents=True)
        making.write_config(config)
        facts = {"name": config.name, "created_at": time.time(), "translation": asdict(setup)}
        making.write_about({**facts, **about})
        making.path.rename(run.path)
    except BaseException:  # half a run is none
        shutil.rmtree(making.path, ignore_errors=True)
        raise
    return run
