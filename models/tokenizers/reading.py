"""Reads the small files of a tokenizer, and says which one is at fault when that fails."""

import json
from pathlib import Path

from models.errors import TokenizerError


def damaged_file(path: Path, problem: str) -> TokenizerError:
    """An error that names the file, what is wrong with it, and what to do."""
    return TokenizerError(
        f"{path.name} cannot be used: {problem}. Download the tokenizer's files again.",
        code="tokenizer-damaged",
        file=path.name,
        problem=problem,
    )


def read_text(path: Path) -> str:
    """Read a UTF-8 file.

    Args:
        path: The file.

    Returns:
        Its text.

    Raises:
        TokenizerError: It is missing, unreadable or not UTF-8.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise damaged_file(path, f"{error.strerror} ({path})") from error
    except UnicodeDecodeError as error:
        raise damaged_file(path, "it is not UTF-8 text") from error


def read_json_object(path: Path) -> dict[str, object]:
    """Read a JSON file that holds one object.

    Args:
        path: The file.

    Returns:
        The object.

    Raises:
        TokenizerError: It is missing, not JSON, or holds something else.
    """
    try:
        found = json.loads(read_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise damaged_file(path, f"it is not JSON ({error})") from error
    if not isinstance(found, dict):
        raise damaged_file(path, f"it holds a {type(found).__name__} instead of an object")
    return found
