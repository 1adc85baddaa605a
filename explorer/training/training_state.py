"""Everything of a run that changes: weights, optimiser, place in the data, random states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from explorer.training.batch_feed import BatchFeed
from explorer.training.ema import WeightAverage
from explorer.training.objectives.objective import TrainingData
from explorer.training.optimisers import Optimiser, build_optimiser
from explorer.training.run_config import RunConfig
from models.decoder import Decoder
from models.initialise import build_decoder


@dataclass
class TrainingState:
    """A run between two steps.

    Args:
        model: The weights.
        optimiser: Its moments.
        feed: Where it is in the data.
        dropout: Generator of dropout, on the model's device.
        average: Moving average of the weights, or None.
        step: Optimiser steps taken.
        tokens: Tokens read.
    """

    model: Decoder
    optimiser: Optimiser
    feed: BatchFeed
    dropout: torch.Generator
    average: WeightAverage | None
    step: int = 0
    tokens: int = 0

    def to_dict(self) -> dict[str, Any]:
        """All but the weights: tensors, numbers and texts, as `weights_only` loading takes them."""
        return {
            "step": self.step,
            "tokens": self.tokens,
            "optimiser": self.optimiser.state_dict(),
            "feed": self.feed.state(),
            "dropout": self.dropout.get_state(),
            "average": None if self.average is None else self.average.state_dict(),
        }

    def restore(self, weights: dict[str, torch.Tensor], values: dict[str, Any]) -> None:
        """Go on from what another state gave.

        Args:
            weights: Parameter name -> value.
            values: What `to_dict` gave.

        Raises:
            RuntimeError: Names or shapes are of another model.
            KeyError: Something is missing.
            ValueError: Something cannot be.
        """
        self.model.load_state_dict(weights)
        self.optimiser.load_state_dict(values["optimiser"])
        self.feed.restore(values["feed"])
        self.dropout.set_state(values["dropout"])
        if self.average is not None:
            self.average.load_state_dict(values["average"])
        self.step, self.tokens = int(values["step"]), int(values["tokens"])


def make_state(config: RunConfig, data: TrainingData, device: torch.device) -> TrainingState:
    """A run before its first step: weights, orders and dropout all follow from the seed.

    Args:
        config: The run.
        data: Its data.
        device: Where it trains.
    """
    seed = config.seed
    model = build_decoder(config.model, torch.Generator().manual_seed(seed), device=device)
    return TrainingState(
        model=model,
        optimiser=build_optimiser(model, config.optimiser),
        feed=BatchFeed(
            data.training, config.data.batch_size, shuffle=config.data.shuffle, seed=seed
        ),
        dropout=torch.Generator(device).manual_seed(seed),
        average=None if config.ema_decay is None else WeightAverage(model, config.ema_decay),
    )
