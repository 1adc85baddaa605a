"""Every stage of the six words against published digits and against torch's own modules."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from explorer.attention_lab.by_hand import (
    INPUTS,
    WIDTHS,
    ChangedCell,
    HandSettings,
    compute_by_hand,
)
from explorer.errors import ConfigError

X = torch.tensor(INPUTS)
RAND = HandSettings(weights="rand", seed=123)


def close(found, expected):
    """To the four digits given."""
    np.testing.assert_allclose(found, expected, atol=5.1e-5)


@pytest.fixture(scope="module")
def plain():
    return compute_by_hand(HandSettings()).matrices


def test_without_weights_to_the_digits_given(plain):
    close(plain["scores"][1], [0.9544, 1.4950, 1.4754, 0.8434, 0.7070, 1.0865])
    close(plain["by_sum"][1], [0.1455, 0.2278, 0.2249, 0.1285, 0.1077, 0.1656])
    close(plain["softmax"][1], [0.1385, 0.2379, 0.2333, 0.1240, 0.1082, 0.1581])
    close(plain["context"][1], [0.4419, 0.6515, 0.5683])


def test_with_weights_to_the_digits_given():
    found = compute_by_hand(RAND).matrices
    close(found["q"][1], [0.4306, 1.4551])
    close(found["weights"][1], [0.1500, 0.2264, 0.2199, 0.1311, 0.0906, 0.1820])
    expected = [
        [0.2996, 0.8053],
        [0.3061, 0.8210],
        [0.3058, 0.8203],
        [0.2948, 0.7939],
        [0.2927, 0.7891],
        [0.2990, 0.8040],
    ]
    close(found["contexts"], expected)


def test_the_linear_layers_and_the_causal_mask_to_the_digits_given(plain):
    close(plain["contexts"][[0, -1]], [[-0.0739, 0.0713], [-0.0754, 0.0693]])
    close(plain["causal"][1, :2], [0.5517, 0.4483])
    close(plain["causal"][5], [0.1935, 0.1663, 0.1666, 0.1542, 0.1666, 0.1529])
    assert (plain["causal"][np.triu_indices(6, 1)] == 0).all()
    np.testing.assert_allclose(plain["causal"].sum(-1), 1, atol=1e-6)
    np.testing.assert_allclose(plain["renormalised"], plain["causal"], atol=1e-6)


def test_dropout_to_the_digits_given(plain):
    assert plain["keep"][0].tolist() == [2, 2, 0, 2, 2, 0]
    close(plain["dropped"][2], [0.7599, 0.6194, 0.6206, 0, 0, 0])


def test_heads_to_the_digits_given():
    heads = compute_by_hand(HandSettings(seed=123)).matrices
    close(heads["heads_one"][[0, -1]], [[-0.4519, 0.2216], [-0.5299, -0.1081]])
    close(heads["heads_side_by_side"][-1], [-0.5299, -0.1081, 0.5077, 0.3493])
    close(heads["heads_split"][[0, -1]], [[0.3190, 0.4858], [0.2575, 0.4028]])


def test_a_changed_cell_of_a_head_goes_on_to_the_contexts():
    cells = [
        ChangedCell(matrix=name, row=1, column=0, value=3.0)
        for name in ("heads_two", "heads_joined", "keep")
    ]
    plain, found = (compute_by_hand(HandSettings(), changed=c).matrices for c in ((), cells))
    assert found["heads_side_by_side"][1, 2] == 3
    assert np.array_equal(found["heads_side_by_side"][:, :2], plain["heads_one"])
    change = (3 - plain["heads_joined"][1, 0]) * plain["w_o"][0]
    moved = found["heads_split"] - plain["heads_split"]
    np.testing.assert_allclose(moved[1], change, rtol=1e-5)
    assert (moved[[0, 2, 3, 4, 5]] == 0).all()
    assert found["dropped"][1, 0] == 3 * plain["causal"][1, 0]


def test_the_draws_are_those_of_torchs_own_layers(plain):
    with torch.random.fork_rng():
        torch.manual_seed(789)
        layers = [nn.Linear(3, 2, bias=False) for _ in range(3)]
        torch.manual_seed(123)
        kept = nn.Dropout(0.5)(torch.from_numpy(plain["causal"]))
    for name, layer in zip(("w_q", "w_k", "w_v"), layers, strict=True):
        assert np.array_equal(plain[name], layer.weight.detach().T.numpy())
    assert np.array_equal(plain["dropped"], kept.numpy())
    q, k, v = (layer(X) for layer in layers)
    theirs = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
    np.testing.assert_allclose(plain["causal_contexts"], theirs.detach().numpy(), atol=1e-6)


def test_the_naive_softmax_overflows_and_the_other_does_not():
    found = compute_by_hand(HandSettings(gain=100)).matrices
    assert np.isnan(found["naive"][1]).any()
    assert math.exp(88) < 3.4e38 < math.exp(89)
    np.testing.assert_allclose(found["stable"].sum(-1), 1, atol=1e-6)
    small = compute_by_hand(HandSettings()).matrices
    np.testing.assert_allclose(small["naive"], small["stable"], atol=1e-6)


def test_a_changed_cell_changes_what_comes_after_and_nothing_before(plain):
    cell = ChangedCell(matrix="scaled", row=1, column=0, value=9.0)
    found = compute_by_hand(HandSettings(), changed=(cell,)).matrices
    row = plain["scaled"][1].copy()
    row[0] = 9
    np.testing.assert_allclose(found["weights"][1], np.exp(row) / np.exp(row).sum(), rtol=1e-5)
    assert np.array_equal(found["weights"][[0, 2, 3, 4, 5]], plain["weights"][[0, 2, 3, 4, 5]])
    assert np.array_equal(found["qk"], plain["qk"])
    assert not np.allclose(found["contexts"][1], plain["contexts"][1], atol=1e-3)


def test_without_the_root_softmax_grows_sharp_with_the_width():
    sharpness = np.array(compute_by_hand(HandSettings()).sharpness)
    assert sharpness.shape == (len(WIDTHS), 2)
    assert np.ptp(sharpness[1:, 0]) < 0.1
    assert (np.diff(sharpness[:, 1]) > 0).all()
    assert sharpness[-1, 1] > 0.9


@pytest.mark.parametrize("value", [math.nan, math.inf, 2e6])
def test_a_cell_that_is_no_usable_number_is_refused(value):
    cell = ChangedCell(matrix="q", row=0, column=0, value=value)
    with pytest.raises(ConfigError, match="takes a number up to"):
        compute_by_hand(HandSettings(), changed=(cell,))


def test_a_cell_beyond_the_matrix_is_refused():
    cell = ChangedCell(matrix="q", row=0, column=2, value=1.0)
    with pytest.raises(ConfigError, match="columns 0 to 1"):
        compute_by_hand(HandSettings(), changed=(cell,))
