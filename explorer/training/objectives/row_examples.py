"""Rows of unequal length as batches.

    rows     0 1 2 3 4 e        inputs  0 1 2 3 4     targets  1 2 3 4  e
             5 6 e                      5 6 p p p              6 e -100 -100 -100

A batch is filled up on the right to its longest row. A target is ignored where it is padding or no
part of the answer. Which targets are padding is known by position: the end token, which many models
use as padding too, stays to be learned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from explorer.datasets.examples import Example, example_from_json
from explorer.errors import JobError
from explorer.training.answer_rows import AnswerRow, RowWriter
from explorer.training.objectives.objective import IGNORED, Batch
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder, TuningPart
from explorer.training.tuning_config import TuningConfig

if TYPE_CHECKING:
    from models.tokenizers import Tokenizer


def collate_rows(rows: Sequence[AnswerRow], pad_id: int, *, train_on_all: bool = False) -> Batch:
    """Put rows together.

    Args:
        rows: At least one.
        pad_id: Fills them up.
        train_on_all: Whether the question is learned, too.
    """
    longest = max(len(row.ids) for row in rows) - 1
    ids = torch.full((len(rows), longest), pad_id)
    targets = torch.full((len(rows), longest), IGNORED)
    valid = torch.zeros(len(rows), longest, dtype=torch.bool)
    for place, row in enumerate(rows):
        n = len(row.ids) - 1
        tokens = torch.tensor(row.ids)
        ids[place, :n] = tokens[:-1]
        valid[place, :n] = True
        learned = torch.tensor(row.learned[1:]) | train_on_all
        targets[place, :n] = torch.where(learned, tokens[1:], IGNORED)
    return Batch(ids, targets, valid)


@dataclass(frozen=True)
class RowExamples:
    """Rows as examples.

    Args:
        rows: Each with what is learned of it.
        pad_id: Fills batches up.
        train_on_all: Whether questions are learned, too.
    """

    rows: tuple[AnswerRow, ...]
    pad_id: int
    train_on_all: bool = False

    @property
    def n_examples(self) -> int:
        """Rows."""
        return len(self.rows)

    @property
    def n_tokens(self) -> int:
        """Tokens of all rows, without padding."""
        return sum(len(row.ids) for row in self.rows)

    def batch(self, chosen: np.ndarray | Sequence[int]) -> Batch:
        """Put rows together."""
        rows = [self.rows[int(i)] for i in chosen]
        return collate_rows(rows, self.pad_id, train_on_all=self.train_on_all)


def read_part(run: RunFolder, part: TuningPart) -> tuple[Example, ...]:
    """Examples of one part of a run.

    Raises:
        JobError: The file is missing or damaged.
    """
    path = run.examples_file(part)
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        return tuple(example_from_json(line) for line in lines if line)
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise JobError(
            f"{path.name} of run {run.id} cannot be read ({error}); start a new run",
            code="run-file",
            run=run.id,
            file=path.name,
            problem=str(error),
        ) from None


def get_tuning(config: RunConfig) -> TuningConfig:
    """What the run tunes.

    Raises:
        JobError: The configuration says nothing of it.
    """
    if config.tuning is None:
        raise JobError(
            f"objective={config.objective!r} needs the settings of a fine-tuning; start the run "
            "from the Fine-tune tab",
            code="run-config",
            run="",
            problem="tuning is missing",
        )
    return config.tuning


def make_writer(run: RunFolder, tuning: TuningConfig) -> tuple[RowWriter, Tokenizer]:
    """What writes the rows of a run, and its tokenizer.

    Raises:
        TokenizerError: Its files are damaged.
        ConfigError: The template does not go with the tokenizer.
    """
    from models.tokenizers import load_chat_template, load_tokenizer

    tokenizer = load_tokenizer(run.tokenizer_folder)
    chat = load_chat_template(run.tokenizer_folder, tokenizer)
    return RowWriter(tokenizer, tuning.template, chat, tuning.row_limit), tokenizer


def pad_of(tokenizer: Tokenizer) -> int:
    """The token that fills batches up; which one makes no difference, as nothing reads it."""
    return next(i for i in (tokenizer.pad_id, tokenizer.eos_id, 0) if i is not None)


def write_rows(
    examples: Sequence[Example], write: Callable[[Example], AnswerRow]
) -> tuple[AnswerRow, ...]:
    """Each example as a row."""
    return tuple(write(example) for example in examples)
