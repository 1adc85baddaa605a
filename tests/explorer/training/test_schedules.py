"""The learning rate over a run, against PyTorch's schedulers and against the formulas."""

import math

import pytest
import torch
from torch.optim import lr_scheduler

from explorer.training.run_config import OptimiserConfig, ScheduleConfig
from explorer.training.schedules import compute_learning_rate

HIGHEST = 3e-3


def rates(n_steps: int, **schedule) -> list[float]:
    optimiser = OptimiserConfig(learning_rate=HIGHEST)
    config = ScheduleConfig(**schedule)
    return [compute_learning_rate(optimiser, config, t, n_steps) for t in range(n_steps)]


def rates_of(n_steps: int, build) -> list[float]:
    """What a scheduler of PyTorch gives each step."""
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=HIGHEST)
    scheduler = build(optimiser)
    found = []
    for _ in range(n_steps):
        found.append(scheduler.get_last_lr()[0])
        optimiser.step()
        scheduler.step()
    return found


def with_warmup(n_warmup: int, after):
    """A linear warm-up from 1 / n_warmup that ends at the highest rate, then `after`."""

    def build(optimiser):
        rise = lr_scheduler.LinearLR(optimiser, 1 / n_warmup, 1.0, n_warmup - 1)
        return lr_scheduler.SequentialLR(optimiser, [rise, after(optimiser)], [n_warmup])

    return build


@pytest.mark.parametrize("final_share", [0.0, 0.1, 1.0])
def test_cosine_equals_that_of_pytorch(final_share: float) -> None:
    ours = rates(23, kind="cosine", warmup_steps=5, final_share=final_share)
    theirs = rates_of(
        23,
        with_warmup(
            5, lambda o: lr_scheduler.CosineAnnealingLR(o, 18, eta_min=final_share * HIGHEST)
        ),
    )
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_linear_equals_that_of_pytorch() -> None:
    ours = rates(23, kind="linear", warmup_steps=5, final_share=0.25)
    theirs = rates_of(23, with_warmup(5, lambda o: lr_scheduler.LinearLR(o, 1.0, 0.25, 18)))
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_constant_equals_that_of_pytorch() -> None:
    ours = rates(11, kind="constant", warmup_steps=4)
    theirs = rates_of(11, with_warmup(4, lambda o: lr_scheduler.ConstantLR(o, 1.0)))
    assert ours == pytest.approx(theirs, rel=1e-9)


def test_wsd_stays_up_and_falls_in_its_last_share() -> None:
    ours = rates(20, kind="wsd", warmup_steps=2, final_share=0.2, decay_share=0.3)
    fall = [1 - 0.8 * i / 6 for i in range(6)]  # the last 6 of 20
    assert ours == pytest.approx([HIGHEST * s for s in [0.5, *[1.0] * 13, *fall]], rel=1e-12)


def test_wsd_that_never_falls_and_one_that_always_does() -> None:
    assert rates(7, kind="wsd", decay_share=0.0) == rates(7, kind="constant")
    assert rates(7, kind="wsd", decay_share=1.0, warmup_steps=3) == rates(
        7, kind="linear", warmup_steps=3
    )


def test_wsd_does_not_fall_before_it_has_risen() -> None:
    ours = rates(10, kind="wsd", warmup_steps=6, decay_share=0.8, final_share=0.0)
    assert ours[:7] == pytest.approx([HIGHEST * (t + 1) / 6 for t in range(6)] + [HIGHEST])
    assert ours[7:] == pytest.approx([HIGHEST * s for s in (0.75, 0.5, 0.25)])


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine", "wsd"])
def test_a_run_of_one_step_takes_it_at_the_highest_rate(kind: str) -> None:
    assert rates(1, kind=kind, final_share=0.0) == [HIGHEST]
    assert rates(1, kind=kind, warmup_steps=1) == [HIGHEST]


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine", "wsd"])
def test_a_warmup_longer_than_the_run_never_reaches_the_highest_rate(kind: str) -> None:
    ours = rates(4, kind=kind, warmup_steps=16)
    assert ours == pytest.approx([HIGHEST * s / 16 for s in (1, 2, 3, 4)])


@pytest.mark.parametrize("kind", ["constant", "linear", "cosine", "wsd"])
def test_no_step_is_spent_without_learning(kind: str) -> None:
    assert min(rates(9, kind=kind, warmup_steps=2, final_share=0.0)) > 0
    assert max(rates(9, kind=kind, warmup_steps=2, final_share=0.0)) == HIGHEST


def test_half_of_a_cosine_is_half_the_way_down() -> None:
    middle = rates(10, kind="cosine", final_share=0.0)[5]
    assert math.isclose(middle, HIGHEST / 2)
