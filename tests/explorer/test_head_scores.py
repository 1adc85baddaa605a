"""Previous-token and induction scores: patterns by hand, and the definition in plain loops."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError, TokenizerError
from explorer.head_scores import (
    compute_head_scores,
    draw_tokens,
    score_induction,
    score_previous_token,
)
from models import load_model
from models.trace import Trace


def with_tokenizer(loaded, tokenizer):
    return SimpleNamespace(model=loaded.model, config=loaded.config, tokenizer_or_error=tokenizer)


@pytest.fixture(scope="module")
def loaded(golden_folder):
    """Two layers of six heads, 97 tokens, context 61; no tokenizer."""
    return with_tokenizer(load_model(golden_folder / "llama"), TokenizerError("none"))


def by_hand(n: int) -> np.ndarray:
    """Three heads on two rows of n tokens: all to the token before, induction, all to the first."""
    pattern = np.zeros((3, 2 * n, 2 * n))
    pattern[:, 0, 0] = 1
    for t in range(1, 2 * n):
        pattern[0, t, t - 1] = 1
        pattern[1, t, t - n + 1 if t >= n else 0] = 1
        pattern[2, t, 0] = 1
    return pattern


def test_perfect_heads_score_one_and_others_nothing():
    pattern = by_hand(5)
    # heads 1 and 2 look at token 0 from token 1, which is the one before: 1 of 9
    assert score_previous_token(pattern) == pytest.approx([1, 1 / 9, 1 / 9])
    assert score_induction(pattern) == pytest.approx([0, 1, 0])


def test_two_tokens_by_hand():
    pattern = np.zeros((1, 4, 4))
    pattern[0, 2, 1], pattern[0, 3, 2] = 0.6, 0.2  # r0 -> r1 of the first half; r1 -> what followed
    assert score_induction(pattern) == pytest.approx([0.4])


def test_they_equal_the_definition_in_plain_loops(loaded):
    n, seed = 7, 3
    found = compute_head_scores(loaded, half_tokens=n, n_sequences=2, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    previous, induction = np.zeros((2, 6)), np.zeros((2, 6))
    for _ in range(2):
        half = draw_tokens(97, n, generator).tolist()
        ids = half + half
        trace = Trace(record=("blocks.*.attn.pattern",))
        loaded.model(torch.tensor([ids]), trace=trace)
        for layer in range(2):
            for head in range(6):
                weights = trace[f"blocks.{layer}.attn.pattern"][0, head].tolist()
                previous[layer, head] += sum(weights[t][t - 1] for t in range(1, 14)) / 13 / 2
                total = sum(weights[t][ids.index(ids[t]) + 1] for t in range(n, 14))
                induction[layer, head] += total / n / 2
    assert found.previous_token == pytest.approx(previous, rel=1e-5)
    assert found.induction == pytest.approx(induction, rel=1e-5)
    best = found.best_induction
    assert best.score == found.induction[best.layer, best.head] == found.induction.max()
    best = found.best_previous_token
    assert best.score == found.previous_token[best.layer, best.head] == found.previous_token.max()


def test_a_token_in_front_is_read_and_not_counted(loaded):
    class Bos:
        adds_bos, bos_id = True, 1

    seen = []

    def watch(ids, trace, last_only):
        seen.append(ids[0].tolist())
        return loaded.model(ids, trace=trace, last_only=last_only)

    model = SimpleNamespace(device=loaded.model.device)
    watched = SimpleNamespace(
        model=type("Watch", (), {"__call__": staticmethod(watch), "device": model.device})(),
        config=loaded.config,
        tokenizer_or_error=Bos(),
    )
    found = compute_head_scores(watched, half_tokens=7, n_sequences=1)
    (ids,) = seen
    assert ids[0] == 1
    assert ids[1:8] == ids[8:]
    assert found.induction.shape == (2, 6)
    assert (found.induction > 0).all()


def test_the_seed_decides(loaded):
    first, again, other = (
        compute_head_scores(loaded, half_tokens=9, n_sequences=2, seed=seed) for seed in (1, 1, 2)
    )
    assert (first.induction == again.induction).all()
    assert (first.induction != other.induction).any()


def test_no_token_stands_twice_in_a_row():
    tokens = draw_tokens(97, 97, torch.Generator().manual_seed(0)).tolist()
    assert sorted(tokens) == list(range(97))


@pytest.mark.parametrize("half_tokens", [1, 31])
def test_what_does_not_fit_is_refused_with_the_limit(loaded, half_tokens):
    with pytest.raises(ConfigError, match="2 to 30"):
        compute_head_scores(loaded, half_tokens=half_tokens)


def test_no_sequence_is_refused(loaded):
    with pytest.raises(ConfigError, match="at least 1"):
        compute_head_scores(loaded, half_tokens=7, n_sequences=0)
