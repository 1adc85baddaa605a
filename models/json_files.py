"""JSON from outside: one reader for the files of a model, whoever made them.

A file can nest 100,000 brackets or hold a number of 5,000 digits: Python's reader then raises
neither of the errors that one thinks of.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.errors import WeightError


def parse_json_object(content: str | bytes) -> dict[str, Any]:
    """Read JSON that holds one object.

    Args:
        content: The text, or its bytes in UTF-8.

    Returns:
        The object.

    Raises:
        ValueError: It is not JSON, or holds something else; says so in a few words.
    """
    try:
        found = json.loads(content)
    except RecursionError:
        raise ValueError("its brackets are nested too deep") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"it holds a {type(found).__name__} instead of an object")
    return found


def read_json(path: Path) -> Mapping[str, Any]:
    """A JSON file of a model, such as its configuration.

    Args:
        path: The file.

    Returns:
        The object in it.

    Raises:
        WeightError: It is not there, not JSON, or holds something else.
    """
    try:
        return parse_json_object(path.read_bytes())
    except FileNotFoundError:
        raise WeightError(
            f"{path.parent.name or path.parent} has no {path.name}; choose the folder that holds "
            f"{path.name} and the weights, as downloaded from the Hub",
            code="file-missing",
            folder=path.parent.name,
            file=path.name,
        ) from None
    except (ValueError, OSError) as error:
        raise WeightError(
            f"{path.name} cannot be read ({error}); download it again",
            code="file-damaged",
            file=path.name,
        ) from None
