"""Rows of a data set, as its file has them: CSV, TSV, JSON, JSON lines, Parquet.

What a file is, its content says, not its name: JSON saved as .txt is JSON. A row that cannot be
read does not spoil the others; it is told by its number in the file (of lines in CSV, TSV and JSON
lines; of entries in JSON and Parquet, from 1).

Quotes: in CSV a cell in quotes may hold commas and ends of lines, as RFC 4180 has it. In TSV quotes
are text, because such files are written without any: read otherwise, a stray quote swallows the
rows up to the next one (the SMS Spam Collection loses two of its 5,574 that way).
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from explorer.datasets.text import check_size, read_bytes, read_text
from explorer.errors import DataError

Quotes = Literal["auto", "text", "csv"]
PARQUET_MARK = b"PAR1"
MOST_PACKED = 4  # a Parquet file is compressed: it may hold so many times the bytes of a plain one
# Names that a column of a data set has; a first line without any of them is no heading.
KNOWN_COLUMNS = frozenset(
    (
        "label", "text", "sentence", "message", "review", "category", "class", "labels", "sms",
        "v1", "v2", "instruction", "input", "output", "response", "answer", "question",
        "messages", "conversations", "prompt", "chosen", "rejected", "completion", "system",
        "choices", "options", "split", "context", "target", "id", "part", "title",
    )
)  # fmt: skip


# What is wrong with a row, in English; the page's own sentences are `finetune.problem.<code>`.
_PROBLEMS: Mapping[str, str] = {
    "choice_answer": "the right answer {what} is none of the choices",
    "choice_count": "{what} choices; there must be two or more",
    "choice_list": "{what} is no list of choices",
    "choice_twice": "a choice stands there twice",
    "empty": "{what} is empty",
    "missing": "{what} is missing",
    "no_answer": "{what} does not end with an answer of the assistant",
    "no_object": "a {what}, not an object with columns",
    "no_question": "the messages end with an answer, so nothing is asked",
    "not_json": "no JSON, from character {what} on",
    "not_messages": "the messages are no list of roles and texts",
    "not_text": "{what} is an object or list, not a text",
    "same_answers": "both answers are the same",
    "width": "{what} cells",
}


@dataclass(frozen=True, kw_only=True)
class RowProblem:
    """What is wrong with a row; as a text, it says so in English.

    Args:
        number: Of the row, as its file counts.
        code: Last part of the key of the sentence for the page.
        what: Whatever the sentence names: a column, a position.
    """

    number: int
    code: str
    what: str = ""

    @property
    def text_key(self) -> str:
        """Key of the sentence for the page."""
        return f"finetune.problem.{self.code}"

    def __str__(self) -> str:
        return _PROBLEMS.get(self.code, f"{self.code} {{what}}").format(what=self.what).strip()


@dataclass(frozen=True, kw_only=True)
class RecordTable:
    """A data set as its file has it.

    Args:
        name: Of the file.
        columns: Names of the columns; one without a name is called by its place.
        rows: Values of each row, None where there is none.
        numbers: Number of each row in the file.
        problems: Rows that could not be read.
    """

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    numbers: tuple[int, ...]
    problems: tuple[RowProblem, ...] = ()

    def column(self, name: str) -> list[Any]:
        """All values of a column.

        Raises:
            DataError: There is none of this name.
        """
        if name not in self.columns:
            known = ", ".join(self.columns)
            raise DataError(
                f"{self.name} has no column {name!r}; choose one of {known}",
                code="data-no-column",
                name=self.name,
                column=name,
                known=known,
            )
        place = self.columns.index(name)
        return [row[place] for row in self.rows]


def read_records(
    source: Path | bytes, *, name: str, max_bytes: int, quotes: Quotes = "auto"
) -> RecordTable:
    """Read a data set.

    Args:
        source: A file, or what is in it.
        name: What to call it in errors.
        max_bytes: The most bytes to take; a larger file is refused before it is read.
        quotes: Whether quotes hold a cell together, or are text like any other.

    Raises:
        DataError: It is missing, too large, empty, binary, not UTF-8, or no table.
    """
    if _begins_with(source, PARQUET_MARK):
        return _read_parquet(source, name, max_bytes)
    text = read_text(source, max_bytes=max_bytes, name=name)
    if text.lstrip()[:1] in ("[", "{"):
        return _read_json(text, name)
    return _read_delimited(text, name, quotes)


def _begins_with(source: Path | bytes, mark: bytes) -> bool:
    if isinstance(source, bytes):
        return source.startswith(mark)
    try:
        with source.open("rb") as file:
            return file.read(len(mark)) == mark
    except OSError:  # what is wrong with it, reading it says
        return False


# ------------------------------------------------------------------------------------------- JSON
def _read_json(text: str, name: str) -> RecordTable:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return _read_json_lines(text, name)
    if isinstance(found, dict):
        found = _rows_of_object(found)
    return _table_of(enumerate(found, start=1), name, ())


def _rows_of_object(found: dict[str, Any]) -> list[Any]:
    """Rows of a file that is one object: its columns, a wrapping around rows, or one row."""
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    of_objects = [n for n, v in lists.items() if v and all(isinstance(e, dict) for e in v)]
    if not of_objects and len(lists) == len(found) and len({len(v) for v in lists.values()}) == 1:
        return [dict(zip(found, row, strict=True)) for row in zip(*lists.values(), strict=True)]
    # Messages of one talk are objects, too, but their column says that they are one row.
    if len(of_objects) == 1 and of_objects[0].lower() not in KNOWN_COLUMNS:
        return lists[of_objects[0]]
    return [found]


def _read_json_lines(text: str, name: str) -> RecordTable:
    entries: list[tuple[int, Any]] = []
    problems: list[RowProblem] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            entries.append((number, json.loads(line)))
        except (ValueError, RecursionError) as error:
            column = getattr(error, "colno", 1)
            problems.append(RowProblem(number=number, code="not_json", what=str(column)))
    if not entries:
        raise DataError(
            f"{name} begins like JSON, but no line of it can be read as such; see line "
            f"{problems[0].number}, character {problems[0].what}",
            code="data-not-json",
            name=name,
            line=problems[0].number,
            character=problems[0].what,
        )
    return _table_of(iter(entries), name, problems)


def _table_of(
    entries: Iterator[tuple[int, Any]], name: str, problems: Sequence[RowProblem]
) -> RecordTable:
    columns: dict[str, None] = {}
    kept: list[tuple[int, dict[str, Any]]] = []
    broken = list(problems)
    for number, entry in entries:
        if not isinstance(entry, dict):
            broken.append(RowProblem(number=number, code="no_object", what=type(entry).__name__))
            continue
        columns.update(dict.fromkeys(entry))
        kept.append((number, entry))
    if not kept:
        raise _no_rows(name)
    names = _name_columns(list(columns))
    return RecordTable(
        name=name,
        columns=names,
        rows=tuple(tuple(entry.get(column) for column in columns) for _, entry in kept),
        numbers=tuple(number for number, _ in kept),
        problems=tuple(sorted(broken, key=lambda p: p.number)),
    )


# -------------------------------------------------------------------------------------- delimited
def _read_delimited(text: str, name: str, quotes: Quotes) -> RecordTable:
    first = text.split("\n", 1)[0]
    delimiter = max(("\t", ",", ";"), key=first.count)
    as_text = quotes == "text" or (quotes == "auto" and delimiter == "\t")
    reader = csv.reader(
        io.StringIO(text, newline=""),
        delimiter=delimiter,
        quoting=csv.QUOTE_NONE if as_text else csv.QUOTE_MINIMAL,
    )
    cells: list[tuple[int, list[str]]] = []
    begun = 1
    try:
        for row in reader:
            if row:
                cells.append((begun, row))
            begun = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{name} cannot be read as a table: {error} in line {begun}; see to its quotes there",
            code="data-not-table",
            name=name,
            line=begun,
            problem=str(error),
        ) from None
    return _table_of_cells(cells, name)


def _table_of_cells(cells: list[tuple[int, list[str]]], name: str) -> RecordTable:
    if not cells:
        raise _no_rows(name)
    head = [cell.strip() for cell in cells[0][1]]
    has_head = any(cell.lower() in KNOWN_COLUMNS for cell in head)
    body = cells[1:] if has_head else cells
    width = len(head)
    if not body:
        raise _no_rows(name)
    rows, numbers, problems = [], [], []
    for number, row in body:
        if len(row) != width:
            problems.append(RowProblem(number=number, code="width", what=f"{len(row)} / {width}"))
            continue
        rows.append(tuple(row))
        numbers.append(number)
    return RecordTable(
        name=name,
        columns=_name_columns(head if has_head else [""] * width),
        rows=tuple(rows),
        numbers=tuple(numbers),
        problems=tuple(problems),
    )


def _name_columns(found: Sequence[str]) -> tuple[str, ...]:
    """Unlike names: an empty one is called by its place, and so is one that was there already."""
    names: list[str] = []
    for place, column in enumerate(found, start=1):
        bare = str(column).strip()
        names.append(bare if bare and bare not in names else f"column {place}")
    return tuple(names)


# ---------------------------------------------------------------------------------------- Parquet
def _read_parquet(source: Path | bytes, name: str, max_bytes: int) -> RecordTable:
    from pyarrow import parquet

    content = source if isinstance(source, bytes) else read_bytes(source, max_bytes, name)
    check_size(len(content), max_bytes, name)
    try:
        file = parquet.ParquetFile(io.BytesIO(content))
        groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
        unpacked = sum(group.total_byte_size for group in groups)
        check_size(unpacked, MOST_PACKED * max_bytes, name)
        table = file.read()
    except DataError:
        raise
    except Exception as error:  # pyarrow's errors have no base of their own
        raise DataError(
            f"{name} is a damaged Parquet file ({error}); save it again",
            code="data-not-table",
            name=name,
            line=0,
            problem=str(error),
        ) from None
    return _table_of(enumerate(table.to_pylist(), start=1), name, ())


def _no_rows(name: str) -> DataError:
    return DataError(
        f"{name} has no rows; choose a file with a heading and at least one row under it",
        code="data-no-rows",
        name=name,
    )
