"""The objectives: one file each, and one line in the table."""

from collections.abc import Mapping

from explorer.training.objectives import pretrain
from explorer.training.objectives.objective import Objective
from models.errors import ConfigError

OBJECTIVES: Mapping[str, Objective] = {
    objective.name: objective for objective in (pretrain.OBJECTIVE,)
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
