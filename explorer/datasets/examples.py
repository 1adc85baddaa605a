"""From rows to examples: which columns mean what, and which rows cannot be used.

    columns                              kind
    label, text                          classification
    instruction, input, output           instruction
    messages                             instruction   (a chat; the last answer is learned)
    prompt, chosen, rejected             preference    (texts or messages)
    instruction, input, chosen, rejected preference

A row that cannot be used is left out and told by its number and what is wrong with it: an answer
that is an object, no text at all, a rejected answer equal to the chosen one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from explorer.datasets.records import RecordTable, RowProblem
from explorer.errors import DataError

Kind = Literal["classification", "instruction", "preference"]
KINDS: tuple[Kind, ...] = ("classification", "instruction", "preference")
PARTS = ("training", "validation", "test")
SIDES = ("chosen", "rejected")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "label": ("label", "category", "class", "labels", "v1", "target", "sentiment"),
    "text": ("text", "sms", "message", "sentence", "review", "v2", "content"),
    "instruction": ("instruction", "question", "query", "prompt"),
    "input": ("input", "context"),
    "output": ("output", "response", "answer", "completion", "target"),
    "messages": ("messages", "conversations", "conversation"),
    "prompt": ("prompt", "question", "instruction"),
    "chosen": ("chosen",),
    "rejected": ("rejected",),
    "split": ("split", "part"),
}
# Roles that each kind needs, and those that it may have besides.
ROLES: Mapping[Kind, tuple[str, ...]] = {
    "classification": ("text", "label"),
    "instruction": ("instruction", "output"),
    "preference": ("prompt", "chosen", "rejected"),
}
MORE_ROLES: Mapping[Kind, tuple[str, ...]] = {
    "classification": ("split",),
    "instruction": ("input", "messages", "split"),
    "preference": ("input", "split"),
}
_PART_NAMES: Mapping[str, str] = {
    **{name: name for name in PARTS},
    "train": "training",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
}


@dataclass(frozen=True, kw_only=True)
class ColumnMapping:
    """Which column plays which role.

    Args:
        kind: What the rows are examples of.
        columns: Role -> name of the column.
    """

    kind: Kind
    columns: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """What is asked.

    Args:
        instruction: The task, or the last message of the user.
        input: What the task is about; may be empty.
        earlier: Messages before it: (role, text).
    """

    instruction: str
    input: str = ""
    earlier: tuple[tuple[str, str], ...] = ()

    @property
    def joined(self) -> str:
        """Task and what it is about, as one text."""
        return "\n".join(filter(None, (self.instruction, self.input)))


@dataclass(frozen=True, kw_only=True)
class Example:
    """One example of any kind; what its kind has not is empty.

    Args:
        row: Its number in the file.
        text: Of a classification.
        label: Of a classification.
        prompt: What is asked, of the other kinds.
        answer: What is to be answered; of a preference, the better answer.
        rejected: The worse answer of a preference.
        part: The part of the data that the file itself puts it into, or empty.
    """

    row: int
    text: str = ""
    label: str = ""
    prompt: Prompt = Prompt(instruction="")
    answer: str = ""
    rejected: str = ""
    part: str = ""

    @property
    def key(self) -> str:
        """What two examples have in common that are the same question."""
        shown = self.text or f"{self.prompt.instruction}\n{self.prompt.input}"
        return " ".join(shown.split()).casefold()


@dataclass(frozen=True, kw_only=True)
class ExampleSet:
    """The examples of a data set.

    Args:
        name: Of the data set.
        kind: Of all of them.
        examples: Those that can be used, in the order of the file.
        problems: What was left out, and why.
    """

    name: str
    kind: Kind
    examples: tuple[Example, ...]
    problems: tuple[RowProblem, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The classes, in alphabetical order."""
        return tuple(sorted({example.label for example in self.examples if example.label}))


