"""The data set of a fine-tuning as the page shows it: read, mapped, checked, divided.

Everything follows from `DataSettings`: whoever asks twice gets the same parts. The newest results
are kept, because every control of the page asks again.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from explorer.datasets.examples import (
    KINDS,
    MORE_ROLES,
    ROLES,
    ColumnMapping,
    Example,
    ExampleSet,
    Kind,
    guess_mapping,
    read_examples,
)
from explorer.datasets.records import RecordTable, read_records
from explorer.datasets.splits import (
    Duplicate,
    Parts,
    SplitConfig,
    count_classes,
    find_duplicates,
    split_examples,
)
from explorer.datasets.word_baseline import score_baseline
from explorer.errors import ConfigError, DataError

FOLDER = Path(__file__).parent.parent / "assets" / "samples"
SAMPLES = ("messages", "instructions", "preferences")
UPLOADED, TYPED, HUB = "upload", "typed", "hub"
OBJECTIVE_OF: Mapping[Kind, str] = {
    "classification": "classification",
    "instruction": "sft",
    "preference": "preference",
}
# Roles in the order of the three controls for columns.
COLUMN_ROLES: Mapping[Kind, tuple[str, ...]] = {
    "classification": ("text", "label"),
    "instruction": ("instruction", "output", "input"),
    "preference": ("prompt", "chosen", "rejected"),
}
MOST_DATA_BYTES = 100 * 10**6
_KEPT = 8
# Baselines of more rows than this take seconds; what is counted then is the first of them.
MOST_BASELINE_ROWS = 3_000


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """What the form of the data says. The order of the fields is that of the form and of its API.

    Args:
        data: Name of a sample, `upload`, `typed` or `hub`.
        typed: The rows themselves, where they are typed: CSV, TSV, JSON or JSON lines.
        hub: Id of a data set on the Hugging Face Hub, where that is chosen.
        kind: What the rows are; `auto` tells by the names of the columns.
        first: Column of the text, instruction or prompt; empty takes the one that is guessed.
        second: Column of the label, output or chosen answer.
        third: Column of the input or the rejected answer.
        quotes: Whether quotes hold a cell together; `auto` goes by the kind of file.
        training: Share that is learned from.
        validation: Share that is looked at meanwhile; the rest is for the test.
        split_seed: Of the shuffle.
        shuffle: Whether rows are shuffled before they are divided.
        balance: Whether every class keeps only as many rows as the smallest.
    """

    data: str = field(default="messages", metadata={"text": True})
    typed: str = field(default="", metadata={"text": True})
    hub: str = field(default="", metadata={"text": True})
    kind: str = field(default="auto", metadata={"choices": ("auto", *KINDS)})
    first: str = field(default="", metadata={"text": True})
    second: str = field(default="", metadata={"text": True})
    third: str = field(default="", metadata={"text": True})
    quotes: str = field(default="auto", metadata={"choices": ("auto", "text", "csv")})
    training: float = field(default=0.7, metadata={"least": 0.05, "most": 0.95, "step": 0.05})
    validation: float = field(default=0.1, metadata={"least": 0.0, "most": 0.5, "step": 0.05})
    split_seed: int = field(default=123, metadata={"least": 0, "most": 2**31 - 1, "step": 1})
    shuffle: bool = True
    balance: bool = False


@dataclass(frozen=True, kw_only=True)
class DataView:
    """A data set, for drawing.

    Args:
        name: Of the file or sample.
        columns: Of the file.
        mapping: Which column plays which role.
        examples: Those that can be used, and the rows that cannot.
        parts: The three parts.
        classes: Part -> class -> how many.
        duplicates: Questions of training that stand in another part, too.
        baseline: Share of the test part that counting words gets right.
        n_rows: Rows of the file.
    """

    name: str
    columns: tuple[str, ...]
    mapping: ColumnMapping
    examples: ExampleSet
    parts: Parts
    classes: Mapping[str, Mapping[str, int]]
    duplicates: tuple[Duplicate, ...]
    baseline: float
    n_rows: int

    @property
    def objective(self) -> str:
        """The objective that learns from such rows."""
        return OBJECTIVE_OF[self.examples.kind]


class DataSets:
    """Reads data sets, and keeps the newest. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[object, ...], DataView] = OrderedDict()

    def view(self, settings: DataSettings, upload: str | None = None) -> DataView:
        """Read, map, check and divide a data set.

        Args:
            settings: What the form says.
            upload: Path of the uploaded file, where that is asked for.

        Raises:
            DataError: The file or the mapping cannot be used.
            ConfigError: There is no such sample, or nothing was uploaded.
        """
        key = (settings, upload, _stamp(upload))
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        found = _view(settings, upload)
        with self._lock:
            self._kept[key] = found
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return found


def _stamp(upload: str | None) -> float:
    try:
        return Path(upload).stat().st_mtime if upload else 0.0
    except OSError:
        return 0.0


