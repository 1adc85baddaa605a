"""One training step by hand: against torch's own AdamW, and the gradients against each other."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError
from explorer.training.by_hand import (
    FIRST_NET,
    TinyNet,
    TinySettings,
    compute_loss,
    parse_matrix,
    parse_target,
    take_tiny_step,
)
from explorer.training.by_hand_snippet import make_by_hand_snippet

ROOT = Path(__file__).parent.parent.parent


def _random_net(seed):
    draw = np.random.default_rng(seed)
    return TinyNet(
        x=draw.normal(size=2), w1=draw.normal(size=(3, 2)), w2=draw.normal(size=(3, 3)), target=1
    )


def _by_torch(net, settings):
    """The same net made of torch's own parts, and torch's own optimiser."""
    model = torch.nn.Sequential(
        torch.nn.Linear(2, 3, bias=False), torch.nn.Tanh(), torch.nn.Linear(3, 3, bias=False)
    ).double()
    with torch.no_grad():
        model[0].weight.copy_(torch.from_numpy(net.w1))
        model[2].weight.copy_(torch.from_numpy(net.w2))
    optimiser = torch.optim.AdamW(
        model.parameters(),
        lr=settings.learning_rate,
        betas=(settings.beta1, settings.beta2),
        weight_decay=settings.weight_decay,
    )
    scores = model(torch.from_numpy(net.x)[None])
    loss = torch.nn.functional.cross_entropy(scores, torch.tensor([net.target]))
    loss.backward()
    gradients = [model[i].weight.grad.numpy().copy() for i in (0, 2)]
    optimiser.step()
    return loss.item(), gradients, [model[i].weight.detach().numpy() for i in (0, 2)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "settings", [TinySettings(), TinySettings(learning_rate=0.5, beta1=0.5, weight_decay=0.7)]
)
def test_a_step_is_that_of_torch(seed, settings):
    net = _random_net(seed)
    step = take_tiny_step(net, settings)
    loss, gradients, after = _by_torch(net, settings)
    assert step.loss == pytest.approx(loss, abs=1e-12)
    for ours in (step.by_formula, step.by_autograd):
        np.testing.assert_allclose(ours.w1, gradients[0], atol=1e-12)
        np.testing.assert_allclose(ours.w2, gradients[1], atol=1e-12)
    np.testing.assert_allclose(step.by_differences.w1, gradients[0], atol=1e-8)
    np.testing.assert_allclose(step.by_differences.w2, gradients[1], atol=1e-8)
    np.testing.assert_allclose(step.after.w1, after[0], atol=1e-10)
    np.testing.assert_allclose(step.after.w2, after[1], atol=1e-10)
    assert step.largest_difference < 1e-8


def test_probabilities_sum_to_one_and_the_step_lowers_the_loss():
    step = take_tiny_step(FIRST_NET, TinySettings())
    assert step.probabilities.sum() == pytest.approx(1)
    assert step.loss == pytest.approx(-np.log(step.probabilities[2]))
    assert step.loss_after < step.loss


def test_the_moments_are_those_of_the_optimiser():
    settings = TinySettings(beta1=0.8, beta2=0.9)
    step = take_tiny_step(FIRST_NET, settings)
    np.testing.assert_allclose(step.first_moments.w2, 0.2 * step.by_formula.w2)
    np.testing.assert_allclose(step.second_moments.w1, 0.1 * step.by_formula.w1**2)


def test_large_scores_do_not_overflow():
    net = replace(FIRST_NET, w2=FIRST_NET.w2 * 1e5)
    assert np.isfinite(compute_loss(net))
    assert np.isfinite(take_tiny_step(net, TinySettings()).after.w2).all()


@pytest.mark.parametrize(
    ("text", "shape"),
    [("0.2 -0.4\n0.7, 0.1\n\n-0.3 0.5", (3, 2)), ("1 -0.5", (2,))],
)
def test_numbers_are_read_as_they_are_typed(text, shape):
    found = parse_matrix("W1", text, shape)
    assert found.shape == shape
    assert found.ravel()[:2].tolist() in ([0.2, -0.4], [1.0, -0.5])


def test_what_is_no_matrix_is_refused_by_what_is_wrong_with_it():
    """Text -> what the message says of it."""
    refused = {
        "": "W1 takes 3 lines of 2 numbers, and has 0;",
        "1 2": "and has 2;",
        "1 2\n3 4\n5 6 7": r"and has 2 \+ 2 \+ 3;",
        "1 2\n3 x\n5 6": "'x' in W1 is no number from -1,000,000 to 1,000,000",
        "1 2\n3 nan\n5 6": "'nan' in W1",
        "1 2\n3 1e7\n5 6": "'1e7' in W1",
    }
    for text, words in refused.items():
        with pytest.raises(ConfigError, match=words):
            parse_matrix("W1", text, (3, 2))


def test_a_target_that_is_no_token_is_refused():
    for target in (-1, 3):
        with pytest.raises(ConfigError, match="choose 0 to 2"):
            take_tiny_step(replace(FIRST_NET, target=target), TinySettings())
    assert [parse_target(str(i)) for i in range(3)] == [0, 1, 2]
    for text in ("3", "", "x", None):
        with pytest.raises(ConfigError, match="choose 0 to 2"):
            parse_target(text)


@pytest.mark.slow
def test_the_snippet_gives_the_same_numbers():
    settings = TinySettings(learning_rate=0.3)
    code = make_by_hand_snippet(FIRST_NET, settings)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    step = take_tiny_step(FIRST_NET, settings)
    loss, after = map(float, done.stdout.splitlines()[0].split())
    assert (loss, after) == (step.loss, step.loss_after)
