"""Norms, activations, shortcuts: published numbers, torch's own modules, plain formulas."""

import math

import numpy as np
import pytest
import torch

from explorer.activation_curves import ActivationSettings, compute_activation_curves
from explorer.errors import ConfigError
from explorer.norm_positions import NormPositionSettings, build_config, compute_norm_positions
from explorer.normalisation import FIRST_NUMBERS, compute_norm_steps, parse_numbers
from explorer.shortcuts import ShortcutSettings, compute_shortcut_gradients


def published_rows():
    """`randn(2, 5)` through `Linear(5, 6)` and ReLU after seed 123, all from one generator."""
    generator = torch.Generator().manual_seed(123)
    x = torch.randn(2, 5, generator=generator)
    bound = 1 / math.sqrt(5)
    weight = torch.empty(6, 5).uniform_(-bound, bound, generator=generator)
    bias = torch.empty(6).uniform_(-bound, bound, generator=generator)
    return torch.relu(x @ weight.T + bias)


def test_norm_steps_as_published():
    rows = published_rows()
    means, variances, samples = (0.1324, 0.2170), (0.0192, 0.0332), (0.0231, 0.0398)
    for row, mean, variance, sample in zip(rows, means, variances, samples, strict=True):
        found = compute_norm_steps(row.double().numpy(), 1e-12)
        assert found.mean == pytest.approx(mean, abs=5e-5)
        assert found.variance == pytest.approx(variance, abs=5e-5)
        assert found.sample_variance == pytest.approx(sample, abs=5e-5)
    found = compute_norm_steps(rows[0].double().numpy(), 1e-12)
    expected = [0.6159, 1.4126, -0.8719, 0.5872, -0.8719, -0.8719]
    np.testing.assert_allclose(found.with_sample_variance, expected, atol=1e-4)
    np.testing.assert_allclose(parse_numbers(FIRST_NUMBERS), rows[0].numpy(), atol=5e-5)


def test_norms_equal_those_of_torch():
    x = torch.tensor([0.3, -1.7, 2.2, 0.9, -0.4], dtype=torch.float64)
    found = compute_norm_steps(x.numpy(), 1e-3)
    layer = torch.nn.LayerNorm(5, eps=1e-3, dtype=torch.float64)(x)
    rms = torch.nn.RMSNorm(5, eps=1e-3, dtype=torch.float64)(x)
    np.testing.assert_allclose(found.layer_norm, layer.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(found.rms_norm, rms.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("text", ["", "1 two", "nan", "1e12", "1 " * 65])
def test_what_is_no_vector_is_refused(text):
    with pytest.raises(ConfigError, match="give 1 to 64 numbers"):
        parse_numbers(text)


def test_activations_and_slopes_equal_those_of_torch():
    found = compute_activation_curves(ActivationSettings(reach=3.0, gate="silu"))
    modules = {
        "relu": torch.nn.ReLU(),
        "silu": torch.nn.SiLU(),
        "gelu": torch.nn.GELU(),
        "gelu_tanh": torch.nn.GELU(approximate="tanh"),
    }
    x = torch.from_numpy(found.x)
    for name, module in modules.items():
        np.testing.assert_allclose(found.values[name], module(x).numpy(), atol=1e-12)
        width = 1e-6
        slopes = (module(x + width) - module(x - width)) / (2 * width)
        smooth = np.abs(found.x) > 1e-3  # ReLU has no slope at 0
        np.testing.assert_allclose(found.slopes[name][smooth], slopes[smooth].numpy(), atol=1e-8)
    np.testing.assert_allclose(found.gated[2.0], 2 * torch.nn.SiLU()(x).numpy(), atol=1e-12)
    assert 1e-5 < np.abs(found.values["gelu"] - found.values["gelu_tanh"]).max() < 1e-3


def test_gradients_of_the_five_layer_net_as_published():
    found = compute_shortcut_gradients(ShortcutSettings())
    without = [2.01736e-4, 1.20112e-4, 7.15204e-4, 1.398874e-3, 5.049645e-3]
    with_them = [0.221698, 0.206941, 0.328970, 0.266573, 1.325854]
    np.testing.assert_allclose(found.without, without, rtol=1e-4)
    np.testing.assert_allclose(found.with_them, with_them, rtol=1e-5)


def test_depth_makes_gradients_vanish_only_without_shortcuts():
    found = compute_shortcut_gradients(ShortcutSettings(depth=30, width=12))
    assert found.without[0] < 1e-9
    assert found.with_them[0] > 1e-3
    with pytest.raises(ConfigError, match="choose torch"):
        compute_shortcut_gradients(ShortcutSettings(law="zero"))


def test_norm_positions_at_the_start():
    settings = NormPositionSettings(depth=3)
    found = compute_norm_positions(settings)
    # behind a LayerNorm whose weight is 1 every vector has a root mean square of 1
    np.testing.assert_allclose(found["post"].stream, 1.0, atol=1e-2)
    large = compute_norm_positions(NormPositionSettings(depth=3, law="unit_normal"))
    assert (np.diff(large["pre"].stream) > 0).all()  # the stream is only ever added to
    assert found["pre"].losses[0] == pytest.approx(math.log(128), abs=0.3)
    assert build_config(settings, "none").norm.kind == "none"


def test_gradients_of_norm_positions_are_those_of_their_model():
    from torch.nn import functional

    from explorer.norm_positions import N_ROWS, N_TOKENS, TEXT
    from models.initialise import build_decoder

    settings = NormPositionSettings(depth=2, seed=7)
    model = build_decoder(build_config(settings, "pre"), torch.Generator().manual_seed(7))
    ids = torch.tensor(list(TEXT.encode()))[: N_ROWS * (N_TOKENS + 1)].view(N_ROWS, -1)
    functional.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    expected = torch.nn.utils.get_total_norm([p.grad for p in model.blocks[1].parameters()])
    found = compute_norm_positions(settings)["pre"]
    assert found.gradients[1] == pytest.approx(float(expected), rel=1e-5)
