"""Batches without end, epoch after epoch, from any place on.

The order of an epoch depends on the state of a generator when the epoch begins. That state and the
number of batches already read are all that is needed to go on in the middle.
"""

from __future__ import annotations

from typing import Any

import torch

from explorer.datasets.windows import draw_epoch_order
from explorer.training.objectives.objective import Batch, Examples


class BatchFeed:
    """The training part in batches; a last one that is not full is left out.

    Args:
        examples: What to read; at least one batch of it.
        batch_size: Examples of a batch.
        shuffle: Whether each epoch has an order of its own.
        seed: Of the orders.
    """

    def __init__(self, examples: Examples, batch_size: int, *, shuffle: bool, seed: int) -> None:
        self._examples = examples
        self._batch_size = batch_size
        self._shuffle = shuffle
        self._generator = torch.Generator().manual_seed(seed)
        self._begin_epoch(0)

    @property
    def batches_per_epoch(self) -> int:
        """Full batches of the training part."""
        return self._examples.n_examples // self._batch_size

    @property
    def epoch(self) -> float:
        """Passes over the training part so far."""
        return self._epoch + self._n_read / self.batches_per_epoch

    def next_batch(self) -> Batch:
        """The next batch, of the next epoch where this one is over."""
        return self._examples.batch(self.next_numbers())

    def next_numbers(self) -> list[int]:
        """Numbers of the examples of the next batch."""
        if self._n_read == self.batches_per_epoch:
            self._begin_epoch(self._epoch + 1)
        start = self._n_read * self._batch_size
        self._n_read += 1
        return [int(i) for i in self._order[start : start + self._batch_size]]

    def state(self) -> dict[str, Any]:
        """Where it is."""
        return {"epoch": self._epoch, "n_read": self._n_read, "generator": self._at_epoch_start}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from where another feed of the same data was."""
        self._generator.set_state(state["generator"])
        self._begin_epoch(int(state["epoch"]))
        self._n_read = int(state["n_read"])

    def _begin_epoch(self, epoch: int) -> None:
        self._epoch = epoch
        self._n_read = 0
        self._at_epoch_start = self._generator.get_state()
        self._order = draw_epoch_order(
            self._examples.n_examples, self._generator, shuffle=self._shuffle
        )
