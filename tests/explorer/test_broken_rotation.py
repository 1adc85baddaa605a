"""A text read with another rotation: against a model that is built with it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from explorer.broken_rotation import (
    BrokenSettings,
    broken_rope,
    compute_broken_reading,
    with_rope,
)
from explorer.errors import ConfigError
from models import load_model
from models.decoder import Decoder
from models.rope_config import LinearScaling
from tests.letters import load_lettered

SETTINGS = BrokenSettings(n_tokens=24, n_new=3, text="the cat sat ")


@pytest.fixture(scope="module")
def loaded(golden_folder):
    return load_lettered(golden_folder / "llama")


def losses_of(model, ids):
    with torch.inference_mode():
        logits = model(ids)[0, :-1]
    return functional.cross_entropy(logits, ids[0, 1:], reduction="none").numpy()


def test_another_scaling_reads_as_a_model_built_with_it(loaded):
    settings = replace(SETTINGS, way="linear", factor=4.0)
    found = compute_broken_reading(loaded, settings)
    config = broken_rope(loaded.config, settings)
    assert config.rope["full"].scaling == LinearScaling(factor=4.0)
    built = Decoder(config)
    built.load_state_dict(loaded.model.state_dict())
    ids = torch.tensor([loaded.tokenizer.encode("the cat sat \n\nthe cat sat ")[-24:]])
    np.testing.assert_allclose(found.broken, losses_of(built, ids), atol=1e-5)
    np.testing.assert_allclose(found.own, losses_of(loaded.model, ids), atol=1e-5)
    assert not np.allclose(found.own, found.broken, atol=1e-3)


def test_the_wrong_pairing_is_that_of_weights_whose_rows_are_not_reordered(loaded):
    found = compute_broken_reading(loaded, SETTINGS)
    # rows reordered the wrong way round, then rotated as split halves: the same products
    heads = loaded.config.attention
    order = torch.cat([torch.arange(0, heads.d_head, 2), torch.arange(1, heads.d_head, 2)])
    built = Decoder(loaded.config)
    weights = {name: tensor.clone() for name, tensor in loaded.model.state_dict().items()}
    for name in [n for n in weights if n.endswith(("q_proj.weight", "k_proj.weight"))]:
        rows = weights[name].unflatten(0, (-1, heads.d_head))
        weights[name] = rows[:, order].flatten(0, 1)
    built.load_state_dict(weights)
    ids = torch.tensor([loaded.tokenizer.encode("the cat sat \n\nthe cat sat ")[-24:]])
    np.testing.assert_allclose(found.broken, losses_of(built, ids), atol=1e-5)
    assert found.perplexities[0] == pytest.approx(float(np.exp(found.own.mean())))


def test_the_model_itself_is_left_alone(loaded):
    other = with_rope(loaded.model, broken_rope(loaded.config, replace(SETTINGS, way="yarn")))
    assert other.config != loaded.model.config
    assert loaded.model.config == loaded.config
    assert other.embed.weight.data_ptr() == loaded.model.embed.weight.data_ptr()


def test_windows_take_the_scaling_of_full_layers(golden_folder, loaded):
    olmo = load_lettered(golden_folder / "olmo3")
    settings = replace(SETTINGS, way="windows")
    config = broken_rope(olmo.config, settings)
    assert config.rope["window"].scaling == olmo.config.rope["full"].scaling is not None
    found = compute_broken_reading(olmo, settings)
    assert len(found.broken) == 23
    with pytest.raises(ConfigError, match="choose a Gemma or an Olmo 3"):
        compute_broken_reading(loaded, settings)


def test_what_cannot_be_broken_is_refused(loaded, golden_folder):
    with pytest.raises(ConfigError, match="choose a Llama"):
        compute_broken_reading(load_lettered(golden_folder / "gpt2"), SETTINGS)
    with pytest.raises(ConfigError, match="choose pairing"):
        compute_broken_reading(loaded, replace(SETTINGS, way="su"))
    with pytest.raises(ConfigError, match="type some"):
        compute_broken_reading(loaded, replace(SETTINGS, text=""))


@pytest.mark.slow
def test_the_examples_show_what_the_page_says_of_them():
    """With the starter model: the answer is lost, and a scaling reads on where the own fails."""
    starter = load_model(Path(__file__).parents[2] / "assets" / "starter")
    pairing = compute_broken_reading(starter, BrokenSettings())
    assert pairing.own_text.startswith(" Tina is on the farm.")
    assert "on the farm" not in pairing.broken_text
    assert pairing.perplexities[1] > 3 * pairing.perplexities[0]
    assert pairing.perplexities_beyond is None
    linear = compute_broken_reading(starter, BrokenSettings(way="linear", factor=4.0, n_new=0))
    assert linear.perplexities[1] > 2 * linear.perplexities[0]
    for way in ("yarn", "dynamic"):
        longer = compute_broken_reading(starter, BrokenSettings(way=way, n_tokens=512, n_new=0))
        assert longer.perplexities_beyond is not None
        own, scaled = longer.perplexities_beyond
        assert scaled < own / 2
        below = slice(0, longer.trained_length - 1)
        assert abs(longer.own[below].mean() - longer.broken[below].mean()) < 0.5
