"""Sampling against transformers' own processors, published draws, and generation against itself."""

import pytest
import torch

from models import KVCache, SamplingConfig, generate
from models.errors import ConfigError, ContextError
from models.sampling import (
    choose,
    filtered_scores,
    keep_min_p,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
)

# closer, every, effort, forward, inches, moves, pizza, toward, you
NINE_WORDS = torch.tensor([4.51, 0.89, -1.90, 6.75, 1.63, -1.62, -1.89, 6.28, 1.79])
NOTHING_SEEN = torch.zeros(0, dtype=torch.int64)


def _seeded(seed):
    return torch.Generator().manual_seed(seed)


def test_a_thousand_single_draws_as_published():
    generator = _seeded(123)
    draws = [choose(NINE_WORDS, False, generator) for _ in range(1000)]
    assert torch.tensor(draws).bincount(minlength=9).tolist() == [73, 0, 0, 582, 2, 0, 0, 343, 0]


def test_top_three_as_published():
    kept = keep_top_k(NINE_WORDS, 3).softmax(-1)
    assert kept[[0, 3, 7]].tolist() == pytest.approx([0.0615, 0.5775, 0.3610], abs=5e-5)
    assert (kept > 0).sum() == 3


@pytest.mark.parametrize(("temperature", "word", "expected"), [(0.1, 3, 0.9910), (5.0, 6, 0.0430)])
def test_temperatures_as_published(temperature, word, expected):
    scores = filtered_scores(NINE_WORDS, NOTHING_SEEN, SamplingConfig(temperature=temperature))
    assert float(scores.softmax(-1)[word]) == pytest.approx(expected, abs=5e-5)


def test_ties_with_the_last_kept_stay():
    assert keep_top_k(torch.tensor([1.0, 3.0, 3.0, 2.0]), 1).isfinite().tolist() == [0, 1, 1, 0]


def test_at_least_one_token_stays():
    assert keep_top_p(NINE_WORDS, 1e-6).isfinite().sum() == 1
    assert keep_min_p(NINE_WORDS, 1.0).isfinite().sum() == 1


def test_greedy_takes_the_highest_after_the_penalty():
    config = SamplingConfig(temperature=0.0, repetition_penalty=2.0)
    scores = filtered_scores(NINE_WORDS, torch.tensor([3]), config)
    assert choose(scores, True, None) == 7


def test_a_penalty_pushes_negative_scores_down_too():
    found = penalise_repetition(torch.tensor([2.0, -2.0, 1.0]), torch.tensor([0, 1]), 4.0)
    assert found.tolist() == [0.5, -8.0, 1.0]


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": 1e-40},
        {"top_k": -1},
        {"top_p": 0.0},
        {"min_p": 2.0},
        {"repetition_penalty": 0.0},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match="choose a value"):
        SamplingConfig(**wrong)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_all_filters_in_order_equal_transformers(seed):
    from transformers import generation as theirs

    generator = _seeded(seed)
    logits = torch.randn(1, 97, generator=generator) * 4
    text = torch.randint(0, 97, (1, 30), generator=generator)
    draw = torch.rand(5, generator=generator).tolist()
    config = SamplingConfig(
        temperature=0.3 + draw[0], top_k=int(5 + 60 * draw[1]), top_p=0.5 + draw[2] / 2,
        min_p=draw[3] / 4, repetition_penalty=1 + draw[4],
    )  # fmt: skip
    expected = logits
    for step in (
        theirs.RepetitionPenaltyLogitsProcessor(config.repetition_penalty),
        theirs.TemperatureLogitsWarper(config.temperature),
        theirs.TopKLogitsWarper(config.top_k),
        theirs.TopPLogitsWarper(config.top_p),
        theirs.MinPLogitsWarper(config.min_p),
    ):
        expected = step(text, expected)
    found = filtered_scores(logits[0], text[0].unique(), config)
    torch.testing.assert_close(found, expected[0], atol=1e-6, rtol=0)


# ------------------------------------------------------------------------------ generation
PROMPT = [5, 17, 3, 88, 41]
GREEDY = SamplingConfig(temperature=0.0)


def _ids(tokens):
    return [token.id for token in tokens]


def _greedy_without_cache(model, prompt, n):
    ids = list(prompt)
    for _ in range(n):
        ids.append(int(model(torch.tensor([ids]))[0, -1].argmax()))
    return ids[len(prompt) :]


def test_greedy_through_the_cache_equals_argmax_of_whole_passes(model):
    found = _ids(generate(model, PROMPT, max_new_tokens=20, sampling=GREEDY))
    assert found == _greedy_without_cache(model, PROMPT, 20)


