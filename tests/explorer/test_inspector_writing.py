"""Walks, pairs, beams and the game, against `generate`, `transformers` and plain passes."""

import numpy as np
import pytest
import torch

from explorer.beam_tree import BeamSettings, compute_beam_tree
from explorer.continuations import stream_pair
from explorer.errors import ConfigError
from explorer.guessing_game import make_rounds
from explorer.next_token import SamplingSettings, make_sampling
from explorer.step_through import begin_walk, choose_next, look_at
from models import Trace, generate
from tests.components.tiny_chat import build_tiny_chat

TEXT = "ab 玛 cd"
WARM = SamplingSettings(temperature=0.8, top_k=40, repetition_penalty=1.2, seed=7)


@pytest.fixture(scope="module")
def loaded():
    return build_tiny_chat()


def step(loaded, walk, settings):
    return walk.force(choose_next(look_at(loaded, walk), walk, settings))


@pytest.mark.parametrize("settings", [WARM, SamplingSettings(temperature=0.0)])
def test_a_walk_is_the_text_that_generate_writes(loaded, settings):
    walk = begin_walk(loaded, TEXT)
    for _ in range(6):
        walk = step(loaded, walk, settings)
    expected = generate(
        loaded.model, walk.prompt, max_new_tokens=6, sampling=make_sampling(settings),
        generator=torch.Generator().manual_seed(settings.seed),
    )  # fmt: skip
    assert list(walk.written) == [token.id for token in expected]


def test_going_back_and_forcing_another_token_writes_on_from_there(loaded):
    walk = begin_walk(loaded, TEXT)
    for _ in range(3):
        walk = step(loaded, walk, WARM)
    back = walk.go_to(1)
    assert (back.written, back.at) == (walk.written, 1)
    assert back.rewind().written == walk.written[:1]
    forced = back.force(70)
    assert (forced.written, forced.at) == ((walk.written[0], 70), 2)
    look = look_at(loaded, forced)
    with torch.no_grad():
        logits = loaded.model(torch.tensor([forced.ids]))[0]
    np.testing.assert_allclose(look.given.logits, logits[-1], atol=1e-5)
    p = logits.softmax(-1)
    assert look.probabilities[-1] == pytest.approx(float(p[-2, 70]), abs=1e-5)
    assert np.isnan(look.probabilities[0])


def test_what_is_shown_of_a_place_is_what_the_model_computed_there(loaded):
    walk = begin_walk(loaded, TEXT).force(70).force(80).go_to(1)
    look = look_at(loaded, walk, layer=0)
    trace = Trace(record=("blocks.0.attn.pattern",))
    with torch.no_grad():
        logits = loaded.model(torch.tensor([walk.ids]), trace=trace)[0]
    place = len(walk.prompt)
    row = trace["blocks.0.attn.pattern"][0, :, place].mean(0)
    np.testing.assert_allclose(look.attention, row, atol=1e-5)
    assert (look.chosen, look.position) == (chr(77), place + 1)
    best = logits[place].softmax(-1).topk(3)
    np.testing.assert_allclose(look.lens_probabilities[-1], best.values, atol=1e-5)
    assert look.cache_bytes == 2 * 2 * 3 * 10 * 4 * (place + 1)  # k and v, layers, heads, d, bytes
    with pytest.raises(ConfigError, match="choose 0 to 1"):
        look_at(loaded, walk, layer=2)


def test_a_walk_works_in_a_conversation(loaded):
    walk = begin_walk(loaded, "hi", chat=True)
    assert (walk.prompt[0], walk.prompt[-1]) == (1, 2)


def test_two_settings_part_where_their_tokens_differ(loaded):
    *_, pair = stream_pair(loaded, TEXT, SamplingSettings(temperature=0.0), WARM, max_new_tokens=5)
    assert pair.finished
    one, two = ([t.id for t in tokens] for tokens in (pair.first, pair.second))
    assert one[: pair.parting] == two[: pair.parting]
    assert one[pair.parting] != two[pair.parting]
    *_, same = stream_pair(loaded, TEXT, WARM, WARM, max_new_tokens=5)
    assert same.parting == len(same.first) == 5


def test_the_tree_holds_the_sums_of_its_path(loaded):
    tree = compute_beam_tree(loaded, TEXT, BeamSettings(n_beams=3, max_new_tokens=4))
    for node in tree.nodes:
        before = 0.0 if node.parent is None else tree.nodes[node.parent].total
        assert node.total == pytest.approx(before + node.log_probability, abs=1e-4)
    best = [node for node in tree.nodes if node.best]
    assert [node.depth for node in best] == [1, 2, 3, 4]
    assert best[-1].total == pytest.approx(tree.texts[0].log_probability, abs=1e-6)
    assert tree.texts[0].score == pytest.approx(best[-1].total / 4, abs=1e-6)
    assert len(tree.greedy) == len(tree.drawn) == 4


def test_a_round_offers_what_came_and_the_models_likeliest(loaded):
    text = "Once upon a time there was a village by the sea."
    rounds = make_rounds(loaded, text, n_rounds=3, seed=1)
    assert rounds == make_rounds(loaded, text, n_rounds=3, seed=1)
    ids = loaded.tokenizer.encode(text)
    for one in rounds:
        place = len(loaded.tokenizer.encode(one.context))
        with torch.no_grad():
            p = loaded.model(torch.tensor([ids[:place]]))[0, -1].softmax(-1)
        came = [option for option in one.options if option.came]
        assert len(came) == 1
        assert came[0].probability == pytest.approx(float(p[ids[place]]), abs=1e-5)
        assert one.model_right == (int(p.argmax()) == ids[place])
        assert len(one.options) == 4
    with pytest.raises(ConfigError, match="too few"):
        make_rounds(loaded, "ab")
