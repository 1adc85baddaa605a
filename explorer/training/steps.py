"""One optimiser step."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from explorer.training.distributed import average, set_gradient_exchange
from explorer.training.expert_balance import RouterTrace
from explorer.training.finite_checks import find_non_finite
from explorer.training.objectives.objective import Batch, LossFunction
from explorer.training.optimisers import clip_gradients
from explorer.training.run_config import RunConfig
from explorer.training.training_state import TrainingState


class NotFinite(Exception):
    """A loss or gradient is NaN or infinite; the weights are those from before the step.

    Args:
        step: The step that was to be taken, from 1.
        what: `loss` or `gradient norm`.
        value: What it was.
        tensor: The first tensor that is not finite.
        weights_are_finite: Whether the weights themselves are good.
    """

    def __init__(
        self, step: int, what: str, value: float, tensor: str, *, weights_are_finite: bool
    ) -> None:
        super().__init__(
            f"in step {step} the {what} is {value}, first seen in {tensor}; the last good weights "
            "are kept; try a lower learning rate, or clipping"
        )
        self.tensor = tensor
        self.weights_are_finite = weights_are_finite


@dataclass(frozen=True)
class StepResult:
    """What a step measured.

    Args:
        loss: Mean over its tokens, in nats, before the update.
        gradient_norm: Of all gradients, before clipping.
    """

    loss: float
    gradient_norm: float


@dataclass(frozen=True)
class _Place:
    """Where data and dropout stood before a step."""

    feed: dict[str, Any]
    dropout: Tensor

    def go_back(self, state: TrainingState) -> None:
        state.feed.restore(self.feed)
        state.dropout.set_state(self.dropout)


def take_step(
    state: TrainingState, config: RunConfig, compute_loss_sum: LossFunction, learning_rate: float
) -> StepResult:
    """Read `accumulate` batches, add up their gradients, update once.

    The loss of every pass is divided by the tokens of the *whole* step: passes of 1 x 8 and 8 x 1
    batches then give the same gradient, also where some tokens are not learned.

    Args:
        state: Changed in place.
        config: The run.
        compute_loss_sum: The loss of the objective.
        learning_rate: Of this step.

    Raises:
        NotFinite: Loss or gradients are; weights, data and dropout are as before.
    """
    processes, before = state.processes, _Place(state.feed.state(), state.dropout.get_state())
    batches = [state.feed.next_batch() for _ in range(config.data.accumulate)]
    # each process averages its own rows, and the exchange averages the processes
    n_targets = sum(batch.count_targets() for batch in batches) / processes.world
    mine = [_take_rows(batch, state) for batch in batches]
    loss = torch.zeros((), device=processes.device)
    for i, batch in enumerate(mine):
        set_gradient_exchange(state.wrapped, wanted=i == len(mine) - 1)
        routers = RouterTrace() if config.balances_experts else None
        with _precision(config, processes.device):
            total = compute_loss_sum(state.wrapped, batch, state.dropout, config.recompute, routers)
        part = total / n_targets
        loss += part.detach()
        if routers is not None:  # learned, but no part of the curve: that stays comparable
            balance = routers.compute_balance_loss(batch.valid, processes)
            part = part + config.balance_weight * balance / len(mine)
        part.backward()
    norm = clip_gradients(state.model, config.optimiser.clip_norm)
    result = StepResult(average(float(loss), processes), float(norm))
    _require_finite(result, state, mine, before)
    state.optimiser.step(learning_rate)
    state.optimiser.zero_grad()
    state.step += 1
    state.tokens += config.data.tokens_per_step
    if state.average is not None:
        state.average.update()
    return result


def _take_rows(batch: Batch, state: TrainingState) -> Batch:
    """The rows of this process, where it computes.

    Dropout of the others is drawn anew in each step from seed, step and rank: their states need not
    be saved, and no two processes drop the same.
    """
    processes = state.processes
    if not processes.is_first:
        state.dropout.manual_seed(hash((state.dropout.initial_seed(), state.step, processes.rank)))
    chosen = processes.take_rows(torch.arange(len(batch.ids)))
    return batch.rows(slice(int(chosen[0]), int(chosen[-1]) + 1)).to(processes.device)


def _precision(config: RunConfig, device: torch.device) -> AbstractContextManager[None]:
    if config.precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _require_finite(
    result: StepResult, state: TrainingState, batches: list[Batch], before: _Place
) -> None:
    for what, value in (("loss", result.loss), ("gradient norm", result.gradient_norm)):
        if math.isfinite(value):
            continue
        before.go_back(state)  # the look then drops what the step dropped
        names = (find_non_finite(state.model, *b.texts, generator=state.dropout) for b in batches)
        tensor = next(filter(None, names), what)
        before.go_back(state)
        state.optimiser.zero_grad()
        good = all(bool(torch.isfinite(p).all()) for p in state.model.parameters())
        raise NotFinite(state.step + 1, what, value, tensor, weights_are_finite=good)
