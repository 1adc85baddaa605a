"""The first tensor that is not finite is named, whatever comes after it."""

import math
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from explorer.training.finite_checks import find_non_finite
from models.config import DropoutConfig
from tests.explorer.training.tiny_models import GPT, LLAMA, build_tiny, draw_ids


def take_gradients(model, ids) -> None:
    logits = model(ids[:, :-1])
    functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten()).backward()


@pytest.mark.parametrize("config", [GPT, LLAMA], ids=["gpt", "llama"])
def test_nothing_is_named_where_all_is_finite(config) -> None:
    model, ids = build_tiny(config), draw_ids()
    take_gradients(model, ids)
    assert find_non_finite(model, ids) is None


def test_a_weight_is_named_before_all_that_it_spoils() -> None:
    model, ids = build_tiny(), draw_ids()
    model.blocks[1].ffn.up_proj.weight.data[5, 3] = math.nan
    take_gradients(model, ids)
    assert find_non_finite(model, ids) == "blocks.1.ffn.up_proj.weight"


@pytest.mark.parametrize(
    ("values", "activation"),
    [
        (  # two finite vectors, a product of 10^60
            {"blocks.1.attn.q_proj.bias": 1e30, "blocks.1.attn.k_proj.bias": 1e30},
            "blocks.1.attn.scores",
        ),
        (  # an average of values is as large as they are, 60 of them together are not finite
            {"blocks.0.attn.v_proj.bias": 3e38, "blocks.0.attn.o_proj.weight": 1.0},
            "blocks.0.attn_out",
        ),
        ({"final_norm.bias": 3e38, "embed.weight": 1.0}, "logits"),
    ],
)
def test_an_overflow_is_found_where_it_happens(values, activation: str) -> None:
    model = build_tiny()
    for name, value in values.items():
        model.get_parameter(name).data.fill_(value)
    assert find_non_finite(model, draw_ids()) == activation


def test_the_dropout_of_the_step_is_drawn_again() -> None:
    """What dropout leaves of a rate of one half is doubled: 2e38 is finite, 4e38 is not."""
    model, ids = build_tiny(replace(GPT, dropout=DropoutConfig(embedding=0.5))), draw_ids()
    model.embed.weight.data.fill_(2e38)
    model.position_embed.weight.data.zero_()
    generator = torch.Generator().manual_seed(1)
    assert find_non_finite(model, ids, generator=generator) == "embed"
    assert find_non_finite(model, ids) != "embed"


def test_a_gradient_is_named_in_the_order_of_the_backward_pass() -> None:
    model, ids = build_tiny(), draw_ids()
    take_gradients(model, ids)
    model.blocks[0].attn.k_proj.bias.grad[2] = math.inf
    model.blocks[1].ffn.up_proj.bias.grad[4] = math.nan
    assert find_non_finite(model, ids) == "blocks.1.ffn.up_proj.bias.grad"
