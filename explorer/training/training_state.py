"""Everything of a run that changes: weights, optimiser, place in the data, random states."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from explorer.training.batch_feed import BatchFeed
from explorer.training.distributed import (
    Processes,
    SharedBy,
    drop_gathered,
    gather_full_state,
    scatter_like,
    wrap_model,
)
from explorer.training.ema import WeightAverage
from explorer.training.learner import decoder_of, plain_decoder
from explorer.training.objectives.objective import TrainingData
from explorer.training.optimisers import Optimiser, build_optimiser
from explorer.training.run_config import RunConfig
from explorer.training.saved_state import require_same_names, require_same_shape
from models.decoder import Decoder
from models.encoder_decoder import EncoderDecoder
from models.errors import JobError
from models.initialise import build_decoder


@dataclass
class TrainingState:
    """A run between two steps.

    Args:
        model: The weights: a decoder, what a fine-tuning has made of one, or an encoder-decoder.
        wrapped: What is called in training: the model, or what shares it with other processes.
        processes: Those of this run.
        optimiser: Its moments.
        feed: Where it is in the data.
        dropout: Generator of dropout, on the model's device.
        average: Moving average of the weights, or None.
        step: Optimiser steps taken.
        tokens: Tokens read.
        is_tuning: Whether some weights stay as they were, so that only the others are saved.
    """

    model: nn.Module
    wrapped: nn.Module
    processes: Processes
    optimiser: Optimiser
    feed: BatchFeed
    dropout: torch.Generator
    average: WeightAverage | None
    step: int = 0
    tokens: int = 0
    is_tuning: bool = False

    @property
    def trained(self) -> dict[str, nn.Parameter]:
        """Name -> parameters that are trained."""
        return {n: p for n, p in self.model.named_parameters() if p.requires_grad}

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """Inside it the model has the average of its weights, where one is kept."""
        if self.average is None:
            yield
            return
        with self.average.swapped():
            drop_gathered(self.model)
            yield
        drop_gathered(self.model)

    def to_dict(self) -> dict[str, Any]:
        """All but the weights: tensors, numbers and texts, as `weights_only` loading takes them.

        Called by all processes at once; whole in the first.
        """
        values = {
            "step": self.step,
            "tokens": self.tokens,
            "optimiser": self.optimiser.state_dict(),
            "feed": self.feed.state(),
            "dropout": self.dropout.get_state(),
            "average": None if self.average is None else self.average.state_dict(),
        }
        if self.is_tuning:
            values["tuned"] = {name: p.detach() for name, p in self.trained.items()}
        return values if self.processes.world == 1 else gather_full_state(values, self.processes)

    def whole_model(self) -> Decoder | EncoderDecoder | None:
        """The model with all its weights, to be saved; None in all processes but the first.

        Called by all processes at once.
        """
        if isinstance(self.model, EncoderDecoder):
            return self.model if self.processes.is_first else None
        if self.processes.world == 1 or self.is_tuning:
            return plain_decoder(self.model) if self.processes.is_first else None
        weights = gather_full_state(dict(self.model.named_parameters()), self.processes)
        if not self.processes.is_first:
            return None
        with torch.device("meta"):
            whole = Decoder(decoder_of(self.model).config)
        whole.load_state_dict(weights, assign=True)
        return whole

    def restore(self, weights: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go on from what another state gave.

        Args:
            weights: Parameter name -> value.
            values: What `to_dict` gave.

        Raises:
            WeightError: Names or shapes are of another model.
            KeyError: Something is missing.
            ValueError: Something cannot be.
        """
        parameters, weights = self.trained, values.get("tuned", weights)
        require_same_names(weights, parameters)
        for name, parameter in parameters.items():
            require_same_shape(name, weights[name], parameter)

        def share_out(tensors: dict[str, Tensor], name: str) -> dict[str, Tensor]:
            return {key: scatter_like(t, parameters[name]) for key, t in tensors.items()}

        moments = values["optimiser"]
        self.optimiser.load_state_dict(
            {name: share_out(moments[name], name) for name in parameters}
        )
        self.feed.restore(values["feed"])
        self.dropout.set_state(values["dropout"])
        if self.average is not None:
            kept = values["average"]
            shared = {n: scatter_like(t, parameters[n]) for n, t in kept["weights"].items()}
            self.average.load_state_dict({"n_updates": kept["n_updates"], "weights": shared})
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(scatter_like(weights[name], parameter))
        self.step, self.tokens = int(values["step"]), int(values["tokens"])


def make_state(
    config: RunConfig,
    data: TrainingData,
    processes: Processes,
    *,
    shared_by: SharedBy = "ddp",
    learner: nn.Module | None = None,
) -> TrainingState:
    """A run before its first step: weights, orders and dropout all follow from the seed.

    Args:
        config: The run.
        data: Its data.
        processes: Those of this run, and where they compute.
        shared_by: How several share the model.
        learner: What is trained where it is no fresh decoder; None draws one.

    Raises:
        JobError: Such a learner is to be shared in parts.
    """
    seed = config.seed
    if learner is not None and shared_by == "fsdp" and processes.world > 1:
        raise JobError("this run is shared as a whole only; leave --shared-by fsdp out")
    generator = torch.Generator().manual_seed(seed)
    model = learner or build_decoder(config.model, generator, device=processes.device)
    wrapped = wrap_model(model, processes, shared_by)
    return TrainingState(
        model=model,
        wrapped=wrapped,
        processes=processes,
        optimiser=build_optimiser(model, config.optimiser),
        feed=BatchFeed(
            data.training, config.data.batch_size, shuffle=config.data.shuffle, seed=seed
        ),
        dropout=torch.Generator(processes.device).manual_seed(seed),
        average=None if config.ema_decay is None else WeightAverage(model, config.ema_decay),
        is_tuning=config.tuning is not None,
    )
