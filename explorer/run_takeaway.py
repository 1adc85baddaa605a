"""What can be taken away from a run: its numbers, and checkpoints as one file."""

from __future__ import annotations

import tempfile
from pathlib import Path

from explorer.training.run_folder import RunFolder


def write_metrics(run: RunFolder) -> str:
    """All numbers of a run's events as CSV."""
    from explorer.training.event_log import read_events
    from explorer.training.export import metrics_csv

    return metrics_csv(read_events(run.events_file))


def pack_checkpoint_of(run: RunFolder, checkpoint: Path, folder: Path | None = None) -> Path:
    """Pack a checkpoint, without what only going on needs.

    Args:
        run: The run.
        checkpoint: Folder of the checkpoint.
        folder: Where to put the file; None makes a folder for it.

    Returns:
        A .zip file.
    """
    from explorer.training.archive import pack_checkpoint

    target = folder or Path(tempfile.mkdtemp(prefix="glassbox-"))
    return pack_checkpoint(checkpoint, target / f"{run.id[:8]}-{checkpoint.name}.zip")
