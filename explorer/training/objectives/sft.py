"""Supervised fine-tuning: foresee the answer, given the question.

    loss = - mean over the answer's tokens of log p(token | question, answer so far)       in nats

Ouyang et al. 2022 (InstructGPT, arXiv 2203.02155), section 3.5. The end token belongs to the
answer: a model that never learns it never stops. With `train_on` everything, the question counts,
too, as it did in pretraining.
"""

from __future__ import annotations

from explorer.training.answer_rows import pack_rows
from explorer.training.objectives.objective import Objective, TrainingData
from explorer.training.objectives.pretrain import compute_loss_sum
from explorer.training.objectives.row_examples import (
    RowExamples,
    get_tuning,
    make_writer,
    pad_of,
    read_part,
    write_rows,
)
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder, TuningPart


def open_data(run: RunFolder, config: RunConfig) -> TrainingData:
    """Read and cut both parts.

    Raises:
        JobError: A file is missing or damaged.
        DataError: A row cannot be written in the template.
    """
    tuning = get_tuning(config)
    writer, tokenizer = make_writer(run, tuning)

    def read(part: TuningPart) -> RowExamples:
        examples = read_part(run, part)
        rows = write_rows(examples, lambda e: writer.write_row(e.prompt, e.answer, e.row))
        if tuning.packing and part == "training":
            rows = tuple(pack_rows(rows, tuning.row_limit))
        return RowExamples(rows, pad_of(tokenizer), tuning.train_on == "everything")

    return TrainingData(read("training"), read("validation"))


OBJECTIVE = Objective("sft", open_data, compute_loss_sum)
