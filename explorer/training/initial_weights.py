"""Beginning a run from weights that are there already, and from the moments of their optimiser.

    run folder/initial/        a model like any other, and optimiser.pt where its file had moments

A course's `.pth` file that holds `optimizer_state_dict` beside the weights gives both: the first
step then is the next step of that training.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from explorer.training.run_folder import RunFolder
from explorer.training.saved_state import UNREADABLE
from explorer.training.training_state import TrainingState
from models.config import ModelConfig
from models.errors import ConfigError, JobError, WeightError
from models.loading import LoadedModel, load_model
from models.lora import merged_copy
from models.optimizer_file import read_optimizer_state
from models.saving import save_model

MOMENTS_FILE = "optimiser.pt"
PACKED_ENDINGS = (".pth", ".pt", ".bin")
NO_MOMENTS = "optimizer-missing"


def write_initial(run: RunFolder, loaded: LoadedModel, source: Path) -> None:
    """Keep the weights that a run begins from.

    Args:
        run: The run, before its first step.
        loaded: The model in float32.
        source: The file or folder that it came from; a state dict may hold moments too.

    Raises:
        ConfigError: The run's architecture is another one.
        WeightError: The moments are damaged, or the disk is full.
    """
    wanted = run.read_config().model
    if not same_shape(wanted, loaded.config):
        problem = "the model to begin from has another architecture than the run"
        raise ConfigError(
            f"{problem}; take its configuration for the run", code="run-setting", problem=problem
        )
    folder = run.initial_folder
    save_model(folder, merged_copy(loaded.model))
    if source.suffix in PACKED_ENDINGS:
        try:
            moments = read_optimizer_state(source)
        except WeightError as error:
            if error.code != NO_MOMENTS:
                raise
            return  # weights alone
        torch.save({n: _copies(entries) for n, entries in moments.items()}, folder / MOMENTS_FILE)


def begin_from_initial(run: RunFolder, state: TrainingState) -> bool:
    """Bring a fresh state to the weights that the run begins from.

    Args:
        run: The run.
        state: Changed in place.

    Returns:
        False where the run begins from nothing.

    Raises:
        JobError: The weights are there and cannot be used.
    """
    folder = run.initial_folder
    if not folder.is_dir():
        return False
    try:
        weights = dict(load_model(folder).model.state_dict())
        values = state.to_dict()
        moments = folder / MOMENTS_FILE
        if moments.exists():
            values["optimiser"] = torch.load(moments, map_location="cpu", weights_only=True)
        if values["average"] is not None:
            values["average"] = {**values["average"], "weights": weights}
        state.restore(weights, values)
    except UNREADABLE as error:
        raise JobError(
            f"the weights that the run {run.title} begins from cannot be used ({error}); start a "
            "new run",
            code="run-file",
            run=run.title,
            file=run.initial_folder.name,
            problem=str(error),
        ) from None
    return True


def same_shape(one: ModelConfig, other: ModelConfig) -> bool:
    """Whether weights of one fit the other: dropout and first draws make no difference."""
    return replace(one, dropout=other.dropout, initialisation=other.initialisation) == other


def _copies(entries: dict[str, Tensor]) -> dict[str, Tensor]:
    """Views of a mapped file would be saved with all of it."""
    return {key: tensor.clone() for key, tensor in entries.items()}
