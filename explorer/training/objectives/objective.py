"""What is learned: how a run's files become batches, and how a batch becomes a loss.

An objective is one file in this folder that exports `OBJECTIVE`, and one line in the table of
`objectives/__init__.py`; form, loop, checkpoints and tests follow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder
from models.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

SOURCE = "source"  # key of the sources in `Batch.more`
IGNORED = -100  # a target that is not learned; the value of torch's cross_entropy


@dataclass(frozen=True, eq=False)
class Batch:
    """What one forward pass reads.

    Args:
        ids: Tokens.
        targets: The token that should come after each; IGNORED where nothing is learned.
        valid: False marks padding; None is no padding.
        numbers: Further values, one for each row: classes, log-probabilities of a reference.
        more: Further texts, one for each row: the rejected answers beside the chosen ones, the
            sources of translations.
        counted: What the loss is a mean of: tokens that are learned, or rows.
    """

    ids: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"] | None = None
    numbers: Mapping[str, Tensor] = field(default_factory=dict)
    more: Mapping[str, Batch] = field(default_factory=dict)
    counted: Literal["tokens", "rows"] = "tokens"

    @property
    def texts(self) -> tuple[Tensor, ...]:
        """What a model is given: the source, where there is one, and the tokens."""
        sources = [batch.ids for name, batch in self.more.items() if name == SOURCE]
        return (*sources, self.ids)

    def rows(self, chosen: slice) -> Batch:
        """Some of its rows."""
        return self._changed(lambda tensor: tensor[chosen])

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        return self._changed(lambda tensor: tensor.to(device))

    def count_targets(self) -> int:
        """Tokens that are learned, or rows."""
        if self.counted == "rows":
            return len(self.ids)
        return int((self.targets != IGNORED).sum())

    def _changed(self, change: Callable[[Tensor], Tensor]) -> Batch:
        return Batch(
            change(self.ids),
            change(self.targets),
            None if self.valid is None else change(self.valid),
            {name: change(value) for name, value in self.numbers.items()},
            {name: batch._changed(change) for name, batch in self.more.items()},
            self.counted,
        )


class Examples(Protocol):
    """Examples of one part of the data, by number."""

    @property
    def n_examples(self) -> int:
        """How many there are."""

    @property
    def n_tokens(self) -> int:
        """Tokens in all of them."""

    def batch(self, chosen: np.ndarray | Sequence[int]) -> Batch:
        """Put examples together."""


@dataclass(frozen=True)
class TrainingData:
    """Both parts of the data.

    Args:
        training: What is learned from.
        validation: What the model is only measured on.
    """

    training: Examples
    validation: Examples


class LossFunction(Protocol):
    """How an objective measures a batch."""

    def __call__(
        self,
        model: nn.Module,
        batch: Batch,
        generator: torch.Generator | None,
        recompute: bool,
        trace: Trace | None = None,
    ) -> Tensor:
        """Sum of the losses of all tokens that are learned, in nats.

        A sum, so that passes of unequal size add up to the mean of all their tokens.

        Args:
            model: The model, or what shares it.
            batch: What it reads.
            generator: Of dropout; None drops nothing.
            recompute: Whether to keep no activations inside the blocks.
            trace: Looks into the pass.
        """


class Scores(Protocol):
    """Further numbers that an objective measures a batch by."""

    def __call__(self, model: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Name -> one value for each row, shape (B,).

        Args:
            model: The model; called with dropout off and without gradients.
            batch: What it reads.
        """


@dataclass(frozen=True)
class Objective:
    """One objective.

    Args:
        name: Its key.
        open_data: Files of a run -> data.
        compute_loss_sum: How a batch is measured.
        compute_scores: What else is measured on the held-out part; None is nothing.
        for_run: Both of them as the settings of a run want them; None where they depend on none.
    """

    name: str
    open_data: Callable[[RunFolder, RunConfig], TrainingData]
    compute_loss_sum: LossFunction
    compute_scores: Scores | None = None
    for_run: Callable[[RunConfig], tuple[LossFunction, Scores | None]] | None = None
