"""Frequencies of any rotation: against the plain formula, published regions, and bad input."""

from dataclasses import replace

import numpy as np
import pytest

from explorer.errors import ConfigError
from explorer.rope_frequencies import (
    RopeSettings,
    compute_rope_frequencies,
    get_rope_preset,
    rope_presets,
)


def test_plain_frequencies_are_powers_of_the_base():
    # float32 powers: a base so large loses a digit on the way
    for base, tolerance in ((10_000.0, 1e-6), (500_000.0, 1e-6), (1_000_000.0, 1e-6), (1e30, 1e-5)):
        found = compute_rope_frequencies(RopeSettings(base=base, d_head=10, scaling="none"))
        expected = [base ** (-2 * i / 10) for i in range(5)]
        np.testing.assert_allclose(found.plain, expected, rtol=tolerance)
        np.testing.assert_allclose(found.plain_wavelengths[0], 2 * np.pi, rtol=1e-6)
        assert set(found.regions) == {"kept"}


@pytest.mark.parametrize(
    ("label", "kept", "blended", "divided"),
    [
        ("llama3.2-1b", (0, 14), (15, 17), (18, 31)),
        ("llama3.1-8b", (0, 28), (29, 34), (35, 63)),
        ("olmo3-7b, full", (0, 18), (19, 34), (35, 63)),
    ],
)
def test_regions_of_published_models(label, kept, blended, divided):
    found = compute_rope_frequencies(get_rope_preset(label))
    regions = (("kept", kept), ("blended", blended), ("divided", divided))
    for region, (first, last) in regions:
        assert found.pairs_of(region) == tuple(range(first, last + 1))


def test_attention_factor_and_share_of_olmo3():
    found = compute_rope_frequencies(get_rope_preset("olmo3-7b, full"))
    assert found.attention_factor == pytest.approx(1.2079441541679836)
    assert found.scaled[27] / found.plain[27] == pytest.approx(0.5368, abs=5e-5)


def test_every_preset_comes_back_as_its_own_rotation():
    from models.registry import presets

    for name, config in presets().items():
        for layer_type, rope in config.rope.items():
            labels = (name, f"{name}, {layer_type}")
            label = next((label for label in labels if label in rope_presets()), None)
            assert label is not None
            settings = rope_presets()[label]
            assert (settings.base, settings.d_head) == (rope.theta, config.rotary_width)


def test_ten_million_tokens_cost_nothing():
    settings = RopeSettings(scaling="dynamic", factor=4.0, length=10_000_000)
    found = compute_rope_frequencies(settings)
    assert found.scaled.shape == (32,)
    grown = 4 * 10_000_000 / 8_192 - 3  # the longest wavelength grows with the base
    assert found.plain[-1] / found.scaled[-1] == pytest.approx(grown, rel=1e-3)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"d_head": 65}, "rope-width"),
        ({"d_head": 0}, "rope-width"),
        ({"d_head": 64.5}, "rope-width"),
        ({"base": 0.0}, "rope-base"),
        ({"base": -10_000.0}, "rope-base"),
        ({"base": float("nan")}, "rope-base"),
        ({"base": 1e31}, "rope-base"),
        ({"length": 0}, "rope-tokens"),
        ({"original_context": -1}, "rope-tokens"),
        ({"scaling": "yarn", "factor": 0.5}, "rope-factor"),
        ({"scaling": "yarn", "beta_fast": 1.0, "beta_slow": 2.0}, "rope-borders"),
        ({"low_frequency_factor": 4.0}, "rope-borders"),
        ({"scaling": "su"}, "run-choice"),
    ],
)
def test_what_no_rotation_has_is_refused_with_a_remedy(changes, code):
    with pytest.raises(ConfigError, match="choose|lower") as refused:
        compute_rope_frequencies(replace(RopeSettings(), **changes))
    assert refused.value.code == code


def test_an_unknown_preset_names_the_closest():
    with pytest.raises(ConfigError, match="llama3.2-1b"):
        get_rope_preset("llama3.2-1")


@pytest.mark.slow
def test_tables_equal_transformers_within_a_tolerance_that_grows_with_the_position():
    import torch
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

    from explorer.rope_frequencies import to_rope_config
    from models.rope import rope_tables

    config = LlamaConfig(
        hidden_size=512,
        num_attention_heads=8,
        head_dim=64,
        max_position_embeddings=131_072,
        rope_parameters={
            "rope_theta": 500_000.0,
            "rope_type": "llama3",
            "factor": 32.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 8_192,
        },
    )
    positions = torch.tensor([[0, 1, 100, 8_191, 65_535]])
    theirs, _ = LlamaRotaryEmbedding(config)(torch.zeros(1), positions)
    ours, _ = rope_tables(to_rope_config(RopeSettings()), 64, positions)
    for index, position in enumerate(positions[0].tolist()):
        tolerance = 1e-6 + 3e-8 * position  # float32 angles lose digits as they grow
        assert float((ours[0, index] - theirs[0, index, :32]).abs().max()) <= tolerance