def guess_mapping(table: RecordTable) -> ColumnMapping | None:
    """Tell what a table is by the names of its columns; None where they say nothing.

    One answer of a pair without the other is a pair still: what is missing is told when it is read.
    A table without a heading and with two columns, of which the first repeats few short values, is
    one of labels and texts.
    """
    found = {role: name for role in _NAMES if (name := _find_column(table, role))}
    if {"chosen", "rejected"} <= found.keys() and {"prompt"} & found.keys():
        return _mapping("preference", found)
    if "messages" in found or {"instruction", "output"} <= found.keys():
        return _mapping("instruction", found)
    if {"label", "text"} <= found.keys():
        return _mapping("classification", found)
    if found.keys() & set(SIDES):
        return _mapping("preference", found)
    if len(table.columns) == 2 and _repeats(table.column(table.columns[0])):
        return ColumnMapping(
            kind="classification",
            columns={"label": table.columns[0], "text": table.columns[1]},
        )
    return None


def _find_column(table: RecordTable, role: str) -> str | None:
    lower = {column.lower(): column for column in table.columns}
    return next((lower[name] for name in _NAMES[role] if name in lower), None)


def _repeats(values: list[Any]) -> bool:
    different = {str(value) for value in values}
    return len(different) <= 20 and 2 * len(different) <= max(4, len(values))


def _mapping(kind: Kind, found: Mapping[str, str]) -> ColumnMapping:
    roles = (*ROLES[kind], *MORE_ROLES[kind])
    return ColumnMapping(kind=kind, columns={role: found[role] for role in roles if role in found})


def read_examples(table: RecordTable, mapping: ColumnMapping) -> ExampleSet:
    """Make the examples of a table.

    Args:
        table: The rows.
        mapping: Which column plays which role.

    Raises:
        DataError: A role has no column, or no row can be used.
    """
    _check_roles(table, mapping)
    read = _READERS[mapping.kind]
    examples: list[Example] = []
    problems = list(table.problems)
    for number, row in zip(table.numbers, table.rows, strict=True):
        values = dict(zip(table.columns, row, strict=True))
        chosen = {role: values.get(column) for role, column in mapping.columns.items()}
        try:
            examples.append(read(number, chosen))
        except _Unusable as problem:
            problems.append(RowProblem(number=number, code=problem.code, what=problem.what))
    problems.sort(key=lambda p: p.number)
    if not examples:
        first = problems[0]
        raise DataError(
            f"no row of {table.name} can be used; row {first.number}: {first}",
            code="data-no-examples",
            name=table.name,
            row=first.number,
            problem=first,
        )
    return ExampleSet(
        name=table.name,
        kind=mapping.kind,
        examples=tuple(examples),
        problems=tuple(problems),
    )


