"""The objectives: one file each, and one line in the table."""

from collections.abc import Mapping
from dataclasses import replace

from explorer.training.objectives import (
    classification,
    preference,
    pretrain,
    sft,
    translation,
)
from explorer.training.objectives.objective import Objective
from explorer.training.run_config import RunConfig
from models.errors import ConfigError

OBJECTIVES: Mapping[str, Objective] = {
    objective.name: objective
    for objective in (
        pretrain.OBJECTIVE,
        classification.OBJECTIVE,
        sft.OBJECTIVE,
        preference.OBJECTIVE,
        translation.OBJECTIVE,
    )
}


def get_objective(name: str) -> Objective:
    """The objective of that name.

    Raises:
        ConfigError: There is none; lists those there are.
    """
    if name not in OBJECTIVES:
        known = ", ".join(OBJECTIVES)
        raise ConfigError(
            f"objective={name!r} is unknown; choose {known}",
            code="run-setting",
            problem=f"objective={name!r} is unknown; choose {known}",
        )
    return OBJECTIVES[name]


def objective_of(config: RunConfig) -> Objective:
    """The objective of a run, as its settings want it.

    Raises:
        ConfigError: There is none of its name.
        JobError: It needs settings that the run has not.
    """
    objective = get_objective(config.objective)
    if objective.for_run is None:
        return objective
    loss, scores = objective.for_run(config)
    return replace(objective, compute_loss_sum=loss, compute_scores=scores)
