"""Scaled frequencies: published kept / blended / divided pairs, and transformers' own tables."""

import pytest
import torch

from models import get_preset
from models.config import FULL, WINDOW
from models.errors import ConfigError
from models.rope import inverse_frequencies, rope_tables
from models.rope_config import (
    DynamicNtkScaling,
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    YarnScaling,
)


def _ratios(rope, d_head):
    """Scaled over plain frequency of each pair."""
    plain = inverse_frequencies(RopeConfig(theta=rope.theta), d_head)
    return inverse_frequencies(rope, d_head) / plain


def _regions(ratios, factor):
    """(last kept pair, first divided pair)."""
    kept = (ratios - 1).abs() < 1e-6
    divided = (ratios - 1 / factor).abs() < 1e-6
    return int(kept.nonzero()[-1]), int(divided.nonzero()[0])


@pytest.mark.parametrize(
    ("preset", "factor", "last_kept", "first_divided"),
    [("llama3.2-1b", 32, 14, 18), ("llama3.1-8b", 8, 28, 35), ("olmo3-7b", 8, 18, 35)],
)
def test_kept_blended_and_divided_pairs_as_published(preset, factor, last_kept, first_divided):
    config = get_preset(preset)
    ratios = _ratios(config.rope[FULL], config.attention.d_head)
    assert _regions(ratios, factor) == (last_kept, first_divided)
    assert (ratios.diff() <= 1e-7).all()  # high frequencies are kept, low ones divided


def test_the_published_blend_of_olmo3():
    config = get_preset("olmo3-7b")
    ratio = float(_ratios(config.rope[FULL], 128)[27])
    assert ratio == pytest.approx(0.5368, abs=5e-5)  # of its plain frequency
    assert config.rope[FULL].scaling.query_key_factor == pytest.approx(1.2079441541679836)
    assert config.rope[WINDOW].scaling is None  # window layers never look that far


def test_the_attention_factor_is_on_cosines_and_sines():
    rope = RopeConfig(scaling=YarnScaling(factor=8.0, original_context=8_192))
    cosines, sines = rope_tables(rope, 8, torch.tensor([[0, 5]]))
    assert float(cosines[0, 0, 0]) == pytest.approx(1.2079441541679836)
    torch.testing.assert_close(
        cosines**2 + sines**2, torch.full_like(cosines, 1.2079441541679836**2), atol=1e-5, rtol=0
    )


def test_dynamic_ntk_changes_nothing_up_to_the_original_context():
    rope = RopeConfig(scaling=DynamicNtkScaling(factor=4.0, original_context=64))
    plain = inverse_frequencies(RopeConfig(), 16)
    assert torch.equal(inverse_frequencies(rope, 16, 64), plain)
    grown = inverse_frequencies(rope, 16, 256)
    assert float(grown[0]) == 1.0
    # the longest wavelength grows by exactly the growth of the base: 4 * 256 / 64 - 3 = 13
    assert float(plain[-1] / grown[-1]) == pytest.approx(13, rel=1e-4)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LinearScaling(factor=0.5), "at least 1"),
        (
            lambda: Llama3Scaling(
                factor=8.0, low_frequency_factor=4.0, high_frequency_factor=1.0,
                original_context=8_192,
            ),
            "must be below",
        ),
        (
            lambda: YarnScaling(factor=8.0, original_context=8, beta_fast=1.0, beta_slow=2.0),
            "must be below",
        ),
    ],
)  # fmt: skip
def test_impossible_scalings_are_refused(make, message):
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.slow
@pytest.mark.parametrize("d_head", [64, 128])
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (LinearScaling(factor=8.0), {"rope_type": "linear", "factor": 8.0}),
        (
            Llama3Scaling(
                factor=32.0, low_frequency_factor=1.0, high_frequency_factor=4.0,
                original_context=8_192,
            ),
            {
                "rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 8_192,
            },
        ),
        (
            YarnScaling(factor=8.0, original_context=8_192),
            {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 8_192},
        ),
        (
            YarnScaling(factor=40.0, original_context=4_096, beta_fast=16.0, truncate=False),
            {
                "rope_type": "yarn", "factor": 40.0, "original_max_position_embeddings": 4_096,
                "beta_fast": 16, "truncate": False,
            },
        ),
        (
            DynamicNtkScaling(factor=4.0, original_context=131_072),
            {"rope_type": "dynamic", "factor": 4.0},
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, dict) else "",
)  # fmt: skip
def test_inverse_frequencies_equal_transformers(d_head, ours, theirs):
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    config = LlamaConfig(
        hidden_size=8 * d_head, num_attention_heads=8, head_dim=d_head,
        max_position_embeddings=131_072, rope_parameters={"rope_theta": 500_000.0, **theirs},
    )  # fmt: skip
    length = 400_000  # far beyond every original context
    expected, factor = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config, "cpu", seq_len=length)
    rope = RopeConfig(theta=500_000.0, scaling=ours)
    found = inverse_frequencies(rope, d_head, length)
    torch.testing.assert_close(found, expected, atol=0, rtol=1e-6)
    cosines, _ = rope_tables(rope, d_head, torch.tensor([[0]]))
    assert float(cosines[0, 0, 0]) == pytest.approx(factor, rel=1e-6)
