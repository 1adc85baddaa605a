"""A moving average of the weights, which is often better than the newest weights alone.

    average ← average + c (weights - average)         c = (1 - d) / (1 - dⁿ) in update n

With decay d, weights of k updates ago count dᵏ. A step's noise averages out, as it would with a
lower learning rate (Polyak & Juditsky 1992; Izmailov et al. 2018, arXiv 1803.05407). The
denominator of c is the correction of Adam (Kingma & Ba 2015, arXiv 1412.6980, section 3): without
it the random weights of the start would fill the average for the first 1 / (1 - d) updates.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypedDict

import torch
from torch import Tensor, nn

from explorer.training.saved_state import lay_out_like, require_same_names, require_same_shape


class AverageState(TypedDict):
    """What a checkpoint keeps of an average."""

    n_updates: int
    weights: dict[str, Tensor]


class WeightAverage:
    """The average of a model's weights.

    Args:
        model: Whose; its weights now are the average until the first update.
        decay: Share of the average that an update leaves, between 0 and 1.
    """

    def __init__(self, model: nn.Module, decay: float) -> None:
        self._decay = decay
        self._n_updates = 0
        self._parameters = dict(model.named_parameters())
        self._averages = {name: p.detach().clone() for name, p in self._parameters.items()}
        self._is_swapped = False

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after an optimiser step."""
        assert not self._is_swapped
        self._n_updates += 1
        share = (1 - self._decay) / (1 - self._decay**self._n_updates)
        for name, parameter in self._parameters.items():
            self._averages[name].lerp_(parameter, share)

    @contextmanager
    def swapped(self) -> Iterator[None]:
        """While it lasts, the model has the averaged weights; afterwards its own, bit for bit."""
        assert not self._is_swapped
        self._swap()
        try:
            yield
        finally:
            self._swap()

    @torch.no_grad()
    def _swap(self) -> None:
        self._is_swapped = not self._is_swapped
        for name, parameter in self._parameters.items():
            held = parameter.clone()
            parameter.copy_(self._averages[name])
            self._averages[name].copy_(held)

    def state_dict(self) -> AverageState:
        """The average by the names of parameters; the tensors are not copies."""
        assert not self._is_swapped
        return {"n_updates": self._n_updates, "weights": dict(self._averages)}

    def load_state_dict(self, state: AverageState) -> None:
        """Go on from what `state_dict` gave; the tensors are copied.

        Raises:
            WeightError: It belongs to another model; nothing changed.
        """
        assert not self._is_swapped
        require_same_names(state["weights"], self._averages)
        for name, average in self._averages.items():
            require_same_shape(name, state["weights"][name], average)
        self._n_updates = state["n_updates"]
        for name, average in self._averages.items():
            average.copy_(lay_out_like(state["weights"][name], average))
