"""A checkpoint as one file to take away."""

import zipfile
from pathlib import Path

# Only going on needs these; a model is complete without them.
LEFT_OUT = frozenset({"training.pt", "checkpoint.json"})


def pack_checkpoint(checkpoint: Path, target: Path) -> Path:
    """Pack a checkpoint as any program that opens the model wants it.

    Args:
        checkpoint: Its folder.
        target: The .zip file to write.

    Returns:
        The same path.

    Raises:
        OSError: It cannot be written.
    """
    # stored, not deflated: weights do not get smaller, and a phone waits for the result
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for path in sorted(checkpoint.rglob("*")):  # an adapter has a folder of its own
            if path.name not in LEFT_OUT:
                archive.write(path, f"{checkpoint.name}/{path.relative_to(checkpoint)}")
    return target
