"""The nine ways give the same numbers and gradients, and do not see the future."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch
from torch import nn

from explorer.attention_lab.ways import WAYS
from explorer.attention_lab.ways_timing import (
    CLASS_NAMES,
    WAY_NAMES,
    WaySettings,
    build_ways,
    check_ways,
    draw_inputs,
    has_backward,
    measure_ways,
    read_way_source,
)
from explorer.errors import ConfigError, Stopped

SMALL = WaySettings(d_model=48, n_heads=6, n_tokens=7, batch=2, rounds=3)


def test_all_ways_agree_forward_and_backward():
    ways, x = build_ways(SMALL), draw_inputs(SMALL)
    assert tuple(ways) == WAY_NAMES == tuple(name for name, _ in WAYS)
    assert tuple(kind.__name__ for _, kind in WAYS) == CLASS_NAMES
    for name, kind in WAYS:
        assert f"class {kind.__name__}(" in read_way_source(name)
    theirs = nn.MultiheadAttention(48, 6, bias=False, batch_first=True)
    split = ways["split"]
    with torch.no_grad():
        inputs = [split.q_proj.weight, split.k_proj.weight, split.v_proj.weight]
        theirs.in_proj_weight.copy_(torch.cat(inputs))
        theirs.out_proj.weight.copy_(split.o_proj.weight)
        blocked = torch.ones(7, 7, dtype=torch.bool).triu(1)
        expected = theirs(x, x, x, attn_mask=blocked)[0] + split.o_proj.bias
    first_gradient = None
    for name, way in ways.items():
        inputs = x.clone().requires_grad_(has_backward(name, x))
        changed = x.clone()
        changed[:, 4:] += 1
        with torch.set_grad_enabled(has_backward(name, x)):
            out = way(inputs)
            blind = way(changed)
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=0, msg=name)
        torch.testing.assert_close(blind[:, :4], out[:, :4], atol=1e-5, rtol=0, msg=name)
        if has_backward(name, x):
            out.square().sum().backward()
            if first_gradient is None:
                first_gradient = inputs.grad
            torch.testing.assert_close(inputs.grad, first_gradient, atol=1e-4, rtol=1e-4)


def test_all_ways_have_the_same_number_of_parameters_to_train():
    found = [result for result in measure_ways(SMALL) if result.measuring is None]
    assert [result.rounds for result in found] == [1, 2, 3]
    assert {way.n_parameters for way in found[-1].ways} == {4 * 48 * 48 + 48}
    assert all(way.largest_difference < 1e-5 for way in found[-1].ways)
    for way in found[-1].ways:
        assert 0 < way.forward_s[0] <= way.forward_s[1] <= way.forward_s[2]
        assert (way.backward_s is None) == (way.name == "flex")


def test_the_same_mask_given_to_both_attends_to_the_future_in_one():
    x = draw_inputs(SMALL)
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    inner = build_ways(SMALL)["torch_weights"].inner
    _, weights = inner(x, x, x, attn_mask=future, need_weights=True)
    assert (weights[:, future] == 0).all()
    q = torch.randn(1, 1, 7, 4, generator=torch.Generator().manual_seed(0))
    seen = nn.functional.scaled_dot_product_attention(q, q, torch.eye(7)[None, None], future)
    assert (seen[0, 0][~future] == 0).all()


def test_heads_that_do_not_divide_are_refused_and_a_run_can_be_stopped():
    with pytest.raises(ConfigError, match="such as 6"):
        build_ways(WaySettings(d_model=48, n_heads=7))
    with pytest.raises(Stopped):
        next(measure_ways(SMALL, stopped=lambda: True))


def test_each_way_is_named_before_it_runs_and_has_a_turn_of_its_own():
    told = []

    @contextmanager
    def turn():
        told.append("turn")
        yield

    for result in measure_ways(SMALL, turn=turn):
        told.append(result.measuring)
    first_round = [entry for name in WAY_NAMES for entry in (name, "turn")]
    assert told[: len(first_round)] == first_round
    assert told.count("turn") == 9 * (SMALL.rounds + 1)


def test_a_stop_ends_it_before_the_next_way_and_before_the_backward_pass():
    for asked in range(1, 6):  # before way 1, in it, before way 2, in it, before way 3
        answers = iter([False] * (asked - 1) + [True])
        turns = []

        @contextmanager
        def turn(turns=turns):
            turns.append("began")
            yield

        with pytest.raises(Stopped):
            list(measure_ways(SMALL, turn=turn, stopped=lambda answers=answers: next(answers)))
        assert len(turns) == asked // 2


def test_sizes_whose_scores_fill_the_memory_are_refused():
    largest = WaySettings(d_model=1_024, n_heads=32, n_tokens=1_024, batch=16, rounds=3)
    with pytest.raises(ConfigError, match="lower the tokens to 382, or choose fewer rows") as found:
        next(measure_ways(largest))
    assert found.value.code == "lab-ways-memory"
    check_ways(replace(largest, n_tokens=found.value.facts["fitting"]))
    with pytest.raises(ConfigError):
        check_ways(replace(largest, n_tokens=found.value.facts["fitting"] + 1))
