"""Beam search: against transformers, against trying everything, and on all kinds of cache."""

import itertools
from dataclasses import FrozenInstanceError, replace

import pytest
import torch

from models import SamplingConfig, build_decoder, generate, load_model
from models.beam import BeamConfig, beam_search
from models.config import AttentionConfig, RopeConfig
from models.errors import ConfigError, ContextError
from models.mla_config import MlaConfig

PROMPT = [5, 17, 3, 88]


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


def _scored(model, prompt, ids):
    """Sum of log-probabilities of `ids` after `prompt`, without a cache."""
    row = torch.tensor([[*prompt, *ids]])
    table = model(row)[0].log_softmax(-1)
    return sum(float(table[len(prompt) + i - 1, id_]) for i, id_ in enumerate(ids))


def test_a_beam_as_wide_as_everything_finds_the_best_of_everything(llama_config):
    config = replace(llama_config, vocab_size=5, initialisation="torch_default")
    model = build_decoder(config, _seeded(5)).requires_grad_(False)
    result = beam_search(model, [1, 2], BeamConfig(n_beams=125, max_new_tokens=3))
    everything = {
        ids: _scored(model, [1, 2], ids) / 3 for ids in itertools.product(range(5), repeat=3)
    }
    best = sorted(everything, key=everything.get, reverse=True)
    assert [beam.ids for beam in result.beams[:20]] == best[:20]
    for beam in result.beams:
        assert beam.score == pytest.approx(everything[beam.ids], abs=1e-5)


def test_one_beam_is_greedy(model):
    result = beam_search(model, PROMPT, BeamConfig(n_beams=1, max_new_tokens=9))
    greedy = generate(model, PROMPT, max_new_tokens=9, sampling=SamplingConfig(temperature=0.0))
    assert list(result.beams[0].ids) == [token.id for token in greedy]
    assert result.beams[0].finish == "length"


@pytest.mark.parametrize("kind", ["window", "latent"])
def test_totals_are_those_of_whole_passes_on_every_kind_of_cache(kind, llama_config):
    config = replace(llama_config, initialisation="torch_default")
    if kind == "window":
        heads = AttentionConfig(n_heads=6, n_kv_heads=3, d_head=10, window=3)
        config = replace(
            config,
            attention=heads,
            layer_types=("window", "full", "window"),
            rope={"full": RopeConfig(), "window": RopeConfig()},
        )
    else:
        heads = AttentionConfig(n_heads=6, n_kv_heads=6, d_head=10)
        config = replace(config, attention=heads, mla=MlaConfig(qk_rope_head_dim=4))
    model = build_decoder(config, _seeded(5)).requires_grad_(False)
    result = beam_search(model, PROMPT * 4, BeamConfig(n_beams=5, max_new_tokens=40), stop_ids={7})
    assert len(result.beams) == 5
    for beam in result.beams:
        expected = _scored(model, PROMPT * 4, beam.ids)
        assert beam.log_probability == pytest.approx(expected, abs=1e-3)
        assert beam.score == pytest.approx(expected / len(beam.ids), abs=1e-4)
    assert [b.score for b in result.beams] == sorted((b.score for b in result.beams), reverse=True)


def test_the_tree_adds_up(model):
    result = beam_search(model, PROMPT, BeamConfig(n_beams=3, max_new_tokens=6), stop_ids={11})
    for node in result.nodes:
        before = 0.0 if node.parent is None else result.nodes[node.parent].total
        assert node.total == pytest.approx(before + node.log_probability, abs=1e-5)
        if node.parent is not None:
            assert result.nodes[node.parent].status == "kept"
            assert result.nodes[node.parent].depth == node.depth - 1
    for beam in result.beams:
        assert result.nodes[beam.node].status == "finished"
        assert result.nodes[beam.node].total == beam.log_probability
    with pytest.raises(FrozenInstanceError):
        result.beams = ()


def test_the_end_of_the_context_ends_every_beam(model):
    prompt = [3] * 58
    result = beam_search(model, prompt, BeamConfig(n_beams=2, max_new_tokens=9))
    assert {(len(beam.ids), beam.finish) for beam in result.beams} == {(3, "context")}


def test_what_cannot_be_searched_is_refused(model):
    with pytest.raises(ConfigError, match="at least one token"):
        beam_search(model, [])
    with pytest.raises(ContextError, match="at most 61"):
        beam_search(model, [3] * 61)
    with pytest.raises(ConfigError, match="n_beams=0 must be at least 1"):
        BeamConfig(n_beams=0)


# --------------------------------------------------------------------------- transformers
@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A small model of transformers and the same one of ours."""
    from transformers import LlamaConfig, LlamaForCausalLM

    folder = tmp_path_factory.mktemp("beam")
    config = LlamaConfig(
        vocab_size=23, hidden_size=42, intermediate_size=52, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=3, head_dim=10, max_position_embeddings=128,
        bos_token_id=None, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(4)
        theirs = LlamaForCausalLM(config).eval().requires_grad_(False)
        for parameter in theirs.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    theirs.save_pretrained(folder)
    return theirs, load_model(folder).model


@pytest.mark.slow
@pytest.mark.parametrize("length_penalty", [0.0, 1.0, 2.5, -1.0])
@pytest.mark.parametrize("stop_ids", [(), (7,), (7, 9, 13)], ids=str)
@pytest.mark.parametrize("n_beams", [2, 5])
def test_beams_equal_those_of_transformers(pair, length_penalty, stop_ids, n_beams):
    theirs, ours = pair
    config = BeamConfig(n_beams=n_beams, max_new_tokens=14, length_penalty=length_penalty)
    n_stopped = 0
    for seed in range(8):
        prompt = torch.randint(0, 23, (1, 6), generator=_seeded(seed))
        expected = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=14, do_sample=False,
            num_beams=n_beams, num_return_sequences=n_beams, length_penalty=length_penalty,
            eos_token_id=list(stop_ids) or None, pad_token_id=22, output_scores=True,
            return_dict_in_generate=True, early_stopping=False,
        )  # fmt: skip
        found = beam_search(ours, prompt[0].tolist(), config, stop_ids=stop_ids)
        scores = torch.tensor([beam.score for beam in found.beams])
        torch.testing.assert_close(scores, expected.sequences_scores, atol=1e-5, rtol=1e-5)
        for beam, row in zip(found.beams, expected.sequences.tolist(), strict=True):
            assert row[6 : 6 + len(beam.ids)] == list(beam.ids)
        n_stopped += sum(beam.finish == "stop" for beam in found.beams)
    assert (n_stopped > 0) == bool(stop_ids)


@pytest.mark.slow
@pytest.mark.parametrize("stop_ids", [(), (7, 9)], ids=str)
def test_greedy_equals_that_of_transformers(pair, stop_ids):
    theirs, ours = pair
    finishes = set()
    for seed in range(12):
        prompt = torch.randint(0, 23, (1, 6), generator=_seeded(seed))
        expected = theirs.generate(
            prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=14, do_sample=False,
            num_beams=1, eos_token_id=list(stop_ids) or None, pad_token_id=22,
        )  # fmt: skip
        tokens = generate(
            ours, prompt[0].tolist(), max_new_tokens=14, stop_ids=stop_ids,
            sampling=SamplingConfig(temperature=0.0),
        )  # fmt: skip
        found = list(tokens)
        assert [token.id for token in found] == expected[0, 6:].tolist()
        finishes.add(found[-1].finish)
    assert ("stop" in finishes) == bool(stop_ids)
