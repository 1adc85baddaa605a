"""Checkpoints of runs as models to open: `run:ID@STEP`.

The id of a run cannot be guessed, and whoever has it was given it; on a public host the model in
memory is still shared with nobody (see `ownership`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import JobError, SourceError
from explorer.home import find_home_folder
from explorer.number_formats import split_dtype
from explorer.training.run_folder import ADAPTER_FOLDER, RUN_ID, RUNS_FOLDER, RunFolder
from explorer.training.translation_config import TRANSLATOR_FILE

RUN_PREFIX = "run:"
_SOURCE = re.compile(rf"{RUN_PREFIX}({RUN_ID.pattern})@(\d{{1,8}})")


def run_of(source: str) -> str:
    """The id of the run whose checkpoint a source names; "" where it names none.

    Args:
        source: Any source, its number format included.
    """
    match = _SOURCE.fullmatch(split_dtype(source)[0])
    return "" if match is None else match[1]


def find_checkpoint(runs: Path, source: str) -> Path:
    """The folder of a checkpoint.

    Args:
        runs: Where runs are kept.
        source: `run:ID@STEP`.

    Raises:
        SourceError: There is no such run or checkpoint.
    """
    match = _SOURCE.fullmatch(source)
    run = None if match is None else RunFolder(runs / match[1])
    step = -1 if match is None else int(match[2])
    if run is None or step not in run.checkpoint_steps():
        shown = repr(source) if run is None else f"{run.title} @ {step}"
        known = "none" if run is None else ", ".join(map(str, run.checkpoint_steps())) or "none"
        raise SourceError(
            f"{shown} is no checkpoint of a run here (checkpoints of it: {known}); it may have "
            "been deleted: choose another one in the Pretrain tab",
            code="checkpoint-missing",
            source=shown,
            known=known,
        )
    folder = run.checkpoint(step)
    if (folder / TRANSLATOR_FILE).exists():
        raise SourceError(
            f"{run.title} @ {step} is an encoder-decoder, which reads two texts; use it in the "
            "Blocks tab, under Encoder-decoder",
            code="checkpoint-translator",
            source=f"{run.title} @ {step}",
        )
    return folder


@dataclass(frozen=True)
class AdapterPlace:
    """A checkpoint that is a small adapter on a model that is there already.

    Args:
        base: Source of that model.
        folder: The adapter, in PEFT's layout.
    """

    base: str
    folder: Path


def find_adapter(runs: Path, source: str) -> AdapterPlace | None:
    """The adapter of a checkpoint and its base.

    Args:
        runs: Where runs are kept.
        source: `run:ID@STEP`.

    Returns:
        None where the checkpoint has no adapter of its own, or where configurations that were
        changed by hand make a model the base of itself.

    Raises:
        SourceError: There is no such run or checkpoint.
    """
    folder = find_checkpoint(runs, source) / ADAPTER_FOLDER
    base = _base_of(runs, source)
    if base is None or not folder.is_dir():
        return None
    seen, earlier = {source}, _base_of(runs, source)
    while earlier is not None:
        if earlier in seen:
            return None
        seen.add(earlier)
        earlier = _base_of(runs, earlier)
    return AdapterPlace(base, folder)


def _base_of(runs: Path, source: str) -> str | None:
    run = run_of(source)
    try:
        tuning = RunFolder(runs / run).read_config().tuning if run else None
    except JobError:
        return None
    return None if tuning is None else tuning.base


def find_own_checkpoint(source: str) -> Path:
    """The folder of a checkpoint of this user's runs.

    Args:
        source: `run:ID@STEP`.

    Raises:
        SourceError: There is no such run or checkpoint.
    """
    return find_checkpoint(find_home_folder() / RUNS_FOLDER, source)


def name_checkpoint(runs: Path, source: str) -> str:
    """What a page calls it: the name of the run, and the step."""
    folder = find_checkpoint(runs, source)
    return f"{RunFolder(folder.parent).title} @ {source.rpartition('@')[2]}"
