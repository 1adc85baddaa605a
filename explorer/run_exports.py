"""What can be taken away from a run: its numbers for other programs, and its checkpoints."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from explorer.errors import JobError
from explorer.training.run_folder import RunFolder


class RunExports:
    """Files made of runs, for whoever has their id.

    Args:
        find: Gives the run of an id, or raises JobError.
    """

    def __init__(self, find: Callable[[str], RunFolder]) -> None:
        self._find = find

    def metrics_csv(self, run_id: str) -> str:
        """All numbers of its events as CSV.

        Raises:
            JobError: It is not there.
        """
        from explorer.training.event_log import read_events
        from explorer.training.export import metrics_csv

        return metrics_csv(read_events(self._find(run_id).events_file))

    def tensorboard(self, run_id: str, folder: Path | None = None) -> Path:
        """All numbers of its events as a TensorBoard event file.

        Args:
            run_id: The run.
            folder: Where to put the file; None makes a folder for it.

        Returns:
            A .zip file: TensorBoard shows the folder in it as one run.

        Raises:
            JobError: It is not there.
        """
        from explorer.training.event_log import read_events
        from explorer.training.export import write_tensorboard

        run = self._find(run_id)
        target = _make_folder(folder) / f"{run_id[:8]}-tensorboard"
        with tempfile.TemporaryDirectory() as aside:
            write_tensorboard(read_events(run.events_file), Path(aside) / f"glassbox-{run_id[:8]}")
            return Path(shutil.make_archive(str(target), "zip", aside))

    def checkpoint(self, run_id: str, step: int, folder: Path | None = None) -> Path:
        """Pack a checkpoint, without what only going on needs.

        Args:
            run_id: The run.
            step: Of the checkpoint.
            folder: Where to put the file; None makes a folder for it.

        Returns:
            A .zip file.

        Raises:
            JobError: There is no such checkpoint.
        """
        from explorer.training.archive import pack_checkpoint

        checkpoint = require_checkpoint(self._find(run_id), step)
        return pack_checkpoint(
            checkpoint, _make_folder(folder) / f"{run_id[:8]}-{checkpoint.name}.zip"
        )

    def adapter(self, run_id: str, step: int, folder: Path | None = None) -> Path:
        """Pack the adapter of a checkpoint alone, as PEFT opens it.

        Args:
            run_id: The run.
            step: Of the checkpoint.
            folder: Where to put the file; None makes a folder for it.

        Returns:
            A .zip file.

        Raises:
            JobError: There is no such checkpoint, or no adapter in it.
        """
        from explorer.training.archive import pack_checkpoint
        from explorer.tuning_adapter import require_adapter

        run = self._find(run_id)
        adapter = require_adapter(require_checkpoint(run, step), run.read_config().tuning)
        name = f"{run_id[:8]}-step-{step}-adapter.zip"
        return pack_checkpoint(adapter, _make_folder(folder) / name)


def require_checkpoint(run: RunFolder, step: int) -> Path:
    """The folder of a checkpoint that is there.

    Raises:
        JobError: It is not there.
    """
    steps = run.checkpoint_steps()
    if step not in steps:
        known = ", ".join(map(str, steps))
        raise JobError(
            f"the run {run.title} has no checkpoint of step {step}; it has {known or 'none yet'}",
            code="run-no-checkpoint",
            step=step,
            known=known or "-",
        )
    return run.checkpoint(step)


def _make_folder(folder: Path | None) -> Path:
    return folder or Path(tempfile.mkdtemp(prefix="glassbox-"))
