"""Multiple choice: which of a few answers a model finds likeliest. Nothing is written or parsed.

    sum        argmax over answers of  sum of log p(token | question, answer so far)
    mean       the same divided by the answer's bytes, so that long answers count no less

Brown et al. 2020 (GPT-3, arXiv 2005.14165), section 2.4; division by bytes as `acc_norm` of the
LM Evaluation Harness has it. A row is a question with its answers and the right one of them: by its
place from 0, its letter from A, or its text.

    {"question": "2 + 2?", "choices": ["3", "4"], "answer": 1}
    question,A,B,C,D,answer
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from explorer.datasets.examples import Example, Prompt
from explorer.datasets.records import RecordTable, RowProblem, read_records
from explorer.errors import ConfigError, DataError

if TYPE_CHECKING:
    from explorer.training.tuning_config import TuningConfig
    from explorer.tuning_scores import Turn
    from models.loading import LoadedModel

SAMPLE = Path(__file__).parent.parent / "assets" / "samples" / "choices.jsonl"
MOST_BYTES = 10**7
MOST_CHOICES = 26
MOST_QUESTIONS = 500
_ASKED = ("question", "prompt", "instruction", "input", "query")
_LISTED = ("choices", "options", "endings")
_RIGHT = ("answer", "label", "correct", "target", "gold")
_LETTER = re.compile(r"(?:choice|option)?[ _]?([a-z]|\d{1,2})", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class ChoiceQuestion:
    """A question with a few answers.

    Args:
        row: Its number in the file.
        question: The question.
        choices: The answers.
        right: Place of the right one, from 0.
    """

    row: int
    question: str
    choices: tuple[str, ...]
    right: int


@dataclass(frozen=True, kw_only=True)
class ChoiceSet:
    """The questions of a file.

    Args:
        name: Of the file.
        questions: Those that can be used.
        problems: Rows that cannot.
    """

    name: str
    questions: tuple[ChoiceQuestion, ...]
    problems: tuple[RowProblem, ...]

    @property
    def chance(self) -> float:
        """Share that a blind guess gets right."""
        return sum(1 / len(q.choices) for q in self.questions) / len(self.questions)


@dataclass(frozen=True, kw_only=True)
class ChoiceScores:
    """What a model found likeliest.

    Args:
        sums: For each question the log-probability of each answer, in nats.
        by_sum: Place of the likeliest.
        by_mean: Place of the likeliest per byte.
        right: Place of the right one.
    """

    sums: tuple[tuple[float, ...], ...]
    by_sum: tuple[int, ...]
    by_mean: tuple[int, ...]
    right: tuple[int, ...]

    def hits(self, *, mean: bool = False) -> list[float]:
        """1 for each question that it got right, else 0."""
        chosen = self.by_mean if mean else self.by_sum
        return [float(a == b) for a, b in zip(chosen, self.right, strict=True)]

    def accuracy(self, *, mean: bool = False) -> float:
        """Share of them."""
        hits = self.hits(mean=mean)
        return sum(hits) / len(hits)


def read_choices(table: RecordTable) -> ChoiceSet:
    """The questions of a table.

    Args:
        table: Rows with a question, its answers (one column with lists, or a column each) and the
            right one.

    Raises:
        DataError: Columns are missing, or no row can be used.
    """
    columns = _find_columns(table)
    questions: list[ChoiceQuestion] = []
    problems = list(table.problems)
    for number, row in zip(table.numbers, table.rows, strict=True):
        values = dict(zip(table.columns, row, strict=True))
        try:
            questions.append(_read_row(number, values, columns))
        except _Unusable as problem:
            problems.append(RowProblem(number=number, code=problem.code, what=problem.what))
    if not questions:
        first = problems[0]
        raise DataError(
            f"no row of {table.name} can be used; row {first.number}: {first}",
            code="data-no-examples",
            name=table.name,
            row=first.number,
            problem=first,
        )
    return ChoiceSet(
        name=table.name,
        questions=tuple(questions[:MOST_QUESTIONS]),
        problems=tuple(sorted(problems, key=lambda p: p.number)),
    )


@dataclass(frozen=True)
class _Columns:
    question: str
    listed: str
    each: tuple[str, ...]
    right: str


class _Unusable(Exception):
    def __init__(self, code: str, what: str = "") -> None:
        super().__init__(code)
        self.code = code
        self.what = what


def _find_columns(table: RecordTable) -> _Columns:
    lower = {column.lower(): column for column in table.columns}
    question, listed, right = (
        next((lower[name] for name in names if name in lower), "")
        for names in (_ASKED, _LISTED, _RIGHT)
    )
    each = tuple(c for c in table.columns if _LETTER.fullmatch(c) and c not in (question, right))
    if not (question and right and (listed or len(each) >= 2)):
        known = ", ".join(table.columns)
        raise DataError(
            f"the columns of {table.name} ({known}) are none of multiple choice; it needs a "
            "question, choices (a list, or columns A, B, ...) and an answer",
            code="choice-columns",
            name=table.name,
            known=known,
        )
    return _Columns(question, listed, each, right)


def _read_row(number: int, values: Mapping[str, Any], columns: _Columns) -> ChoiceQuestion:
    asked = values.get(columns.question)
    if not isinstance(asked, str) or not asked.strip():
        raise _Unusable("empty", columns.question)
    choices = _read_listed(values, columns)
    if not 2 <= len(choices) <= MOST_CHOICES:
        raise _Unusable("choice_count", str(len(choices)))
    if len(set(choices)) < len(choices):
        raise _Unusable("choice_twice")
    right = _find_right(values.get(columns.right), choices)
    return ChoiceQuestion(row=number, question=asked, choices=choices, right=right)


def _read_listed(values: Mapping[str, Any], columns: _Columns) -> tuple[str, ...]:
    if not columns.listed:
        given = [values.get(column) for column in columns.each]
        return tuple(str(text) for text in given if text is not None and str(text).strip())
    found = values.get(columns.listed)
    if isinstance(found, str):  # a cell of CSV
        try:
            found = json.loads(found)
        except ValueError:
            raise _Unusable("choice_list", columns.listed) from None
    if isinstance(found, dict):  # as ARC has it: {"text": [...], "label": [...]}
        found = found.get("text")
    if not isinstance(found, list) or not all(isinstance(c, str | int | float) for c in found):
        raise _Unusable("choice_list", columns.listed)
    return tuple(map(str, found))


def _find_right(said: Any, choices: tuple[str, ...]) -> int:
    """Place of the right answer: said by its text, its letter, or its place from 0."""
    text = "" if said is None else str(said).strip()
    if text in choices and not (text.isdigit() and int(text) < len(choices)):
        return choices.index(text)
    if text.isdigit() and int(text) < len(choices):
        return int(text)
    place = ord(text.upper()) - ord("A") if len(text) == 1 and text.isascii() else -1
    if 0 <= place < len(choices):
        return place
    raise _Unusable("choice_answer", text[:40])


def read_choice_set(source: str, typed: str = "", upload: str | None = None) -> ChoiceSet:
    """The questions that the page names.

    Args:
        source: sample, typed or upload.
        typed: The rows, where they are typed.
        upload: Path of the uploaded file, where that is asked for.

    Raises:
        DataError: They are not multiple choice, or cannot be read.
        ConfigError: There are none yet.
    """
    if source == "sample":
        return read_choices(read_records(SAMPLE, name=SAMPLE.name, max_bytes=MOST_BYTES))
    if source == "upload" and upload:
        path = Path(upload)
        return read_choices(read_records(path, name=path.name, max_bytes=MOST_BYTES))
    if source == "typed" and typed.strip():
        content = typed.encode("utf-8", "replace")
        return read_choices(read_records(content, name="rows", max_bytes=MOST_BYTES))
    raise ConfigError(
        "there are no questions yet; type some, upload a file, or take the sample",
        code="choice-nothing",
    )


def score_choices(
    loaded: LoadedModel,
    questions: Sequence[ChoiceQuestion],
    tuning: TuningConfig,
    *,
    turn: Turn,
) -> ChoiceScores:
    """Let a model choose.

    Args:
        loaded: Any model.
        questions: At least one.
        tuning: Says in which template they are asked.
        turn: Entered for each pass.
    """
    from explorer.tuning_scores import measure_answers

    asked = [
        Example(row=q.row, prompt=Prompt(instruction=q.question))
        for q in questions
        for _ in q.choices
    ]
    answers = [choice for q in questions for choice in q.choices]
    found = iter(measure_answers(loaded, asked, answers, tuning, turn=turn))
    sums = tuple(tuple(next(found)[0] for _ in q.choices) for q in questions)
    per_byte = [
        [total / len(choice.encode()) for total, choice in zip(row, q.choices, strict=True)]
        for row, q in zip(sums, questions, strict=True)
    ]
    return ChoiceScores(
        sums=sums,
        by_sum=tuple(_highest(row) for row in sums),
        by_mean=tuple(_highest(row) for row in per_byte),
        right=tuple(q.right for q in questions),
    )


def _highest(values: Sequence[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
