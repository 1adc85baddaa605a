"""A decoder that chooses among k classes: its last states, read by one small matrix.

    ids ─► blocks ─► final norm ─► pick one state of each row ─► score (k, D) ─► logits (B, k)

Radford et al. 2018 (GPT-1), section 3.2: the state of the last token has read all others. Which is
the last? Rows of a batch are filled up on the right, so position -1 of a short row is padding:
`last` takes the last real token, `position` the last position, padding or not, and `mean` the mean
of all real tokens.
"""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from models.decoder import Decoder
from models.trace import Trace, tap

Pooling = Literal["last", "position", "mean"]


class Classifier(nn.Module):
    """A decoder with a head of k classes in place of its own.

    Args:
        decoder: The model.
        n_classes: Rows of the head.
        pooling: Which state is read.
        generator: Draws the head.
    """

    def __init__(
        self, decoder: Decoder, n_classes: int, pooling: Pooling, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.decoder = decoder
        self.pooling = pooling
        self.score = nn.Linear(decoder.config.d_model, n_classes, bias=False)
        nn.init.normal_(self.score.weight, 0, decoder.config.d_model**-0.5, generator=generator)
        self.score.to(decoder.device)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.decoder.device

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        valid: Bool[Tensor, "B T"] | None = None,
        *,
        trace: Trace | None = None,
        generator: torch.Generator | None = None,
        recompute: bool = False,
    ) -> Float[Tensor, "B k"]:
        """Scores of the classes, before softmax.

        Args:
            ids: Rows filled up on the right.
            valid: False marks padding; None is no padding.
            trace: Looks into the pass; `class_logits` is the result.
            generator: Of dropout; None drops nothing.
            recompute: As for the decoder.
        """
        states = self.decoder.states(
            ids, valid, trace=trace, generator=generator, recompute=recompute
        )
        pooled = pool_states(states, valid, self.pooling)
        return tap(trace, "class_logits", self.score(pooled.to(self.score.weight.dtype)))


def pool_states(
    states: Float[Tensor, "B T D"], valid: Bool[Tensor, "B T"] | None, pooling: Pooling
) -> Float[Tensor, "B D"]:
    """One state for each row.

    Args:
        states: Of all positions.
        valid: False marks padding.
        pooling: The last real token, the last position, or the mean of the real ones.
    """
    if pooling == "position" or (valid is None and pooling == "last"):
        return states[:, -1]
    if valid is None:
        return states.mean(dim=1)
    if pooling == "mean":
        weights = valid.to(states.dtype).unsqueeze(-1)
        return (states * weights).sum(dim=1) / weights.sum(dim=1)
    last = valid.long().cumsum(dim=1).argmax(dim=1)
    return states[torch.arange(len(states), device=states.device), last]
