"""Preferences: make the better of two answers likelier than it was, and the worse one less likely.

Five losses on one table: `explorer/training/preference_losses.py`. What the reference (the model
before the first step) says of each answer never changes, so it is computed once, when the run
begins, and kept in the run's folder; the pass then needs one model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from explorer.training.answer_rows import AnswerRow
from explorer.training.objectives.objective import (
    IGNORED,
    Batch,
    LossFunction,
    Objective,
    Scores,
    TrainingData,
)
from explorer.training.objectives.row_examples import (
    collate_rows,
    get_tuning,
    make_writer,
    pad_of,
    read_part,
    write_rows,
)
from explorer.training.preference_losses import PREFERENCE_LOSSES, AnswerLogProbs
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder, TuningPart
from explorer.training.tuning_config import TuningConfig
from models.loading import load_model
from models.trace import Trace

if TYPE_CHECKING:
    from models.decoder import Decoder

REFERENCE_BATCH = 8
# Texts of a pair: both answers, and the better answer of the question before it (KTO's drift).
TEXTS = ("chosen", "rejected", "other")


@dataclass(frozen=True)
class PairExamples:
    """Pairs of answers.

    Args:
        chosen: Questions with the better answers.
        rejected: The same questions with the worse answers.
        other: The same questions with the better answer of the question before.
        reference: Summed log-probability of each under the reference, shape (pairs, 3).
        pad_id: Fills batches up.
    """

    chosen: tuple[AnswerRow, ...]
    rejected: tuple[AnswerRow, ...]
    other: tuple[AnswerRow, ...]
    reference: Tensor
    pad_id: int

    @property
    def n_examples(self) -> int:
        """Pairs."""
        return len(self.chosen)

    @property
    def n_tokens(self) -> int:
        """Tokens of both answers with their questions."""
        return sum(len(row.ids) for row in (*self.chosen, *self.rejected))

    def batch(self, chosen: np.ndarray | Sequence[int]) -> Batch:
        """Put pairs together."""
        places = [int(i) for i in chosen]
        texts = {
            name: collate_rows([getattr(self, name)[i] for i in places], self.pad_id)
            for name in TEXTS
        }
        first = texts.pop("chosen")
        numbers = {
            f"reference_{name}": self.reference[places, place] for place, name in enumerate(TEXTS)
        }
        return Batch(first.ids, first.targets, first.valid, numbers, texts, "rows")


def open_data(run: RunFolder, config: RunConfig) -> TrainingData:
    """Read and cut both parts, and ask the reference once.

    Raises:
        JobError: A file is missing or damaged.
        DataError: A row cannot be written in the template.
    """
    tuning = get_tuning(config)
    writer, tokenizer = make_writer(run, tuning)

    def read(part: TuningPart) -> PairExamples:
        examples = read_part(run, part)
        before = (examples[-1], *examples[:-1])
        rows = {
            "chosen": write_rows(examples, lambda e: writer.write_row(e.prompt, e.answer, e.row)),
            "rejected": write_rows(
                examples, lambda e: writer.write_row(e.prompt, e.rejected, e.row)
            ),
            "other": tuple(
                writer.write_row(e.prompt, b.answer, e.row)
                for e, b in zip(examples, before, strict=True)
            ),
        }
        empty = PairExamples(
            **rows, reference=torch.zeros(len(examples), 3), pad_id=pad_of(tokenizer)
        )
        reference = _read_reference(run, part, empty)
        return PairExamples(**rows, reference=reference, pad_id=empty.pad_id)

    return TrainingData(read("training"), read("validation"))


def _read_reference(run: RunFolder, part: TuningPart, pairs: PairExamples) -> Tensor:
    """What the reference says, from the disk if it was asked before."""
    path = run.reference_file(part)
    if not path.exists():
        model = load_model(run.initial_folder).model
        path.parent.mkdir(exist_ok=True)
        np.save(path, ask_reference(model, pairs).numpy())
    return torch.from_numpy(np.load(path, allow_pickle=False))


def ask_reference(model: Decoder, pairs: PairExamples) -> Tensor:
    """Summed log-probabilities of all texts, (pairs, 3), in nats.

    Args:
        model: The reference.
        pairs: The texts; their own `reference` is not read.
    """
    found = []
    with torch.no_grad():
        for start in range(0, pairs.n_examples, REFERENCE_BATCH):
            end = min(start + REFERENCE_BATCH, pairs.n_examples)
            batch = pairs.batch(range(start, end))
            texts = (batch, *(batch.more[name] for name in TEXTS[1:]))
            found.append(torch.stack([score_answers(model, text)[0] for text in texts], dim=1))
    return torch.cat(found)


def score_answers(
    model: nn.Module,
    batch: Batch,
    generator: torch.Generator | None = None,
    recompute: bool = False,
    trace: Trace | None = None,
) -> tuple[Tensor, Tensor]:
    """Log-probability of each answer, and of the whole text.

    Args:
        model: Any decoder.
        batch: Targets mark the answers.
        generator: Of dropout.
        recompute: As for the decoder.
        trace: Looks into the pass.

    Returns:
        Sums over each answer (B,), and the mean over all tokens of all texts (a scalar), in nats.
    """
    logits = model(batch.ids, batch.valid, trace=trace, generator=generator, recompute=recompute)
    following = torch.where(batch.targets == IGNORED, _next_ids(batch), batch.targets)
    logs = -functional.cross_entropy(
        logits.float().transpose(1, 2), following, ignore_index=IGNORED, reduction="none"
    )
    answers = (logs * (batch.targets != IGNORED)).sum(dim=1)
    return answers, logs.sum() / (following != IGNORED).sum()


def _next_ids(batch: Batch) -> Tensor:
    """The token after each, also in the question; IGNORED at the end of a row and in padding."""
    following = torch.full_like(batch.ids, IGNORED)
    following[:, :-1] = batch.ids[:, 1:]
    if batch.valid is not None:
        both = torch.zeros_like(batch.valid)
        both[:, :-1] = batch.valid[:, 1:]
        following = torch.where(both, following, IGNORED)
    return following


def measure_pair(
    model: nn.Module,
    batch: Batch,
    *,
    needs_drift: bool,
    generator: torch.Generator | None = None,
    recompute: bool = False,
    trace: Trace | None = None,
) -> AnswerLogProbs:
    """Everything that a loss of preferences may ask for.

    Args:
        model: The model that learns.
        batch: Pairs.
        needs_drift: Whether answers of other questions are looked at, too.
        generator: Of dropout.
        recompute: As for the decoder.
        trace: Looks into the pass of the better answers.
    """
    rejected_batch = batch.more["rejected"]
    chosen, whole = score_answers(model, batch, generator, recompute, trace)
    rejected, _ = score_answers(model, rejected_batch, generator, recompute)
    drift = chosen.new_zeros(())
    if needs_drift:
        with torch.no_grad():
            other, _ = score_answers(model, batch.more["other"])
            drift = (other - batch.numbers["reference_other"]).mean().clamp(min=0)
    return AnswerLogProbs(
        chosen=chosen,
        rejected=rejected,
        n_chosen=_count_answer(batch),
        n_rejected=_count_answer(rejected_batch),
        reference_chosen=batch.numbers["reference_chosen"],
        reference_rejected=batch.numbers["reference_rejected"],
        whole_text=whole,
        drift=drift,
    )


def _count_answer(batch: Batch) -> Tensor:
    return (batch.targets != IGNORED).sum(dim=1)


def make_loss(tuning: TuningConfig) -> LossFunction:
    """The loss of a run, added up over pairs."""
    compute: Callable[[AnswerLogProbs, TuningConfig], Tensor] = PREFERENCE_LOSSES[tuning.loss]

    def compute_loss_sum(
        model: nn.Module,
        batch: Batch,
        generator: torch.Generator | None,
        recompute: bool,
        trace: Trace | None = None,
    ) -> Tensor:
        logs = measure_pair(
            model,
            batch,
            needs_drift=tuning.loss == "kto",
            generator=generator,
            recompute=recompute,
            trace=trace,
        )
        return compute(logs, tuning).sum()

    return compute_loss_sum


def make_scores(tuning: TuningConfig) -> Scores:
    """What is measured of each pair on the held-out part."""
    is_mean = tuning.reduction == "mean"

    def compute_scores(model: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        logs = measure_pair(model, batch, needs_drift=True)
        chosen, rejected = logs.gains(mean=is_mean)
        # the course leaves beta out of the rewards, TRL multiplies by it
        beta = 1.0 if is_mean else tuning.beta
        n_chosen = logs.n_chosen if is_mean else 1
        n_rejected = logs.n_rejected if is_mean else 1
        return {
            "accuracy": (chosen > rejected).float(),
            "preferred": (logs.chosen > logs.rejected).float(),
            "margin": beta * (chosen - rejected),
            "policy_chosen": logs.chosen / n_chosen,
            "policy_rejected": logs.rejected / n_rejected,
            "reference_chosen": logs.reference_chosen / n_chosen,
            "reference_rejected": logs.reference_rejected / n_rejected,
            "drift": logs.drift.expand_as(chosen),
        }

    return compute_scores


def for_run(config: RunConfig) -> tuple[LossFunction, Scores]:
    """Loss and scores as the run's settings want them."""
    tuning = get_tuning(config)
    return make_loss(tuning), make_scores(tuning)


_USUAL = TuningConfig(base="")
OBJECTIVE = Objective("preference", open_data, make_loss(_USUAL), make_scores(_USUAL), for_run)
