"""Writing files so that a power cut leaves the old content or the new, never a mixture.

    write to a name of its own ─► flush to the disk ─► rename over the old ─► flush the folder

Renaming within one file system is atomic (POSIX `rename`); without the flushes the system may carry
out the rename before the content has reached the disk, and a cut leaves an empty file under the
right name.
"""

import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_durably(path: Path, content: bytes) -> None:
    """Put a file in place, whole or not at all.

    Args:
        path: Where it belongs; an older file there is replaced.
        content: Its bytes.

    Raises:
        OSError: It cannot be written; what stood there before still does.
    """
    # a name of its own for each thread too: two visitors may press a button at once
    beside = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError:
        beside.unlink(missing_ok=True)
        raise
    flush_folder(path.parent)


def write_json_durably(path: Path, values: Mapping[str, Any]) -> None:
    """Put a JSON file in place, whole or not at all.

    Args:
        path: Where it belongs.
        values: What it says; plain JSON values, no NaN.

    Raises:
        OSError: It cannot be written.
    """
    text = json.dumps(values, ensure_ascii=False, indent=1, allow_nan=False)
    write_durably(path, text.encode())


def flush_files(folder: Path) -> int:
    """Bring all files of a folder to the disk.

    Args:
        folder: The folder; its own folders too.

    Returns:
        Their size together, in bytes.
    """
    n_bytes = 0
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            descriptor = os.open(path, os.O_RDWR)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            n_bytes += path.stat().st_size
    flush_folder(folder)
    return n_bytes


def flush_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; Windows does this by itself and offers no call."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
