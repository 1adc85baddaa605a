"""Turned pairs and scores against distance: against complex numbers and a pass of the model."""

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError
from explorer.rope_rotation import (
    compute_distance_scores,
    compute_pairings,
    compute_turned_pair,
    interleaved_order,
    read_unturned_head,
    rotate_neighbours,
    turn_to,
    with_base,
)
from models import Trace
from models.rope_config import RopeConfig
from tests.letters import load_lettered

TEXT = "the cat sat on the mat"
LAYER, HEAD = 1, 4


@pytest.fixture(scope="module")
def loaded(golden_folder):
    return load_lettered(golden_folder / "llama")


@pytest.fixture(scope="module")
def head(loaded):
    return read_unturned_head(loaded, TEXT, LAYER, HEAD)


def test_scores_at_their_own_places_are_those_of_the_model(loaded, head):
    trace = Trace(record=("blocks.*.attn.scores",))
    loaded.model(torch.tensor([loaded.tokenizer.encode(TEXT)]), trace=trace)
    expected = trace[f"blocks.{LAYER}.attn.scores"][0, HEAD]
    for query, key in ((21, 0), (21, 21), (13, 5)):
        found = compute_distance_scores(head, query, key, pair=2, distance=3, most=40)
        assert found.scores[query - key] == pytest.approx(float(expected[query, key]), abs=1e-5)


def test_yarn_is_undone_too(golden_folder):
    loaded = load_lettered(golden_folder / "olmo3")
    layer = loaded.config.layer_types.index("full")
    head = read_unturned_head(loaded, TEXT, layer, 1)
    trace = Trace(record=("blocks.*.attn.scores",))
    loaded.model(torch.tensor([loaded.tokenizer.encode(TEXT)]), trace=trace)
    expected = float(trace[f"blocks.{layer}.attn.scores"][0, 1, 20, 4])
    found = compute_distance_scores(head, 20, 4, pair=0, distance=1, most=40)
    assert found.scores[16] == pytest.approx(expected, abs=1e-5)


def test_only_the_distance_counts(head):
    found = compute_distance_scores(head, 20, 3, pair=0, distance=9, most=40)
    assert found.shifts[-1] == 10_000
    np.testing.assert_allclose(found.shifted, found.scores[9], atol=2e-3)
    np.testing.assert_allclose(found.shifted[:3], found.scores[9], atol=1e-5)


def test_the_pairs_add_up_to_the_score(head):
    parts = [
        compute_distance_scores(head, 20, 3, pair=pair, distance=1, most=16).of_pair
        for pair in range(head.queries.shape[1] // 2)
    ]
    whole = compute_distance_scores(head, 20, 3, pair=0, distance=1, most=16).scores
    np.testing.assert_allclose(sum(parts), whole, atol=1e-5)


def test_a_turned_pair_is_a_complex_number_times_a_power_of_e():
    vector = np.array([0.3, -1.2, 2.0, 0.5, 0.7, -0.1], dtype=np.float32)
    found = compute_turned_pair(vector, RopeConfig(theta=10_000.0), 1, 30)
    frequency = 10_000.0 ** (-2 / 6)
    expected = complex(vector[1], vector[4]) * np.exp(1j * frequency * np.arange(31))
    np.testing.assert_allclose(found.points[:, 0], expected.real, atol=1e-5)
    np.testing.assert_allclose(found.points[:, 1], expected.imag, atol=1e-5)
    assert found.frequency == pytest.approx(frequency, rel=1e-6)


def test_a_rotation_and_its_inverse_are_the_identity():
    from models.rope import rope_tables, rotate

    x = torch.randn(2, 6, 7, 10, generator=torch.Generator().manual_seed(3))
    cosines, sines = rope_tables(RopeConfig(), 10, torch.arange(7).expand(2, -1))
    back = rotate(rotate(x, cosines, sines), cosines, -sines)
    torch.testing.assert_close(back, x, atol=1e-6, rtol=0)


def test_the_two_pairings_agree_after_reordering_and_not_without(head):
    found = compute_pairings(head, 20, 3, 12)
    assert found.interleaved_score == pytest.approx(found.split_score, abs=1e-6)
    assert abs(found.wrong_score - found.split_score) > 1e-4
    assert interleaved_order(10).tolist() == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert compute_pairings(head, 20, 3, 0).wrong_score == pytest.approx(
        compute_pairings(head, 20, 3, 0).split_score, abs=1e-6
    )


def test_neighbours_turn_as_complex_numbers():
    vector = np.array([0.3, -1.2, 2.0, 0.5], dtype=np.float32)
    found = rotate_neighbours(vector, RopeConfig(theta=100.0), 7)
    turned = [complex(0.3, -1.2) * np.exp(7j), complex(2.0, 0.5) * np.exp(0.7j)]
    expected = [number for z in turned for number in (z.real, z.imag)]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_another_base_turns_the_same_vectors(head):
    other = with_base(head, 500_000.0)
    np.testing.assert_array_equal(
        turn_to(other.queries[0], other.rope, [0])[0], turn_to(head.queries[0], head.rope, [0])[0]
    )
    at_5 = [turn_to(h.queries[0], h.rope, [5])[0] for h in (head, other)]
    assert not np.allclose(*at_5, atol=1e-4)


def test_what_is_not_there_is_refused(loaded, head, golden_folder):
    with pytest.raises(ConfigError, match="choose 0 to 1"):
        read_unturned_head(loaded, TEXT, 2, 0)
    with pytest.raises(ConfigError, match="pairs 0 to 4"):
        compute_distance_scores(head, 1, 0, pair=5, distance=1, most=9)
    with pytest.raises(ConfigError, match="does not rotate"):
        read_unturned_head(load_lettered(golden_folder / "gpt2"), TEXT, 0, 0)
