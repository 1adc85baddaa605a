"""Lens, attribution and the stream's sum, in every family, against the model's own numbers."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorer.attribution import compute_attribution
from explorer.errors import ConfigError, ContextError
from explorer.lens_grid import stream_lens_grid
from explorer.lens_targets import find_target
from explorer.prompts import read_prompt
from models import Trace, load_model
from tests.components.tiny_chat import ByteTokenizer, build_tiny_chat

IDS = (5, 17, 3, 88, 42, 11, 9)
FAMILIES = ("llama", "mistral", "gpt2", "gemma2", "gemma3_text", "olmo3", "qwen2", "qwen3")
FAMILIES += ("qwen3_moe", "deepseek", "mla_plain")


@pytest.fixture(scope="module", params=FAMILIES)
def loaded(request, golden_folder):
    model = load_model(golden_folder / request.param)
    return SimpleNamespace(
        model=model.model, config=model.config, tokenizer=ByteTokenizer(), info=model.info
    )


def own_logits(loaded, ids=IDS):
    with torch.no_grad():
        return loaded.model(torch.tensor([ids]))[0]


def test_the_last_row_of_the_lens_is_what_the_model_says(loaded):
    *_, lens = stream_lens_grid(loaded, IDS)
    p = own_logits(loaded).double().softmax(-1)
    last = lens.layers[-1]
    best = p.topk(last.top_probabilities.shape[1])
    np.testing.assert_allclose(last.top_probabilities, best.values, atol=1e-5)
    np.testing.assert_allclose(last.entropies_nats, -(p * p.log()).sum(-1), atol=1e-4)
    target = int(p[-1].argmax())
    assert (lens.target.id, last.target_ranks[-1]) == (target, 0)
    np.testing.assert_allclose(last.target_probabilities, p[:, target], atol=1e-5)
    assert len(lens.layers) == lens.n_stages == loaded.config.n_layers + 1


def test_the_parts_add_up_to_the_logit(loaded):
    for position, word in ((-1, ""), (2, "A")):
        found = compute_attribution(loaded, IDS, position=position, target=word)
        logits = own_logits(loaded)[position].double()
        assert found.target.id == (3 + ord("A") if word else int(logits.argmax()))
        assert found.logit == pytest.approx(float(logits[found.target.id]), abs=1e-5)
        cap = loaded.config.logit_cap
        said = found.total if cap is None else cap * np.tanh(found.total / cap)
        assert said == pytest.approx(found.logit, abs=1e-3)
        assert found.total == pytest.approx(found.logit_before_cap, abs=1e-6)


def test_what_a_layer_adds_is_its_own_output_through_the_final_norm(loaded):
    """Feed-forward and attention of each layer, against their recorded outputs."""
    found = compute_attribution(loaded, IDS)
    trace = Trace(record=("embed", "blocks.*.attn_out", "blocks.*.ffn_out", "blocks.*.resid_post"))
    with torch.no_grad():
        loaded.model(torch.tensor([IDS]), trace=trace)
    final = trace[f"blocks.{loaded.config.n_layers - 1}.resid_post"][0, -1].double()
    model = loaded.model.double()
    row = (model.embed if loaded.config.tied_head else model.head).weight[found.target.id].detach()
    kind, weight = type(model.final_norm).__name__, model.final_norm.weight.detach()
    weight = weight + 1 if kind == "UnitOffsetRMSNorm" else weight

    def adds(part):
        """To the logit, where the size of the stream stays what it was."""
        mean = (lambda x: x.mean()) if kind == "LayerNorm" else (lambda x: 0.0)
        size = ((final - mean(final)).square().mean() + model.final_norm.eps).sqrt()
        return float(((part - mean(part)) / size * weight) @ row)

    for layer in range(loaded.config.n_layers):
        for name, values in (("attn_out", found.attention), ("ffn_out", found.feed_forward)):
            part = trace[f"blocks.{layer}.{name}"][0, -1].double()
            assert values[layer] == pytest.approx(adds(part), abs=1e-4)
    assert found.embedding == pytest.approx(adds(trace["embed"][0, -1].double()), abs=1e-4)
    model.float()


def test_the_stream_is_conserved(loaded):
    parts = ("resid_pre", "attn_out", "resid_mid", "ffn_out", "resid_post")
    trace = Trace(record=tuple(f"blocks.*.{part}" for part in parts))
    with torch.no_grad():
        loaded.model(torch.tensor([IDS]), trace=trace)
    for layer in range(loaded.config.n_layers):
        before, attn, middle, ffn, after = (trace[f"blocks.{layer}.{part}"] for part in parts)
        torch.testing.assert_close(before + attn + ffn, after, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(before + attn, middle, atol=1e-5, rtol=1e-5)


def test_neurons_add_what_their_column_adds(loaded):
    found = compute_attribution(loaded, IDS)
    if loaded.config.moe is not None:
        assert found.neurons == ()
        return
    sizes = [abs(neuron.contribution) for neuron in found.neurons]
    assert sizes == sorted(sizes, reverse=True)
    assert len(found.neurons[0].promotes) == 5


def test_a_word_of_several_tokens_is_followed_by_its_first():
    loaded = build_tiny_chat()
    target = find_target(loaded, "玛")
    assert (target.id, target.n_tokens) == (3 + "玛".encode()[0], 3)
    with pytest.raises(ConfigError, match="no word"):
        find_target(loaded, " ")
    with pytest.raises(ConfigError, match="choose 0 to 6"):
        compute_attribution(loaded, IDS, position=7)


@pytest.mark.parametrize(
    ("most_tokens", "code", "limit"),
    [
        (150, "text-too-long-here", 150),
        (None, "context-too-long", 200),
        (900, "context-too-long", 200),
    ],
)
def test_a_long_text_is_refused_for_the_right_reason(most_tokens, code, limit):
    loaded = build_tiny_chat()  # it reads 200 tokens
    with pytest.raises(ContextError) as refused:
        read_prompt(loaded, "x" * 201, most_tokens=most_tokens)
    assert refused.value.code == code
    assert (refused.value.facts["asked"], refused.value.facts["limit"]) == (201, limit)
