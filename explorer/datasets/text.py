r"""A text for training: read from an upload, split into two parts, cut into tokens.

Reading is strict, because a wrong byte in a training text is learnt without a word: UTF-8 only,
nothing binary. A byte order mark is dropped, and "\r\n" and "\r" become "\n".

The last tenth of the *characters* is kept for validation, as in *Build a Large Language Model (From
Scratch)* (2024), section 5.1.3: the model never trains on it, so the loss there tells whether it
learns the language or the text by heart.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from explorer.errors import ConfigError, DataError
from explorer.memory import say_bytes

if TYPE_CHECKING:
    from models.tokenizers import Tokenizer

# All but tab, newline, form feed and carriage return, and the escape of coloured terminal logs.
_CONTROL_BYTES = bytes({*range(32), 127} - {*b"\t\n\f\r\x1b"})
_LARGEST_CONTROL_SHARE = 0.01  # a text has none or a few by accident, a program or image a tenth
_FOREIGN_MARKS = {codecs.BOM_UTF16_LE: "UTF-16", codecs.BOM_UTF16_BE: "UTF-16"}

_PIECE_CHARACTERS = 100_000  # some 20 ms of work, so that progress moves
# The end of a line, after a word and at most two signs: hardly any tokenizer joins across it.
_CUT = re.compile(r"(?:(?<=\w)|(?<=\w[^\w\s])|(?<=\w[^\w\s]{2}))\n")
_MARGIN_CHARACTERS = 200


def read_text(source: Path | bytes, *, max_bytes: int, name: str | None = None) -> str:
    r"""Read a text file or its content.

    Args:
        source: A file, or what is in it.
        max_bytes: The most bytes to take; a larger file is refused before it is read.
        name: What to call it in errors; None takes the file's own name.

    Returns:
        The text, with "\n" at the end of lines and without a byte order mark.

    Raises:
        DataError: It is missing, too large, empty, binary, or not UTF-8.
    """
    called = name or (source.name if isinstance(source, Path) else "text")
    content = read_bytes(source, max_bytes, called) if isinstance(source, Path) else source
    check_size(len(content), max_bytes, called)
    text = _decode(content, called)
    if not text.strip():
        raise DataError(
            f"{called} has no text in it; choose a file with text",
            code="data-text-empty",
            name=called,
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")


def split_text(text: str, validation_share: float = 0.1) -> tuple[str, str]:
    """Split a text into a first part for training and the rest for validation.

    Args:
        text: The whole text.
        validation_share: Share of its characters for validation, more than 0 and less than 1.

    Returns:
        Both parts; together they are the text.

    Raises:
        ConfigError: The share is out of range, or a part is left without a character.
    """
    if not 0 < validation_share < 1:
        raise ConfigError(
            f"validation_share={validation_share} is not between 0 and 1; choose 0.1 for a tenth",
            code="data-share-range",
            value=validation_share,
        )
    end = int((1 - validation_share) * len(text))
    training, validation = text[:end], text[end:]
    if not training or not validation:
        raise ConfigError(
            f"of {len(text)} characters, validation_share={validation_share} leaves "
            f"{len(training)} for training and {len(validation)} for validation; choose a longer "
            f"text or another share",
            code="data-part-empty",
            found=len(text),
            training=len(training),
            validation=len(validation),
        )
    return training, validation


def tokenize_text(
    tokenizer: Tokenizer,
    text: str,
    on_progress: Callable[[int, int], None] | None = None,
    *,
    special: bool = False,
) -> np.ndarray:
    """Cut a long text into tokens, with word of how far it is.

    The text is worked on in pieces that end where a line ends. Whether the tokenizer really sees a
    border there is tried out on the characters around it; where it does not, the piece goes on. So
    the ids are those of the whole text.

    Args:
        tokenizer: Any tokenizer.
        text: The text.
        on_progress: Called after each piece with the characters done and those in all.
        special: Whether special tokens typed in the text count as such.

    Returns:
        The ids, shape (tokens,): uint16 if the vocabulary allows it, else uint32.
    """
    dtype = np.uint16 if tokenizer.vocab_size <= 2**16 else np.uint32
    pieces = [np.zeros(0, dtype)]
    start = 0
    while start < len(text):
        end = _find_cut(tokenizer, text, start + _PIECE_CHARACTERS, special)
        encode = tokenizer.encode_continuation if start else tokenizer.encode
        pieces.append(np.array(encode(text[start:end], special), dtype))
        start = end
        if on_progress is not None:
            on_progress(end, len(text))
    return np.concatenate(pieces)


def _find_cut(tokenizer: Tokenizer, text: str, first: int, special: bool) -> int:
    """The next place from `first` on that no token spans, or the end of the text."""
    for found in _CUT.finditer(text, first):
        cut = found.start()
        left = text[max(0, cut - _MARGIN_CHARACTERS) : cut]
        right = text[cut : cut + _MARGIN_CHARACTERS]
        apart = [tokenizer.encode_continuation(part, special) for part in (left, right)]
        if tokenizer.encode_continuation(left + right, special) == apart[0] + apart[1]:
            return cut
    return len(text)


def read_bytes(path: Path, max_bytes: int, name: str) -> bytes:
    """The content of a file.

    Args:
        path: The file.
        max_bytes: The most bytes to take; a larger file is refused before it is read.
        name: What to call it in errors.

    Raises:
        DataError: It is missing or too large.
    """
    try:
        check_size(path.stat().st_size, max_bytes, name)
        with path.open("rb") as file:
            return file.read(max_bytes + 1)  # no more, even if it grew or its size was not known
    except OSError as problem:
        raise DataError(
            f"{name} cannot be read: {problem.strerror}; choose a text file that is there",
            code="data-unreadable",
            name=name,
            reason=str(problem.strerror),
        ) from problem


def check_size(n_bytes: int, max_bytes: int, name: str) -> None:
    """Refuse what is too large.

    Args:
        n_bytes: Its size.
        max_bytes: The most that is taken.
        name: What to call it in errors.

    Raises:
        DataError: It is larger.
    """
    if n_bytes > max_bytes:
        raise DataError(
            f"{name} has {say_bytes(n_bytes)}, and {say_bytes(max_bytes)} are taken at most; "
            f"choose a part of it",
            code="data-too-large",
            name=name,
            found=say_bytes(n_bytes),
            limit=say_bytes(max_bytes),
        )


def _decode(content: bytes, name: str) -> str:
    foreign = _FOREIGN_MARKS.get(content[:2])
    if foreign is not None:
        raise _not_utf8(name, f"it begins as {foreign} does")
    n_control = len(content) - len(content.translate(None, _CONTROL_BYTES))
    if b"\0" in content or n_control > _LARGEST_CONTROL_SHARE * len(content):
        raise DataError(
            f"{name} is no text: {n_control} of its {len(content)} bytes are control characters; "
            f"choose a plain text file (.txt), not a document, image or archive",
            code="data-binary",
            name=name,
            found=n_control,
            total=len(content),
        )
    try:
        return content.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as problem:
        byte = content[problem.start]
        raise _not_utf8(name, f"byte {problem.start} is 0x{byte:02X}") from problem


def _not_utf8(name: str, problem: str) -> DataError:
    return DataError(
        f"{name} is not UTF-8 text: {problem}; save it again with the encoding UTF-8",
        code="data-not-utf8",
        name=name,
        problem=problem,
    )
