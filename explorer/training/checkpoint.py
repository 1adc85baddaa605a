"""Checkpoints: a model that opens in every tab, and beside it what going on needs.

    step-00000100/
        model.safetensors, config.json, tokenizer ...   as `models.saving` writes any model
        training.pt        optimiser, place in the data, random states (only in the newest two)
        checkpoint.json    step, and the size of each file: the seal of a whole checkpoint

It is written under another name, flushed to the disk, then renamed; a crash in between leaves the
older checkpoints as they were. Sizes are compared when it is read, and one that was damaged
afterwards is passed over for the one before it. What lies beyond the checkpoint that a run goes on
from is put aside (`aside-step-...`): it will be computed again, and must not count as the newest.
"""

from __future__ import annotations

import errno
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from explorer.training.durable_files import flush_files, flush_folder, write_json_durably
from explorer.training.learner import chat_of, write_learner_files
from explorer.training.run_folder import RunFolder, checkpoint_name
from explorer.training.saved_state import UNREADABLE
from explorer.training.training_state import TrainingState
from explorer.training.translator import is_translator, load_translator, save_translator
from explorer.training.tuning_config import TuningConfig
from models.decoder import Decoder
from models.encoder_decoder import EncoderDecoder
from models.errors import WeightError
from models.loading import load_model
from models.saving import save_model
from models.tokenizers import ChatTemplate, Tokenizer

TRAINING_FILE = "training.pt"
SEAL_FILE = "checkpoint.json"
# Going on needs the newest; one more, should the newest be damaged. Moments take twice the weights.
KEPT_TRAINING_FILES = 2
FULL_BYTES = 10**6  # a disk with less than this left took no more
_UNFINISHED = ".unfinished-"
_ASIDE = "aside-"


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint on the disk.

    Args:
        name: Its folder.
        n_bytes: Size of its files.
    """

    name: str
    n_bytes: int


@dataclass(frozen=True)
class Restored:
    """What was found to go on from.

    Args:
        step: Of the checkpoint; None where there was none.
        damaged: Names of newer ones that could not be used.
    """

    step: int | None
    damaged: tuple[str, ...]


def save_checkpoint(
    run: RunFolder,
    state: TrainingState,
    tokenizer: Tokenizer | None,
    *,
    keep: int | None = None,
    best: int | None = None,
    tuning: TuningConfig | None = None,
) -> SavedCheckpoint:
    """Write a checkpoint, then drop what is no longer kept.

    Args:
        run: The run.
        state: What to write.
        tokenizer: Goes with the model; None where the run has none.
        keep: Newest checkpoints that stay; None keeps all.
        best: Step of one that stays in any case.
        tuning: What a fine-tuning adds to the model.

    Raises:
        OSError: It cannot be written; the older ones are as they were.
    """
    name, model, values = checkpoint_name(state.step), state.whole_model(), state.to_dict()
    if model is None:  # the first process writes
        return SavedCheckpoint(name, 0)
    unfinished = run.path / f"{_UNFINISHED}{name}"
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        chat = chat_of(run, tokenizer, tuning)
        n_bytes = _write(unfinished, model, values, tokenizer, chat, state.model, tuning)
        shutil.rmtree(run.path / name, ignore_errors=True)  # of a run that went on from before it
        unfinished.rename(run.path / name)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    flush_folder(run.path)
    _drop_old(run, keep, best)
    return SavedCheckpoint(name, n_bytes)


def restore_newest(run: RunFolder, state: TrainingState) -> Restored:
    """Bring a fresh state to the newest checkpoint that is whole.

    Args:
        run: The run.
        state: A state of the run's configuration. Where there are checkpoints and none can be used,
            it is left in no known state: make it anew.
    """
    if state.processes.is_first:
        for left in run.path.glob(f"{_UNFINISHED}*"):
            shutil.rmtree(left, ignore_errors=True)
    restored = _restore_newest(run, state)
    if state.processes.is_first:
        _put_aside(run, beyond=-1 if restored.step is None else restored.step)
    return restored


def _restore_newest(run: RunFolder, state: TrainingState) -> Restored:
    damaged: list[str] = []
    for step in reversed(run.checkpoint_steps()):
        folder = run.checkpoint(step)
        if not (folder / TRAINING_FILE).exists() and _is_whole(folder):
            continue  # an older one, kept to be looked at
        weights, values = _read(folder)
        if values is None or not _try_restore(state, weights, values):
            damaged.append(folder.name)
            continue
        return Restored(state.step, tuple(damaged))
    return Restored(None, tuple(damaged))


def _put_aside(run: RunFolder, *, beyond: int) -> None:
    for step in run.checkpoint_steps():
        if step > beyond:
            aside = run.path / f"{_ASIDE}{checkpoint_name(step)}"
            shutil.rmtree(aside, ignore_errors=True)
            run.checkpoint(step).rename(aside)


def _write(
    folder: Path,
    model: Decoder | EncoderDecoder,
    values: dict[str, Any],
    tokenizer: Tokenizer | None,
    chat: ChatTemplate | None,
    learner: nn.Module,
    tuning: TuningConfig | None,
) -> int:
    folder.mkdir(parents=True)
    try:
        if isinstance(model, EncoderDecoder):
            save_translator(folder, model)
        else:
            save_model(folder, model, tokenizer=tokenizer, chat=chat)
        if tuning is not None:
            write_learner_files(folder, learner, tuning)
        torch.save(values, folder / TRAINING_FILE)
    except (RuntimeError, WeightError) as error:
        if isinstance(error, WeightError) and error.code != "model-not-written":
            raise
        # a full disk comes as "unexpected pos" or "I/O error"
        full = shutil.disk_usage(folder).free < FULL_BYTES
        raise OSError(errno.ENOSPC if full else errno.EIO, str(error)) from error
    n_bytes = flush_files(folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    write_json_durably(folder / SEAL_FILE, {"step": values["step"], "sizes": sizes})
    return n_bytes


def _drop_old(run: RunFolder, keep: int | None, best: int | None = None) -> None:
    steps = run.checkpoint_steps()
    if keep is not None:
        for step in steps[:-keep]:
            if step == best:
                continue
            shutil.rmtree(run.checkpoint(step), ignore_errors=True)
    for step in steps[:-KEPT_TRAINING_FILES]:
        (run.checkpoint(step) / TRAINING_FILE).unlink(missing_ok=True)


def _is_whole(folder: Path) -> bool:
    """Whether each file but the one that may have been dropped has the size that was written."""
    try:
        sizes = json.loads((folder / SEAL_FILE).read_bytes())["sizes"]
        return all(
            (folder / name).stat().st_size == size
            for name, size in sizes.items()
            if name != TRAINING_FILE or (folder / name).exists()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False


def _read(folder: Path) -> tuple[dict[str, torch.Tensor], dict[str, Any] | None]:
    if not _is_whole(folder):
        return {}, None
    try:
        values = torch.load(folder / TRAINING_FILE, map_location="cpu", weights_only=True)
        return _read_weights(folder), values
    except UNREADABLE:
        return {}, None


def _read_weights(folder: Path) -> dict[str, torch.Tensor]:
    model = load_translator(folder) if is_translator(folder) else load_model(folder).model
    return dict(model.state_dict())


def _try_restore(
    state: TrainingState, weights: dict[str, torch.Tensor], values: dict[str, Any]
) -> bool:
    """Whether it belongs to this run; a folder of another architecture was put there by hand."""
    try:
        state.restore(weights, values)
    except UNREADABLE:
        return False
    return True
