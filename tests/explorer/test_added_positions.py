"""Added positions: the paper's formula, swaps that only swap, and four terms that add up."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from explorer.added_positions import (
    AddedSettings,
    SwapSettings,
    compute_added_positions,
    compute_swap,
    sinusoids,
)
from explorer.errors import ConfigError
from tests.letters import load_lettered


@pytest.fixture(scope="module")
def llama(golden_folder):
    return load_lettered(golden_folder / "llama")


@pytest.fixture(scope="module")
def gpt2(golden_folder):
    return load_lettered(golden_folder / "gpt2")


@pytest.mark.parametrize("base", [10_000.0, 100.0])
def test_sinusoids_are_those_of_the_paper(base):
    found = sinusoids(9, 6, base)
    for n in range(9):
        for i in range(3):
            angle = n / base ** (2 * i / 6)
            assert found[n, 2 * i] == pytest.approx(np.sin(angle), abs=1e-6)
            assert found[n, 2 * i + 1] == pytest.approx(np.cos(angle), abs=1e-6)


def test_products_of_sinusoids_depend_on_the_distance_alone():
    settings = AddedSettings(n_positions=50, width=16, position=20)
    found = compute_added_positions(settings)
    expected = [sum(np.cos((20 - m) / 10_000 ** (2 * i / 16)) for i in range(8)) for m in range(50)]
    np.testing.assert_allclose(found.products, expected, atol=1e-5)
    np.testing.assert_allclose(found.products[20 - 7], found.products[20 + 7], atol=1e-5)


def test_learned_positions_are_those_of_the_model(gpt2, llama):
    settings = AddedSettings(kind="learned", n_positions=5, position=2)
    found = compute_added_positions(settings, gpt2)
    weight = gpt2.model.position_embed.weight[:5].numpy()
    np.testing.assert_array_equal(found.vectors, weight)
    np.testing.assert_allclose(found.products, weight @ weight[2], atol=1e-6)
    with pytest.raises(ConfigError, match="choose GPT-2"):
        compute_added_positions(settings, llama)


@pytest.mark.parametrize("changes", [{"width": 7}, {"base": 0.0}, {"base": -3.0}])
def test_impossible_sinusoids_are_refused(changes):
    with pytest.raises(ConfigError, match="choose"):
        compute_added_positions(replace(AddedSettings(), **changes))


def test_without_positions_a_swap_only_swaps(llama, gpt2):
    for loaded in (llama, gpt2):
        found = compute_swap(loaded, SwapSettings(text="the cat sat", first=1, second=9))
        assert found.without.max() < 1e-5
        assert found.with_them.max() > 100 * found.without.max()


def test_four_terms_add_up_to_the_score(gpt2):
    settings = SwapSettings(text="the cat sat", query=8, head=2)
    found = compute_swap(gpt2, settings)
    assert found.added_by == "learned"
    ids = torch.tensor(gpt2.tokenizer.encode(settings.text))
    x = gpt2.model.embed(ids) + gpt2.model.position_embed.weight[: len(ids)]
    attention, heads = gpt2.model.blocks[0].attn, gpt2.config.attention
    rows = slice(2 * heads.d_head, 3 * heads.d_head)
    group = 2 // heads.group_size
    keys = slice(group * heads.d_head, (group + 1) * heads.d_head)
    q, k = x @ attention.q_proj.weight[rows].T, x @ attention.k_proj.weight[keys].T
    expected = (k @ q[8]) * heads.score_scale
    np.testing.assert_allclose(found.scores, expected.detach().numpy(), atol=1e-5)


def test_what_cannot_be_swapped_is_refused(llama):
    with pytest.raises(ConfigError, match="type two words"):
        compute_swap(llama, SwapSettings(text="a"))
    with pytest.raises(ConfigError, match="choose 0 to"):
        compute_swap(llama, SwapSettings(first=40))