def test_a_long_prompt_read_in_chunks_gives_the_same(model, monkeypatch):
    prompt = torch.randint(0, 97, (40,), generator=_seeded(1)).tolist()
    whole = _ids(generate(model, prompt, max_new_tokens=5, sampling=GREEDY))
    monkeypatch.setattr("models.generation.PREFILL_CHUNK", 7)
    assert _ids(generate(model, prompt, max_new_tokens=5, sampling=GREEDY)) == whole


def test_tokens_carry_the_models_own_probabilities(model):
    token = next(generate(model, PROMPT, sampling=SamplingConfig(temperature=3.0, top_k=4)))
    expected = model(torch.tensor([PROMPT]))[0, -1].softmax(-1)
    assert token.probability == pytest.approx(float(expected[token.id]), abs=1e-6)
    best = expected.topk(10)
    assert [a.id for a in token.alternatives] == best.indices.tolist()
    assert [a.probability for a in token.alternatives] == pytest.approx(best.values.tolist())
    assert token.rank == int((expected > expected[token.id]).sum())
    scores = expected.log() / 3.0
    top = scores.topk(4).values.softmax(-1)
    assert token.drawn_probability == pytest.approx(float(top[token.rank]), abs=1e-5)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_text_and_another_another(model):
    def run(seed):
        sampling = SamplingConfig(temperature=5.0)
        return _ids(generate(model, PROMPT, sampling=sampling, generator=_seeded(seed)))

    state = torch.get_rng_state()
    assert run(1) == run(1)
    assert run(1) != run(2)
    assert torch.equal(torch.get_rng_state(), state)


def test_any_of_several_stop_ids_ends_it_and_is_the_last_token(model):
    free = _ids(generate(model, PROMPT, max_new_tokens=20, sampling=GREEDY))
    stop = free[7]
    tokens = list(generate(model, PROMPT, max_new_tokens=20, sampling=GREEDY, stop_ids={stop, 999}))
    assert _ids(tokens) == free[: free.index(stop) + 1]
    assert [t.finish for t in tokens] == [None] * (len(tokens) - 1) + ["stop"]


def test_it_says_when_the_length_or_the_context_is_reached(model):
    asked = list(generate(model, PROMPT, max_new_tokens=3, sampling=GREEDY))
    assert [t.finish for t in asked] == [None, None, "length"]
    full = list(generate(model, PROMPT, max_new_tokens=500, sampling=GREEDY))
    assert len(full) == 61 - 5
    assert full[-1].finish == "context"


def test_a_prompt_as_long_as_the_context_or_empty_is_refused(model):
    with pytest.raises(ContextError, match="at most 61"):
        next(generate(model, [1] * 61))
    with pytest.raises(ConfigError, match="empty"):
        next(generate(model, []))


def test_not_asking_for_the_next_token_stops_the_work(model):
    passes = []

    class Turn:
        def __enter__(self):
            passes.append(1)

        def __exit__(self, *_):
            return None

    stream = generate(model, PROMPT, max_new_tokens=50, sampling=GREEDY, turn=Turn)
    for _ in range(4):
        next(stream)
    stream.close()
    assert len(passes) == 4  # the prefill, and one for each token after the first


def test_a_cache_that_holds_the_beginning_is_gone_on_with(model):
    cache = KVCache(model.config, 1, 61)
    model(torch.tensor([PROMPT[:3]]), cache=cache)
    found = _ids(generate(model, PROMPT, max_new_tokens=8, sampling=GREEDY, cache=cache))
    assert found == _greedy_without_cache(model, PROMPT, 8)
    with pytest.raises(ConfigError, match="truncate"):
        next(generate(model, PROMPT, cache=cache))


def test_ids_that_the_model_does_not_know_are_refused(model):
    for wrong in ([5, 97], [-1]):
        with pytest.raises(ConfigError, match="knows 0 to 96"):
            next(generate(model, wrong))


def test_a_small_cache_ends_the_text_as_the_context_does_and_two_rows_are_refused(model):
    cache = KVCache(model.config, 1, 8)
    tokens = list(generate(model, PROMPT, max_new_tokens=20, sampling=GREEDY, cache=cache))
    assert (len(tokens), tokens[-1].finish) == (3, "context")
    with pytest.raises(ConfigError, match="2 rows"):
        next(generate(model, PROMPT, cache=KVCache(model.config, 2, 8)))


def test_a_draw_without_a_generator_is_refused():
    with pytest.raises(ConfigError, match="Generator"):
        choose(NINE_WORDS, False, None)
