"""Norms, rotation, dropout, masks: each against PyTorch or a formula written out another way."""

import math

import pytest
import torch
from torch.nn import functional

from models.config import AttentionConfig, NormConfig, RopeConfig
from models.dropout import dropout
from models.ffn import activation_function
from models.masks import cached_causal_mask, causal_mask
from models.norms import build_norm
from models.rope import inverse_frequencies, rope_tables, rotate


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


def test_layernorm_equals_pytorch():
    norm = build_norm(NormConfig(kind="layernorm", eps=1e-3), 44)
    norm.weight.data.uniform_(generator=_seeded(1))
    norm.bias.data.uniform_(generator=_seeded(2))
    x = torch.randn(2, 7, 44, generator=_seeded(3)) * 5 + 2
    expected = functional.layer_norm(x, (44,), norm.weight, norm.bias, 1e-3)
    torch.testing.assert_close(norm(x), expected, atol=1e-5, rtol=0)


def test_rmsnorm_equals_pytorch():
    norm = build_norm(NormConfig(kind="rmsnorm", eps=1e-3), 44)
    norm.weight.data.uniform_(generator=_seeded(1))
    x = torch.randn(2, 7, 44, generator=_seeded(3)) * 5 + 2
    expected = functional.rms_norm(x, (44,), norm.weight, 1e-3)
    torch.testing.assert_close(norm(x), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["layernorm", "rmsnorm"])
def test_norms_do_not_overflow_in_half_precision(kind):
    x = torch.full((1, 1, 44), 300.0, dtype=torch.float16)  # 300 squared is beyond fp16
    x[..., 0] = -300.0
    norm = build_norm(NormConfig(kind=kind), 44).half()
    assert norm(x).isfinite().all()
    torch.testing.assert_close(norm(x)[0, 0, 0].float(), _first_normalised(kind), atol=2e-2, rtol=0)


def _first_normalised(kind):
    if kind == "rmsnorm":
        return torch.tensor(-1.0)
    values = [-300.0] + [300.0] * 43
    mean = sum(values) / 44
    return torch.tensor((-300 - mean) / math.sqrt(sum((v - mean) ** 2 for v in values) / 44))


def test_biased_variance_of_two_layer_inputs_as_published():
    # seed 123, randn(2, 5) through Linear(5, 6) and ReLU; variance with n: 0.0192, 0.0332
    with torch.random.fork_rng():
        torch.manual_seed(123)
        x = torch.randn(2, 5)
        out = torch.nn.functional.relu(torch.nn.Linear(5, 6)(x)).detach()
    variance = out.var(dim=-1, unbiased=False)
    torch.testing.assert_close(variance, torch.tensor([0.0192, 0.0332]), atol=1e-4, rtol=0)
    norm = build_norm(NormConfig(kind="layernorm", eps=1e-12), 6)
    torch.testing.assert_close(norm(out).var(-1, unbiased=False), torch.ones(2), atol=1e-5, rtol=0)


def test_rotation_equals_multiplication_by_a_complex_number():
    config, x = RopeConfig(theta=777.0), torch.randn(2, 3, 7, 10, generator=_seeded(4))
    positions = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [3, 9, 27, 81, 243, 729, 2187]])
    found = rotate(x, *rope_tables(config, 10, positions))
    for i in range(5):
        angle = positions.double() * 777.0 ** (-2 * i / 10)
        z = torch.complex(x[..., i].double(), x[..., i + 5].double())
        turned = z * torch.polar(torch.ones_like(angle), angle)[:, None]
        torch.testing.assert_close(found[..., i].double(), turned.real, atol=2e-4, rtol=0)
        torch.testing.assert_close(found[..., i + 5].double(), turned.imag, atol=2e-4, rtol=0)


def test_rotated_products_depend_on_the_distance_alone():
    q, k = torch.randn(2, 1, 1, 1, 10, generator=_seeded(5))
    products = []
    for start in (0, 11, 400):
        positions = torch.tensor([[start], [start + 6]])
        cosines, sines = rope_tables(RopeConfig(), 10, positions)
        turned_k = rotate(k, cosines[:1], sines[:1])
        turned_q = rotate(q, cosines[1:], sines[1:])
        products.append((turned_q * turned_k).sum())
    torch.testing.assert_close(products[0], products[1], atol=1e-5, rtol=0)
    torch.testing.assert_close(products[0], products[2], atol=1e-4, rtol=0)


def test_frequencies_change_with_theta():
    assert not torch.equal(
        inverse_frequencies(RopeConfig(theta=1e4), 10),
        inverse_frequencies(RopeConfig(theta=1e6), 10),
    )
    assert inverse_frequencies(RopeConfig(theta=1e4), 10)[0] == 1.0


def test_dropout_of_ones_as_published():
    row = dropout(torch.ones(6, 6), 0.5, _seeded(123))[0]
    assert row.tolist() == [2, 2, 0, 2, 2, 0]


def test_dropout_without_a_generator_changes_nothing():
    x = torch.ones(6, 6)
    assert dropout(x, 0.5, None) is x


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("silu", lambda x: x / (1 + math.exp(-x))),
        ("relu", lambda x: max(x, 0.0)),
        ("gelu", lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2)))),
        (
            "gelu_tanh",
            lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ),
    ],
)
def test_activations_equal_their_formula(name, reference):
    values = [-3.0, -0.7, 0.0, 0.4, 2.5]
    found = activation_function(name)(torch.tensor(values, dtype=torch.float64))
    expected = torch.tensor([reference(v) for v in values], dtype=torch.float64)
    torch.testing.assert_close(found, expected, atol=1e-9, rtol=0)


def test_causal_mask_hides_padding_but_leaves_it_itself():
    valid = torch.tensor([[False, True, True, False]])
    found = causal_mask(4, valid, torch.device("cpu"))[0, 0].int().tolist()
    assert found == [[1, 0, 0, 0], [0, 1, 0, 0], [0, 1, 1, 0], [0, 1, 1, 1]]


def test_cached_mask_sees_slots_up_to_the_position():
    found = cached_causal_mask(torch.tensor([[2, 3], [0, 1]]), 5)[:, 0].int().tolist()
    assert found == [[[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]]


def test_score_scale_is_one_over_root_of_the_head_width():
    assert AttentionConfig(n_heads=6, n_kv_heads=3, d_head=16).score_scale == 0.25
    assert AttentionConfig(n_heads=6, n_kv_heads=3, d_head=16, scale=1.0).score_scale == 1.0
