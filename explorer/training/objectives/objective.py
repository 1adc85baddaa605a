"""What is learned: how a run's files become batches, and how a batch becomes a loss.

An objective is one file in this folder that exports `OBJECTIVE`, and one line in the table of
`objectives/__init__.py`; form, loop, checkpoints and tests follow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder
from models.trace import Trace

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

IGNORED = -100  # a target that is not learned; the value of torch's cross_entropy


@dataclass(frozen=True, eq=False)
class Batch:
    """What one forward pass reads.

    Args:
        ids: Tokens.
        targets: The token that should come after each; IGNORED where nothing is learned.
        valid: False marks padding; None is no padding.
    """

    ids: Int[Tensor, "B T"]
    targets: Int[Tensor, "B T"]
    valid: Bool[Tensor, "B T"] | None = None

    def rows(self, chosen: slice) -> Batch:
        """Some of its rows."""
        valid = None if self.valid is None else self.valid[chosen]
        return Batch(self.ids[chosen], self.targets[chosen], valid)

    def to(self, device: torch.device) -> Batch:
        """The same on a device."""
        valid = None if self.valid is None else self.valid.to(device)
        return Batch(self.ids.to(device), self.targets.to(device), valid)

    def count_targets(self) -> int:
        """Tokens that are learned."""
        return int((self.targets != IGNORED).sum())


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


@dataclass(frozen=True)
class Objective:
    """One objective.

    Args:
        name: Its key.
        open_data: Files of a run -> data.
        compute_loss_sum: How a batch is measured.
    """

    name: str
    open_data: Callable[[RunFolder, RunConfig], TrainingData]
    compute_loss_sum: LossFunction
