"""The way of one choice: published numbers, the library's own filters, plain formulas."""

import math

import numpy as np
import pytest
import torch

from explorer.draws import draw_many
from explorer.errors import ConfigError, ContextError
from explorer.next_token import (
    SamplingSettings,
    compute_next_logits,
    trace_next_token,
)
from explorer.typed_logits import parse_logits
from tests.components.tiny_chat import build_tiny_chat

NINE = """closer 4.51, every 0.89, effort -1.90
forward 6.75, inches 1.63, moves -1.62
pizza -1.89
toward 6.28, you 1.79"""
ORDER = ["closer", "every", "effort", "forward", "inches", "moves", "pizza", "toward", "you"]
SOFTMAX = [0.0609, 0.0016, 0.0001, 0.5721, 0.0034, 0.0001, 0.0001, 0.3576, 0.0040]
DRAWN = [73, 0, 0, 582, 2, 0, 0, 343, 0]


def by_word(found, name):
    return {candidate.label: getattr(candidate, name) for candidate in found.candidates}


def test_the_nine_words_as_published():
    given = parse_logits(NINE)
    found = by_word(trace_next_token(given), "probability")
    assert [round(found[word], 4) for word in ORDER] == SOFTMAX
    draws = {token.label: token for token in draw_many(given).tokens}
    assert [draws[word].count for word in ORDER] == DRAWN
    assert draws["forward"].expected == pytest.approx(572.1, abs=0.1)
    assert draws["forward"].deviation == pytest.approx(math.sqrt(572.1 * (1 - 0.5721)), abs=0.01)
    three = by_word(trace_next_token(given, SamplingSettings(top_k=3)), "final")
    kept = [three[word] for word in ("closer", "forward", "toward")]
    assert kept == pytest.approx([0.0615, 0.5775, 0.3610], abs=5e-5)
    cold = by_word(trace_next_token(given, SamplingSettings(temperature=0.1)), "final")
    hot = by_word(trace_next_token(given, SamplingSettings(temperature=5.0)), "final")
    assert (round(cold["forward"], 4), round(hot["pizza"], 4)) == (0.9910, 0.0430)


def test_each_filter_says_what_it_removed_and_why():
    given = parse_logits("a 4, b 3, c 2, d 1, e 0")
    found = trace_next_token(given, SamplingSettings(top_k=4, top_p=0.9, min_p=0.3))
    p = np.exp([4.0, 3, 2, 1, 0])
    p /= p.sum()
    assert by_word(found, "removed_by") == {
        "a": None, "b": None, "c": "min_p", "d": "top_p", "e": "top_k",
    }  # fmt: skip
    stages = {stage.name: stage for stage in found.stages}
    assert [stages[name].kept for name in ("logits", "top_k", "top_p", "min_p")] == [5, 4, 3, 2]
    assert stages["top_k"].removed_mass == pytest.approx(p[4], abs=1e-6)
    four = p[:4] / p[:4].sum()
    assert stages["top_p"].removed_mass == pytest.approx(four[3], abs=1e-6)
    assert stages["top_p"].bound == pytest.approx(four[2], abs=1e-6)
    assert by_word(found, "reached")["c"] == pytest.approx(four[:3].sum(), abs=1e-6)
    two = p[:2] / p[:2].sum()
    entropy = float(-(two * np.log(two)).sum())
    assert found.pick.entropy_nats == pytest.approx(entropy, abs=1e-6)
    assert found.pick.perplexity == pytest.approx(math.exp(entropy), abs=1e-5)
    assert sum(by_word(found, "final").values()) == pytest.approx(1, abs=1e-6)


def test_greedy_takes_the_best_after_the_penalty():
    given = parse_logits("a 4, b 3")
    found = trace_next_token(given, SamplingSettings(temperature=0.0))
    assert by_word(found, "final") == {"a": 1.0, "b": 0.0}
    assert found.greedy
    assert [
        token.count for token in draw_many(given, SamplingSettings(temperature=0.0)).tokens
    ] == [1000]


def test_the_logits_are_those_of_the_model_after_the_text():
    loaded = build_tiny_chat()
    given = compute_next_logits(loaded, "ab 玛")
    with torch.no_grad():
        expected = loaded.model(torch.tensor([loaded.tokenizer.encode("ab 玛")]))[0, -1]
    np.testing.assert_allclose(given.logits, expected, atol=1e-5)
    assert list(given.candidate_ids) == expected.topk(64).indices.tolist()
    chat = compute_next_logits(loaded, "ab", chat=True)
    assert list(chat.ids) == [1, *loaded.tokenizer.encode("ab"), 2]


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": 1e-9},
        {"temperature": math.inf},
        {"top_p": 0.0},
        {"top_k": -1},
    ],
    ids=str,
)
def test_impossible_dials_are_refused_with_a_remedy(wrong):
    with pytest.raises(ConfigError, match="choose a value"):
        trace_next_token(parse_logits(NINE), SamplingSettings(**wrong))


def test_dials_at_their_ends_change_nothing():
    given = parse_logits(NINE)
    plain = trace_next_token(given)
    for same in (SamplingSettings(top_k=100_000), SamplingSettings(top_k=0, top_p=1.0)):
        assert trace_next_token(given, same).candidates == plain.candidates


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("a -inf, b -inf", "no logit is finite"),
        ("a 1", "give 2 to 200"),
        ("a 1, b", "write it as"),
        ("a 1, b nan", "write it as"),
    ],
)
def test_numbers_that_give_no_probability_are_refused(typed, message):
    with pytest.raises(ConfigError, match=message):
        parse_logits(typed)


def test_prompts_that_cannot_be_read_are_refused():
    loaded = build_tiny_chat()
    with pytest.raises(ConfigError, match="type some"):
        compute_next_logits(loaded, "")
    with pytest.raises(ContextError, match="at most 200"):
        compute_next_logits(loaded, "x" * 300)
    with pytest.raises(ConfigError, match="choose 1 to"):
        draw_many(parse_logits(NINE), n_draws=0)


@pytest.mark.slow
def test_final_probabilities_equal_the_processors_of_transformers():
    from transformers import generation as theirs

    generator = torch.Generator().manual_seed(11)
    for _ in range(20):
        logits = torch.randn(1, 61, generator=generator) * 4
        text = "\n".join(f"w{i} {value}" for i, value in enumerate(logits[0].tolist()))
        draw = torch.rand(4, generator=generator).tolist()
        dials = SamplingSettings(
            temperature=0.3 + draw[0], top_k=int(5 + 40 * draw[1]), top_p=0.5 + draw[2] / 2,
            min_p=draw[3] / 4,
        )  # fmt: skip
        expected = logits
        for step in (
            theirs.TemperatureLogitsWarper(dials.temperature),
            theirs.TopKLogitsWarper(dials.top_k),
            theirs.TopPLogitsWarper(dials.top_p),
            theirs.MinPLogitsWarper(dials.min_p),
        ):
            expected = step(torch.zeros(1, 0, dtype=torch.long), expected)
        found = by_word(trace_next_token(parse_logits(text), dials, most=61), "final")
        for i, value in enumerate(expected[0].softmax(-1).tolist()):
            assert found[f"w{i}"] == pytest.approx(value, abs=1e-6)