class _Unusable(Exception):
    def __init__(self, code: str, what: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.what = what


def _check_roles(table: RecordTable, mapping: ColumnMapping) -> None:
    needed = ROLES[mapping.kind]
    if mapping.kind == "instruction" and "messages" in mapping.columns:
        needed = ()
    for role in needed:
        column = mapping.columns.get(role, "")
        if column not in table.columns:
            known = ", ".join(table.columns)
            if role in SIDES:
                raise DataError(
                    f"{table.name} has no column {role}: pairs need chosen, the better answer, and "
                    f"rejected, the worse one; its columns are {known}",
                    code="data-no-side",
                    name=table.name,
                    role=role,
                    known=known,
                )
            raise DataError(
                f"{table.name}: no column was chosen for {role}; its columns are {known}",
                code="data-no-role",
                name=table.name,
                role=role,
                known=known,
            )


def _read_labelled(number: int, row: Mapping[str, Any]) -> Example:
    text, label = _text(row, "text"), _label(row)
    return Example(row=number, text=text, label=label, part=_part(row))


def _read_instruction(number: int, row: Mapping[str, Any]) -> Example:
    if isinstance(row.get("messages"), list):
        prompt, answer = _split_messages(row["messages"])
        return Example(row=number, prompt=prompt, answer=answer, part=_part(row))
    prompt = Prompt(instruction=_text(row, "instruction"), input=_optional(row, "input"))
    return Example(row=number, prompt=prompt, answer=_text(row, "output"), part=_part(row))


def _read_preference(number: int, row: Mapping[str, Any]) -> Example:
    prompt = _prompt(row)
    chosen, rejected = _answer(row, "chosen"), _answer(row, "rejected")
    if chosen == rejected:
        raise _Unusable("same_answers")
    return Example(row=number, prompt=prompt, answer=chosen, rejected=rejected, part=_part(row))


_READERS: Mapping[Kind, Callable[[int, Mapping[str, Any]], Example]] = {
    "classification": _read_labelled,
    "instruction": _read_instruction,
    "preference": _read_preference,
}


def _prompt(row: Mapping[str, Any]) -> Prompt:
    asked = row.get("prompt")
    if isinstance(asked, list):
        turns = _messages(asked)
        if turns[-1][0] == "assistant":
            raise _Unusable("no_question")
        return Prompt(instruction=turns[-1][1], earlier=tuple(turns[:-1]))
    return Prompt(instruction=_text(row, "prompt"), input=_optional(row, "input"))


def _answer(row: Mapping[str, Any], role: str) -> str:
    value = row.get(role)
    if isinstance(value, list):
        turns = _messages(value)
        if turns[-1][0] != "assistant":
            raise _Unusable("no_answer", role)
        return turns[-1][1]
    return _text(row, role)


def _split_messages(messages: list[Any]) -> tuple[Prompt, str]:
    turns = _messages(messages)
    if len(turns) < 2 or turns[-1][0] != "assistant":
        raise _Unusable("no_answer", "messages")
    asked, answer = turns[-2], turns[-1]
    return Prompt(instruction=asked[1], earlier=tuple(turns[:-2])), answer[1]


def _messages(messages: list[Any]) -> list[tuple[str, str]]:
    """(role, text) of each; the names of ShareGPT's files are known too."""
    roles = {"human": "user", "gpt": "assistant"}
    turns = []
    for message in messages:
        if not isinstance(message, dict):
            raise _Unusable("not_messages")
        role = message.get("role", message.get("from"))
        text = message.get("content", message.get("value"))
        if not isinstance(role, str) or not isinstance(text, str):
            raise _Unusable("not_messages")
        turns.append((roles.get(role, role), text))
    if not turns:
        raise _Unusable("not_messages")
    return turns


def _text(row: Mapping[str, Any], role: str) -> str:
    value = row.get(role)
    if value is None:
        raise _Unusable("missing", role)
    if isinstance(value, dict | list):
        raise _Unusable("not_text", role)
    text = str(value)
    if not text.strip():
        raise _Unusable("empty", role)
    return text


def _optional(row: Mapping[str, Any], role: str) -> str:
    value = row.get(role)
    if isinstance(value, dict | list):
        raise _Unusable("not_text", role)
    return "" if value is None else str(value)


def _label(row: Mapping[str, Any]) -> str:
    """Labels are texts: 0, "0" and 0.0 are one class."""
    value = row.get("label")
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return _text({"label": value}, "label").strip()


def _part(row: Mapping[str, Any]) -> str:
    return _PART_NAMES.get(str(row.get("split", "")).strip().lower(), "")


def example_to_json(example: Example) -> str:
    """An example as one line of JSON."""
    values: dict[str, Any] = {
        "row": example.row,
        "text": example.text,
        "label": example.label,
        "instruction": example.prompt.instruction,
        "input": example.prompt.input,
        "earlier": [list(turn) for turn in example.prompt.earlier],
        "answer": example.answer,
        "rejected": example.rejected,
    }
    return json.dumps({k: v for k, v in values.items() if v}, ensure_ascii=False)


def example_from_json(line: str) -> Example:
    """The example that `example_to_json` wrote.

    Raises:
        ValueError: It is none.
    """
    values = json.loads(line)
    return Example(
        row=int(values.get("row", 0)),
        text=values.get("text", ""),
        label=values.get("label", ""),
        prompt=Prompt(
            instruction=values.get("instruction", ""),
            input=values.get("input", ""),
            earlier=tuple((role, text) for role, text in values.get("earlier", ())),
        ),
        answer=values.get("answer", ""),
        rejected=values.get("rejected", ""),
    )
