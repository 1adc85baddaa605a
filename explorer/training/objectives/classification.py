"""Classification: which of k classes a text belongs to.

    loss = - mean over rows of log softmax(score · state)[class]                            in nats

Radford et al. 2018 (GPT-1), section 3.2. The model's own head is replaced by one of k rows, which
reads the state of one token; see `models/classifier.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.datasets.examples import Example
from explorer.errors import DataError
from explorer.training.answer_rows import AnswerRow
from explorer.training.objectives.objective import IGNORED, Batch, Objective, TrainingData
from explorer.training.objectives.row_examples import get_tuning, pad_of, read_part
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder, TuningPart
from models.tokenizers import Tokenizer, load_tokenizer
from models.trace import Trace


@dataclass(frozen=True)
class LabelledExamples:
    """Texts with their classes.

    Args:
        rows: Their tokens.
        classes: Number of each row's class.
        pad_id: Fills batches up.
    """

    rows: tuple[AnswerRow, ...]
    classes: tuple[int, ...]
    pad_id: int

    @property
    def n_examples(self) -> int:
        """Texts."""
        return len(self.rows)

    @property
    def n_tokens(self) -> int:
        """Tokens of all texts, without padding."""
        return sum(len(row.ids) for row in self.rows)

    def batch(self, chosen: np.ndarray | Sequence[int]) -> Batch:
        """Put texts together."""
        places = [int(i) for i in chosen]
        return collate_texts(
            [self.rows[i].ids for i in places], [self.classes[i] for i in places], self.pad_id
        )


def collate_texts(texts: Sequence[Sequence[int]], classes: Sequence[int], pad_id: int) -> Batch:
    """Fill texts up on the right to the longest of them.

    Args:
        texts: Their tokens.
        classes: Number of each one's class.
        pad_id: Fills them up.
    """
    longest = max(map(len, texts))
    ids = torch.full((len(texts), longest), pad_id)
    valid = torch.zeros(len(texts), longest, dtype=torch.bool)
    for place, text in enumerate(texts):
        ids[place, : len(text)] = torch.tensor(text)
        valid[place, : len(text)] = True
    targets = torch.full_like(ids, IGNORED)
    return Batch(ids, targets, valid, numbers={"class": torch.tensor(classes)}, counted="rows")


def encode_text(tokenizer: Tokenizer, text: str, limit: int, row: int = 0) -> AnswerRow:
    """A text as tokens, cut on the right.

    Args:
        tokenizer: Cuts it.
        text: Any text.
        limit: Tokens at most.
        row: Number of the example.

    Raises:
        DataError: It has no tokens.
    """
    ids = tokenizer.encode(text)
    if not ids:
        raise DataError("there is no text; type one", code="text-empty")
    kept = tuple(ids[:limit])
    return AnswerRow(
        ids=kept, learned=(False,) * len(kept), n_cut=max(0, len(ids) - limit), row=row
    )


def open_data(run: RunFolder, config: RunConfig) -> TrainingData:
    """Read and cut both parts.

    Raises:
        JobError: A file is missing or damaged.
        DataError: A label is none of the run's classes.
    """
    tuning = get_tuning(config)
    tokenizer = load_tokenizer(run.tokenizer_folder)
    numbers = {label: number for number, label in enumerate(tuning.labels)}

    def read(part: TuningPart) -> LabelledExamples:
        examples = read_part(run, part)
        return LabelledExamples(
            tuple(encode_text(tokenizer, e.text, tuning.row_limit, e.row) for e in examples),
            tuple(_number_of(example, numbers) for example in examples),
            pad_of(tokenizer),
        )

    return TrainingData(read("training"), read("validation"))


def _number_of(example: Example, numbers: Mapping[str, int]) -> int:
    if example.label not in numbers:
        known = ", ".join(numbers)
        raise DataError(
            f"row {example.row} has the label {example.label!r}, which the run does not know; it "
            f"knows {known}",
            code="data-label-unknown",
            row=example.row,
            label=example.label,
            known=known,
        )
    return numbers[example.label]


def compute_loss_sum(
    model: nn.Module,
    batch: Batch,
    generator: torch.Generator | None,
    recompute: bool,
    trace: Trace | None = None,
) -> Tensor:
    """Cross-entropy of all rows, added up, in nats; see `LossFunction`."""
    logits = model(batch.ids, batch.valid, trace=trace, generator=generator, recompute=recompute)
    return functional.cross_entropy(logits.float(), batch.numbers["class"], reduction="sum")


def compute_scores(model: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
    """Whether each row was put into its class."""
    logits = model(batch.ids, batch.valid)
    return {"accuracy": (logits.argmax(dim=-1) == batch.numbers["class"]).float()}


OBJECTIVE = Objective("classification", open_data, compute_loss_sum, compute_scores)
