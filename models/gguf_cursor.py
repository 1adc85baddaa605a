"""Reads numbers, strings and arrays of a GGUF file one after another, and trusts none of them.

Every length that the file states is compared with what is left of the file before it is used, so a
damaged file is refused at once, whatever it claims. The layout is drawn in `gguf_file.py`.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from models.errors import WeightError

_STRING, _ARRAY = 8, 9
# Kind of value -> its struct format. Strings and arrays have no fixed size.
_SCALARS: Mapping[int, str] = MappingProxyType(
    {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
)
_MOST_ELEMENTS = 2**24  # of one array: 64 times the largest vocabulary known (262,144, Gemma 3)
_MOST_NESTING = 4  # arrays in arrays; no known file nests at all
_REMEDY = "Download or convert it again, and compare its size with the one given by its publisher."


class Cursor:
    """A position in the file. Each read checks first that the file holds that many bytes."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self.data = data
        self.path = path
        self.position = 0

    def left(self) -> int:
        """Bytes between the position and the end of the file."""
        return len(self.data) - self.position

    def damaged(self, what: str) -> WeightError:
        """An error that names the file and what is wrong with it."""
        return damaged_file(self.path, what)

    def require(self, n_bytes: int, what: str) -> None:
        """Raise WeightError unless the file still holds `n_bytes`."""
        if n_bytes > self.left():
            raise self.damaged(
                f"{what} at byte {self.position:,} needs {n_bytes:,} bytes, the file has only "
                f"{max(self.left(), 0):,} left"
            )

    def numbers(self, form: str, count: int, what: str) -> tuple[int | float | bool, ...]:
        """Read `count` numbers of one struct format."""
        size = struct.calcsize(f"<{form}") * count
        self.require(size, what)
        values = struct.unpack_from(f"<{count}{form}", self.data, self.position)
        self.position += size
        return values

    def unsigned(self, form: str, what: str) -> int:
        """Read one whole number: format "I" (4 bytes) or "Q" (8 bytes)."""
        return int(self.numbers(form, 1, what)[0])

    def string(self, what: str) -> str:
        """Read a length and that many bytes of UTF-8."""
        return self.strings(1, what)[0]

    def strings(self, count: int, what: str) -> list[str]:
        """Read `count` strings, in a loop kept tight: a vocabulary has 50,000 to 260,000."""
        data, position, end = self.data, self.position, len(self.data)
        read_length = struct.Struct("<Q").unpack_from
        found = []
        try:
            for _ in range(count):
                start = position + 8
                position = start + read_length(data, position)[0]
                if position > end:
                    raise self.damaged(f"{what}: a string reaches {position - end:,} bytes too far")
                found.append(data[start:position].decode("utf-8"))
        except struct.error as error:
            raise self.damaged(f"{what} is cut off by the end of the file") from error
        except UnicodeDecodeError as error:
            raise self.damaged(f"{what} is not UTF-8 text") from error
        self.position = position
        return found


def damaged_file(path: Path, problem: str) -> WeightError:
    """An error that names the file, what is wrong with it, and what to do."""
    return WeightError(
        f"{path.name} is not a usable GGUF file: {problem}. {_REMEDY}",
        code="gguf-damaged",
        file=path.name,
        problem=problem,
    )


def read_value(cursor: Cursor, kind: int, what: str, depth: int = 0) -> object:
    """Read one metadata value.

    Args:
        cursor: Stands at the value, and is moved behind it.
        kind: The number that the file gives for the value's type.
        what: What is read, for the error.
        depth: In how many arrays the value lies.

    Returns:
        A number, bool or string, or a list of these.

    Raises:
        WeightError: The kind is unknown, or the file is too short for the value.
    """
    if kind == _STRING:
        return cursor.string(what)
    if kind == _ARRAY and depth < _MOST_NESTING:
        return _read_array(cursor, what, depth + 1)
    if kind in _SCALARS:
        return cursor.numbers(_SCALARS[kind], 1, what)[0]
    problem = "nests arrays too deeply" if kind == _ARRAY else f"has the unknown kind {kind}"
    raise cursor.damaged(f"{what} {problem}")


def _read_array(cursor: Cursor, what: str, depth: int) -> list[object]:
    kind = cursor.unsigned("I", what)
    count = cursor.unsigned("Q", what)
    if count > _MOST_ELEMENTS:
        raise cursor.damaged(f"{what} claims {count:,} elements, more than {_MOST_ELEMENTS:,}")
    if kind in _SCALARS:
        return list(cursor.numbers(_SCALARS[kind], count, what))
    if kind == _STRING:
        return list(cursor.strings(count, what))
    # An element of any other kind takes at least 12 bytes, so a false count ends at the file's end.
    return [read_value(cursor, kind, what, depth) for _ in range(count)]