def _view(settings: DataSettings, upload: str | None) -> DataView:
    table = read_table(settings, upload)
    mapping = choose_mapping(settings, table)
    examples = read_examples(table, mapping)
    parts = split_examples(
        examples.examples,
        SplitConfig(
            training=settings.training,
            validation=settings.validation,
            seed=settings.split_seed if settings.shuffle else None,
            balance=settings.balance and mapping.kind == "classification",
        ),
        left_out=examples.problems,
    )
    few = {name: part[:MOST_BASELINE_ROWS] for name, part in parts.items().items()}
    return DataView(
        name=table.name,
        columns=table.columns,
        mapping=mapping,
        examples=examples,
        parts=parts,
        classes={name: count_classes(part) for name, part in parts.items().items()},
        duplicates=find_duplicates(parts),
        baseline=score_baseline(mapping.kind, few["training"], few["test"]),
        n_rows=len(table.rows) + len(table.problems),
    )


def read_table(settings: DataSettings, upload: str | None) -> RecordTable:
    """The rows that the form names.

    Raises:
        DataError: The file cannot be used.
        ConfigError: There is no such sample, or nothing was uploaded or typed.
    """
    quotes: Any = settings.quotes
    if settings.data in SAMPLES:
        name = f"{settings.data}.jsonl"
        return read_records(FOLDER / name, name=name, max_bytes=MOST_DATA_BYTES)
    if settings.data == TYPED:
        if not settings.typed.strip():
            raise ConfigError("no rows were typed yet; type some", code="tune-nothing-typed")
        content = settings.typed.encode("utf-8", "replace")
        return read_records(content, name="rows", max_bytes=MOST_DATA_BYTES, quotes=quotes)
    if settings.data == HUB:
        return _read_hub(settings)
    if settings.data == UPLOADED and upload:
        path = Path(upload)
        return read_records(path, name=path.name, max_bytes=MOST_DATA_BYTES, quotes=quotes)
    if settings.data == UPLOADED:
        raise ConfigError(
            "no file was uploaded yet; choose one, or another data set", code="run-no-upload"
        )
    known = ", ".join((*SAMPLES, UPLOADED, TYPED, HUB))
    raise ConfigError(
        f"data={settings.data[:80]!r} is unknown; choose {known}",
        code="run-choice",
        name="data",
        found=settings.data[:80],
        known=known,
    )


def _read_hub(settings: DataSettings) -> RecordTable:
    from models.hub_data import fetch_data_file

    if not settings.hub.strip():
        raise ConfigError(
            "no data set was named; write its id, such as owner/name", code="tune-no-hub-id"
        )
    found = fetch_data_file(settings.hub, max_bytes=MOST_DATA_BYTES)
    quotes: Any = settings.quotes
    return read_records(found.path, name=found.name, max_bytes=MOST_DATA_BYTES, quotes=quotes)


def choose_mapping(settings: DataSettings, table: RecordTable) -> ColumnMapping:
    """Which column plays which role: what was chosen, and for the rest what the names say.

    Raises:
        DataError: Neither says what the rows are.
    """
    guess = guess_mapping(table)
    if settings.kind == "auto":
        if guess is None:
            known = ", ".join(table.columns)
            raise DataError(
                f"the columns of {table.name} ({known}) do not say what the rows are; choose their "
                "kind, and which column is what",
                code="data-kind-unknown",
                name=table.name,
                known=known,
            )
        kind: Kind = guess.kind
    elif settings.kind in KINDS:
        kind = settings.kind
    else:
        raise ConfigError(
            f"kind={settings.kind!r} is unknown; choose {', '.join(KINDS)}",
            code="run-choice",
            name="kind",
            found=settings.kind,
            known=", ".join(KINDS),
        )
    columns = dict(guess.columns) if guess is not None and guess.kind == kind else {}
    chosen = (settings.first, settings.second, settings.third)
    for role, column in zip(COLUMN_ROLES[kind], chosen, strict=False):
        if column and column in table.columns:
            columns[role] = column
    roles = (*ROLES[kind], *MORE_ROLES[kind])
    return ColumnMapping(kind=kind, columns={r: columns[r] for r in roles if r in columns})


def type_out(view: DataView, most_rows: int = 200) -> str:
    """A data set as JSON lines to be edited by hand, at most so many rows of it."""
    return "\n".join(
        _as_line(example, view.examples.kind) for example in view.examples.examples[:most_rows]
    )


def _as_line(example: Example, kind: Kind) -> str:
    values: dict[str, str]
    if kind == "classification":
        values = {"label": example.label, "text": example.text}
    elif kind == "instruction":
        values = {
            "instruction": example.prompt.instruction,
            "input": example.prompt.input,
            "output": example.answer,
        }
    else:
        values = {
            "prompt": example.prompt.joined,
            "chosen": example.answer,
            "rejected": example.rejected,
        }
    if example.part:
        values["split"] = example.part
    return json.dumps(values, ensure_ascii=False)
