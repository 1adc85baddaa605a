"""Python that gives the numbers of a run again, and the commands that train it without the page."""

from __future__ import annotations

import shlex
from importlib.util import find_spec
from pathlib import Path

from explorer.home import find_home_folder
from explorer.runs import Runs
from explorer.snippets import PROJECT, make_snippet
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.setup import RunSetup

# Where losses are computed; the module itself brings in torch, which a page may not.
EVALUATION_MODULE = "explorer.training.evaluate"


def evaluation_file() -> str:
    """The file that losses are computed in, from the top of the project."""
    spec = find_spec(EVALUATION_MODULE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).resolve().relative_to(PROJECT).as_posix()


def make_run_snippet(run_id: str) -> str:
    """Python that reads the evaluations of a run."""
    return make_snippet(
        (Runs, find_home_folder),
        "",
        f"view = {Runs.__name__}({find_home_folder.__name__}()).view({run_id!r})",
        "for e in view.evaluated:",
        "    print(e.step, e.tokens, e.training_loss, e.validation_loss)",
    )


def make_run_commands(run_id: str, folder: Path | None) -> str:
    """Commands that train a run, or go on with it, from the top of the project.

    Args:
        run_id: The run.
        folder: Its folder; where None, it is named below the folder of all data.

    Returns:
        One line each: one process; two that hold the whole model each (DDP); two that hold a part
        of it each (FSDP2); its numbers as a TensorBoard file.
    """
    below = f'"$GLASSBOX_HOME/{RUNS_FOLDER}/{run_id}"'
    named = below if folder is None else shlex.quote(str(folder))
    command = f"-m explorer.train {named}"
    return "\n".join(
        (
            f"python {command}",
            f"torchrun --nproc-per-node 2 {command}",
            f"torchrun --nproc-per-node 2 {command} --shared-by fsdp",
            f"python {command} --tensorboard numbers",
        )
    )


def make_plan_snippet(setup: RunSetup) -> str:
    """Python that counts what the form comes to."""
    from explorer.training.plan import compute_plan

    defaults = RunSetup()
    given = ", ".join(
        f"{name}={value!r}"
        for name, value in vars(setup).items()
        if value != getattr(defaults, name)
    )
    return make_snippet(
        (RunSetup, compute_plan),
        "",
        f"plan = {compute_plan.__name__}({RunSetup.__name__}({given}))",
        "print(plan.n_parameters, plan.tokens, plan.operations)",
        "for part, count in plan.parts.items():",
        "    print(part, count)",
    )


def make_compare_snippet(run_ids: list[str]) -> str:
    """Python that compares runs."""
    return make_snippet(
        (Runs, find_home_folder),
        "",
        f"runs, ids = {Runs.__name__}({find_home_folder.__name__}()), {run_ids!r}",
        "for run_id in ids:",
        "    view = runs.view(run_id)",
        "    print(view.summary.name, [(e.step, e.validation_loss) for e in view.evaluated])",
        "for setting, values in runs.differences(ids):",
        "    print(setting, *values)",
    )
