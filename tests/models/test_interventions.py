"""Changes of a pass against a model whose weights were changed, and against plain sums."""

import copy

import pytest
import torch

from models import Interventions, SamplingConfig, Trace, generate
from models.errors import ConfigError
from models.interventions import HeadScale, Patch, Steer, SublayerScale


def changed(model, ids, *changes, record=()):
    trace = Trace(record=record, edits=Interventions(changes=changes).edits())
    return model(ids, trace=trace), trace


def test_a_scaled_head_is_a_model_with_scaled_columns_of_its_output_projection(model, ids):
    d_head = model.config.attention.d_head
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin.blocks[1].attn.o_proj.weight[:, 4 * d_head : 5 * d_head] *= 0.25
        twin.blocks[2].attn.o_proj.weight[:, :d_head] = 0
    found, _ = changed(
        model,
        ids,
        HeadScale(layer=1, head=4, factor=0.25),
        HeadScale(layer=2, head=0, factor=0.0),
    )
    torch.testing.assert_close(found, twin(ids), atol=1e-5, rtol=0)
    assert not torch.allclose(found, model(ids), atol=1e-3)


def test_two_changes_of_one_layer_both_count(model, ids):
    both, _ = changed(model, ids, *(HeadScale(layer=0, head=head, factor=0.0) for head in range(6)))
    whole, _ = changed(model, ids, SublayerScale(layer=0, sublayer="attn", factor=0.0))
    if model.blocks[0].attn.o_proj.bias is None:
        torch.testing.assert_close(both, whole, atol=1e-5, rtol=0)
    assert not torch.allclose(both, model(ids), atol=1e-3)


def test_a_patch_of_all_of_the_stream_is_the_other_text_from_there_on(model, ids):
    others = (ids + 5) % 97
    _, there = changed(model, others, record=("blocks.1.resid_pre",))
    value = there["blocks.1.resid_pre"]
    found, _ = changed(model, ids, Patch(name="blocks.1.resid_pre", value=value))
    torch.testing.assert_close(found, model(others), atol=1e-5, rtol=0)
    part, trace = changed(
        model,
        ids,
        Patch(name="blocks.1.resid_pre", value=value, positions=(2,)),
        record=("blocks.1.resid_pre",),
    )
    assert torch.equal(trace["blocks.1.resid_pre"][:, 2], value[:, 2])
    # a later token cannot change an earlier one
    torch.testing.assert_close(part[:, :2], model(ids)[:, :2], atol=1e-5, rtol=0)
    assert not torch.allclose(part[:, 2:], model(ids)[:, 2:], atol=1e-3)


def test_a_patched_head_leaves_the_others(model, ids):
    _, before = changed(model, ids, record=("blocks.0.attn.z",))
    value = torch.zeros_like(before["blocks.0.attn.z"])
    _, after = changed(
        model,
        ids,
        Patch(name="blocks.0.attn.z", value=value, head=3, positions=(1, 4)),
        record=("blocks.0.attn.z",),
    )
    expected = before["blocks.0.attn.z"].clone()
    expected[:, 3, [1, 4]] = 0
    assert torch.equal(after["blocks.0.attn.z"], expected)


def test_a_vector_is_added_with_its_strength_where_it_is_asked_for(model, ids):
    vector = torch.arange(44.0)
    name = "blocks.1.resid_pre"
    _, plain = changed(model, ids, record=(name,))
    _, everywhere = changed(
        model, ids, Steer(name=name, vector=vector, strength=-2), record=(name,)
    )
    torch.testing.assert_close(everywhere[name], plain[name] - 2 * vector)
    _, once = changed(model, ids, Steer(name=name, vector=vector, positions=(3,)), record=(name,))
    expected = plain[name].clone()
    expected[:, 3] += vector
    torch.testing.assert_close(once[name], expected)


def test_a_text_is_written_under_changes(model):
    off = tuple(
        SublayerScale(layer=layer, sublayer=part, factor=0.0)
        for layer in range(3)
        for part in ("attn", "ffn")
    )
    greedy = SamplingConfig(temperature=0.0)
    written = [
        token.id
        for token in generate(
            model, [3, 1, 4], max_new_tokens=4, sampling=greedy,
            changes=Interventions(changes=off),
        )
    ]  # fmt: skip
    expected, last = [], 4
    ids = [3, 1, 4]
    for _ in range(4):  # without sublayers a token depends on the one before it (and its place)
        logits, _ = changed(model, torch.tensor([ids]), *off)
        last = int(logits[0, -1].argmax())
        ids.append(last)
        expected.append(last)
    assert written == expected
    assert written != [t.id for t in generate(model, [3, 1, 4], max_new_tokens=4, sampling=greedy)]


@pytest.mark.parametrize(
    ("change", "remedy"),
    [
        (HeadScale(layer=3, head=0, factor=0), "no layer 3; choose 0 to 2"),
        (HeadScale(layer=0, head=6, factor=0), "no head 6; choose 0 to 5"),
        (SublayerScale(layer=-1, sublayer="ffn", factor=0), "no layer -1"),
        (Patch(name="embed", value=torch.zeros(1), head=9), "no head 9"),
        (Steer(name="embed", vector=torch.zeros(5)), "stream of width 44"),
    ],
)
def test_what_the_model_has_not_is_refused(config, change, remedy):
    with pytest.raises(ConfigError, match=remedy):
        Interventions(changes=(change,)).check(config)
