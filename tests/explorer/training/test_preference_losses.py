"""The losses of preferences against formulas written out here, and against TRL's trainers."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from explorer.training.answer_rows import AnswerRow
from explorer.training.objectives.objective import IGNORED
from explorer.training.objectives.preference import (
    PairExamples,
    ask_reference,
    make_loss,
    make_scores,
    measure_pair,
)
from explorer.training.preference_losses import PREFERENCE_LOSSES, AnswerLogProbs, log_odds
from explorer.training.tuning_config import TuningConfig
from tests.explorer.training.tiny_models import LLAMA, build_tiny

SETTINGS = TuningConfig(base="", beta=0.3, gamma=0.7)


def draw_logs(n: int = 5) -> AnswerLogProbs:
    generator = torch.Generator().manual_seed(4)

    def draw() -> Tensor:
        return -5 - 20 * torch.rand(n, generator=generator, dtype=torch.float64)

    counts = torch.tensor([3.0, 7, 4, 9, 6])
    return AnswerLogProbs(
        chosen=draw(),
        rejected=draw(),
        n_chosen=counts,
        n_rejected=counts.flip(0) + 1,
        reference_chosen=draw(),
        reference_rejected=draw(),
        whole_text=torch.tensor(-2.25, dtype=torch.float64),
        drift=torch.tensor(0.6, dtype=torch.float64),
    )


def sigma(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def plain(name: str, logs: AnswerLogProbs, reduction: str) -> np.ndarray:
    c, r, nc, nr, c0, r0 = (
        getattr(logs, field).double().numpy()
        for field in (
            *("chosen", "rejected", "n_chosen", "n_rejected"),
            *("reference_chosen", "reference_rejected"),
        )
    )
    beta, gamma = SETTINGS.beta, SETTINGS.gamma
    if name == "dpo":
        a, b = (c - c0, r - r0) if reduction == "sum" else ((c - c0) / nc, (r - r0) / nr)
        return -np.log(sigma(beta * (a - b)))
    if name == "ipo":
        return ((c - c0) / nc - (r - r0) / nr - 1 / (2 * beta)) ** 2
    if name == "simpo":
        return -np.log(sigma(beta * (c / nc - r / nr) - gamma))
    if name == "orpo":
        p, q = np.exp(c / nc), np.exp(r / nr)
        return 2.25 - beta * np.log(sigma(np.log(p / (1 - p)) - np.log(q / (1 - q))))
    z = 0.6
    return 0.5 * (1 - sigma(beta * (c - c0 - z))) + 0.5 * (1 - sigma(beta * (z - (r - r0))))


def test_each_loss_is_its_formula() -> None:
    logs = draw_logs()
    for name, compute in PREFERENCE_LOSSES.items():
        for reduction in ("sum", "mean"):
            found = compute(logs, replace(SETTINGS, reduction=reduction))
            np.testing.assert_allclose(found.numpy(), plain(name, logs, reduction), rtol=1e-6)


def test_log_odds_keep_their_digits_near_both_ends() -> None:
    log_p = torch.tensor([-1e-6, -1e-3, -0.6931, -2.0, -30.0], dtype=torch.float32)
    exact = [p - math.log(-math.expm1(p)) for p in log_p.double().tolist()]
    np.testing.assert_allclose(log_odds(log_p).numpy(), exact, rtol=2e-5)
    log_p.requires_grad_(True)
    log_odds(log_p).sum().backward()
    assert log_p.grad is not None
    assert bool(torch.isfinite(log_p.grad).all())


def make_pairs(n: int = 5) -> PairExamples:
    generator = torch.Generator().manual_seed(2)

    def row(n_prompt: int, n_answer: int) -> AnswerRow:
        ids = torch.randint(3, 97, (n_prompt + n_answer,), generator=generator).tolist()
        return AnswerRow(ids=tuple(ids), learned=(False,) * n_prompt + (True,) * n_answer)

    def side(add: int) -> tuple[AnswerRow, ...]:
        return tuple(row(4 + i % 3, 3 + (i * 5 + add) % 7) for i in range(n))

    return PairExamples(side(0), side(2), side(4), torch.zeros(n, 3), pad_id=0)


def with_reference(pairs: PairExamples, model: Any) -> PairExamples:
    return replace(pairs, reference=ask_reference(model, pairs))


def test_at_the_start_the_loss_is_ln_2_and_nothing_is_gained() -> None:
    model = build_tiny(LLAMA)
    batch = with_reference(make_pairs(), model).batch(range(5))
    for reduction in ("sum", "mean"):
        settings = replace(SETTINGS, reduction=reduction)
        loss = make_loss(settings)(model, batch, None, False) / 5
        assert float(loss) == pytest.approx(math.log(2), abs=1e-6)
        scores = make_scores(settings)(model, batch)
        assert float(scores["margin"].abs().max()) < 1e-4
    assert batch.count_targets() == 5


def test_log_probabilities_are_those_of_the_softmax_of_the_answer_alone() -> None:
    model, pairs = build_tiny(LLAMA), make_pairs()
    batch = pairs.batch([1, 3, 4])
    logs = measure_pair(model, batch, needs_drift=False)
    for place, number in enumerate((1, 3, 4)):
        row = pairs.chosen[number]
        ids = torch.tensor([row.ids])
        log_p = model(ids[:, :-1]).log_softmax(-1)[0]
        each = [log_p[t, ids[0, t + 1]] for t in range(len(row.ids) - 1) if row.learned[t + 1]]
        torch.testing.assert_close(
            logs.chosen[place], torch.stack(each).sum(), rtol=1e-5, atol=1e-5
        )
        assert int(logs.n_chosen[place]) == len(each)
    assert int((batch.targets != IGNORED).sum()) == int(logs.n_chosen.sum())


def test_preferences_are_learned() -> None:
    model = build_tiny(LLAMA)
    batch = with_reference(make_pairs(), model).batch(range(5))
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for _ in range(25):
        loss = make_loss(SETTINGS)(model, batch, None, False) / 5
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    scores = make_scores(SETTINGS)(model, batch)
    assert float(scores["accuracy"].mean()) == 1.0
    assert float(loss.detach()) < 0.3
