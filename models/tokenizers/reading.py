"""Reads the small files of a tokenizer, and says which one is at fault when that fails."""

from collections.abc import Collection, Iterable
from pathlib import Path

from models.errors import TokenizerError
from models.json_files import parse_json_object


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
        return parse_json_object(read_text(path))
    except ValueError as error:
        raise damaged_file(path, str(error)) from error


def check_merges(
    path: Path, merges: Iterable[tuple[str, str]], tokens: Collection[str], prefix: str = ""
) -> None:
    """Refuse merges whose parts or result are no tokens: the tokenizers library panics on them.

    Args:
        path: The file that they come from.
        merges: Pairs of tokens that are joined.
        tokens: The vocabulary.
        prefix: What marks a token inside a word, and is left out of the second when it is joined.

    Raises:
        TokenizerError: One does not fit.
    """
    start = len(prefix)  # 0 as a rule; Gemma has half a million merges, so that this loop counts
    for left, right in merges:
        known = left in tokens and right in tokens and left + right[start:] in tokens
        if not known or (start and not right.startswith(prefix)):
            raise damaged_file(
                path,
                f"its merges do not fit its tokens: {left!r:.80} and {right!r:.80} are joined, but "
                "one of them, or what they give, is no token",
            )
