"""What a fine-tuning will read and train, before it begins: a batch with its mask, the share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from explorer.datasets.examples import Example
from explorer.tokens import TokenUnit, units_of
from explorer.training.tuning_setup import TuningSetup

if TYPE_CHECKING:
    from explorer.training.answer_rows import AnswerRow
    from models.config import ModelConfig
    from models.tokenizers import ChatTemplate, Tokenizer

Role = Literal["learned", "prompt", "pad"]
PREVIEW_ROWS = 4
MOST_MEASURED = 500  # rows whose tokens are counted; the page asks with every control


@dataclass(frozen=True, kw_only=True)
class PreviewRow:
    """A row of a batch.

    Args:
        row: Number of its example; 0 for several in one row.
        what: text, question, chosen or rejected.
        units: Its text in units.
        roles: What each unit is for.
        n_learned: Tokens that are learned.
        n_cut: Tokens that did not fit.
    """

    row: int
    what: str
    units: tuple[TokenUnit, ...]
    roles: tuple[Role, ...]
    n_learned: int
    n_cut: int


@dataclass(frozen=True, kw_only=True)
class BatchPreview:
    """The first rows of a batch, and what all rows come to.

    Args:
        rows: The first rows, filled up as a batch is.
        lengths: Tokens of each example that was measured.
        n_cut: How many of them are cut on the right.
        n_left_out: Of the measured ones, how many have a question that leaves no room for an
            answer: a run goes without them.
        padding: Share of the shown batch that is padding.
    """

    rows: tuple[PreviewRow, ...]
    lengths: tuple[int, ...]
    n_cut: int
    n_left_out: int
    padding: float


def preview_batch(
    examples: Sequence[Example],
    objective: str,
    setup: TuningSetup,
    tokenizer: Tokenizer,
    chat: ChatTemplate | None,
    context: int,
) -> BatchPreview:
    """Write the first rows as a run would.

    Args:
        examples: The training part.
        objective: What learns from them.
        setup: What the form says.
        tokenizer: The model's.
        chat: The model's template, where that is asked for.
        context: Tokens that the model reads at most.

    Raises:
        ExplorerError: Template, tokenizer and rows do not go together.
    """
    limit = min(setup.row_limit, context)
    measured = examples[:MOST_MEASURED]
    rows, n_left_out = _write(measured, objective, setup, tokenizer, chat, limit)
    lengths = tuple(len(row.ids) + row.n_cut for _, row in rows)
    shown = rows[:PREVIEW_ROWS]
    longest = max(len(row.ids) for _, row in shown)
    everything = objective == "sft" and setup.train_on == "everything"
    made = tuple(
        _preview(what, row, longest, tokenizer, objective, everything) for what, row in shown
    )
    n_pad = sum(longest - len(row.ids) for _, row in shown)
    return BatchPreview(
        rows=made,
        lengths=lengths,
        n_cut=sum(row.n_cut > 0 for _, row in rows),
        n_left_out=n_left_out,
        padding=n_pad / (longest * len(shown)),
    )


def _write(
    examples: Sequence[Example],
    objective: str,
    setup: TuningSetup,
    tokenizer: Tokenizer,
    chat: ChatTemplate | None,
    limit: int,
) -> tuple[list[tuple[str, AnswerRow]], int]:
    """Rows with what each is, and how many examples are left out."""
    from explorer.training.answer_rows import RowWriter, keep_fitting, pack_rows
    from explorer.training.objectives.classification import encode_text

    if objective == "classification":
        return [("text", encode_text(tokenizer, e.text, limit, e.row)) for e in examples], 0
    writer = RowWriter(tokenizer, setup.template, chat, limit)  # type: ignore[arg-type]
    fitting = keep_fitting(writer, examples)
    n_left_out = len(examples) - len(fitting)
    if objective == "sft":
        rows = [writer.write_row(e.prompt, e.answer, e.row) for e in fitting]
        packed = pack_rows(rows, limit) if setup.packing else rows
        return [("question", row) for row in packed], n_left_out
    pairs = [
        (what, writer.write_row(e.prompt, answer, e.row))
        for e in fitting
        for what, answer in (("chosen", e.answer), ("rejected", e.rejected))
    ]
    return pairs, n_left_out


def _preview(
    what: str, row: AnswerRow, longest: int, tokenizer: Tokenizer, objective: str, everything: bool
) -> PreviewRow:
    units = units_of(tokenizer, list(row.ids))
    roles: list[Role] = []
    place = 0
    for unit in units:
        members = row.learned[place : place + len(unit.ids)]
        # nothing foresees the first token of a row
        is_learned = any(members) or (everything and place > 0)
        roles.append("learned" if is_learned and objective != "classification" else "prompt")
        place += len(unit.ids)
    n_pad = longest - len(row.ids)
    pad = TokenUnit(text="·" * min(n_pad, 12), ids=(), token_bytes=(), start=0, special=False)
    return PreviewRow(
        row=row.row,
        what=what,
        units=(*units, pad) if n_pad else tuple(units),
        roles=(*roles, "pad") if n_pad else tuple(roles),
        n_learned=sum(row.learned) if not everything else len(row.ids) - 1,
        n_cut=row.n_cut,
    )


@dataclass(frozen=True, kw_only=True)
class TrainedShare:
    """How many numbers are trained.

    Args:
        n_trained: These.
        n_all: Of the model, with what is added to it.
    """

    n_trained: int
    n_all: int


def count_trained(
    config: ModelConfig, objective: str, setup: TuningSetup, n_classes: int
) -> TrainedShare:
    """Count what would be trained, without any weights.

    Args:
        config: Of the model.
        objective: What is learned.
        setup: What the form says.
        n_classes: Of a classification.

    Raises:
        ConfigError: There is nothing to train.
    """
    import torch

    from explorer.training.learner import make_learner
    from explorer.training.tuning_setup import make_tuning_config
    from models.decoder import Decoder

    labels = tuple(map(str, range(n_classes)))
    tuning = make_tuning_config(setup, objective, base="", base_name="", labels=labels)
    with torch.device("meta"):
        learner = make_learner(Decoder(config), tuning, torch.Generator())
    sizes = [(p.numel(), p.requires_grad) for p in learner.parameters()]
    return TrainedShare(
        n_trained=sum(n for n, trained in sizes if trained), n_all=sum(n for n, _ in sizes)
    )
