"""Runs for tests of the page: made by the real code, trained for three steps or written by hand."""

import math
from pathlib import Path

from explorer.runs import Runs
from explorer.training.event_log import EventLog
from explorer.training.events import Evaluated, Failed, Finished, Sampled, Started, Step
from explorer.training.run_folder import RUNS_FOLDER, RunFolder
from explorer.training.setup import RunSetup

SMALL = {"context": 16, "batch_size": 2, "n_steps": 3}


def make_run(home: Path, owner: str = "local", **changes: object) -> str:
    """Make a run on the village text; its id."""
    *_, last = Runs(home).create(RunSetup(**{**SMALL, **changes}), owner)
    return str(last.run_id)


def folder_of(home: Path, run_id: str) -> RunFolder:
    return RunFolder(home / RUNS_FOLDER / run_id)


def train_in_process(home: Path, run_id: str) -> None:
    """Take all its steps, here and now."""
    from explorer.training.loop import train

    for _event in train(folder_of(home, run_id).path):
        pass


def write_events(home: Path, run_id: str, n_steps: int, *, fail: bool = False) -> None:
    """Write what a run of so many steps would have: its validation loss turns up in the middle."""
    with EventLog(folder_of(home, run_id).events_file) as log:
        log.append(
            Started(
                step=0,
                at=0.0,
                n_steps=n_steps,
                n_parameters=1,
                n_training_tokens=32 * n_steps,
                n_validation_tokens=100,
                tokens_per_step=32,
                steps_per_epoch=n_steps,
                flops_per_token=6.0,
                peak_flops_per_s=1e9,
                device="cpu",
            )
        )
        for step in range(1, n_steps + 1):
            loss = 1 + 3 * math.exp(-step / n_steps) + (5 if step == n_steps // 3 else 0)
            log.append(
                Step(
                    step=step,
                    at=float(step),
                    epoch=step / n_steps,
                    tokens=32 * step,
                    loss=loss,
                    learning_rate=1e-3,
                    gradient_norm=0.5,
                    duration_s=0.01,
                )
            )
            if step % max(1, n_steps // 10) == 0:
                share = step / n_steps
                log.append(
                    Evaluated(
                        step=step,
                        at=float(step),
                        tokens=32 * step,
                        training_loss=3 - 2 * share,
                        validation_loss=2 + 4 * (share - 0.5) ** 2,
                        duration_s=0.1,
                    )
                )
                log.append(Sampled(step=step, at=float(step), prompt="Ada", text=f" at {step}"))
        last = {"step": n_steps, "at": float(n_steps)}
        if fail:
            log.append(Failed(**last, code="run-nan", message="not finite", tensor="head.weight"))
        else:
            log.append(Finished(**last, reason="done"))
