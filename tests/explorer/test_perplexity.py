"""Perplexity against plain sums, and what 8 bits cost of it on real weights."""

import math
from types import SimpleNamespace

import pytest
import torch

from explorer.errors import ConfigError
from explorer.perplexity import compute_perplexity, windows
from models import load_model


class Letters:
    """A tokenizer of capital letters; 26 begins a text if asked to."""

    adds_bos, bos_id = False, 26

    def encode(self, text, special=False):
        return [ord(letter) - 65 for letter in text]


@pytest.fixture
def tiny(golden_folder):
    """A recorded checkpoint that reads capital letters."""
    loaded = load_model(golden_folder / "llama")
    return SimpleNamespace(model=loaded.model, config=loaded.config, tokenizer=Letters())


def plain_losses(model, ids):
    """Loss of each token after the first, by the definition, in float64."""
    probabilities = model(torch.tensor([ids]))[0].double().softmax(dim=-1)
    return [-math.log(probabilities[i, ids[i + 1]].item()) for i in range(len(ids) - 1)]


def test_it_is_the_exponential_of_the_mean_loss(tiny):
    found = compute_perplexity(tiny, "HELLOWORLD")
    losses = plain_losses(tiny.model, Letters().encode("HELLOWORLD"))
    assert found.n_tokens == 9
    assert found.mean_nats == pytest.approx(sum(losses) / 9, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(sum(losses) / 9), rel=1e-5)


def test_windows_overlap_by_half_and_count_each_token_once(tiny):
    text = "THEQUICKBROWNFOXJUMPS"
    ids = Letters().encode(text)
    expected = plain_losses(tiny.model, ids[:6])  # tokens 1 to 5
    for start, end, first in ((3, 9, 6), (6, 12, 9), (9, 15, 12), (12, 18, 15), (15, 21, 18)):
        expected += plain_losses(tiny.model, ids[start:end])[first - start - 1 :]
    found = compute_perplexity(tiny, text, window_tokens=6)
    assert len(expected) == found.n_tokens == 20
    assert found.mean_nats == pytest.approx(sum(expected) / 20, rel=1e-5)


@pytest.mark.parametrize("n_tokens", [2, 3, 7, 8, 9, 50])
@pytest.mark.parametrize("width", [2, 3, 8])
def test_no_token_is_left_out_or_seen_without_one_before_it(n_tokens, width):
    counted = []
    for start, end, first in windows(n_tokens, width):
        assert start < first < end <= start + width
        counted += range(first, end)
    assert counted == list(range(1, n_tokens))


def test_a_beginning_token_goes_in_front(tiny):
    tiny.tokenizer.adds_bos = True
    losses = plain_losses(tiny.model, [26, *Letters().encode("AB")])
    found = compute_perplexity(tiny, "AB")
    assert (found.n_tokens, found.mean_nats) == (2, pytest.approx(sum(losses) / 2, rel=1e-5))


def test_of_one_token_nothing_can_be_said(tiny):
    with pytest.raises(ConfigError, match="type more"):
        compute_perplexity(tiny, "A")


def test_a_long_text_is_cut_and_each_pass_takes_a_turn(tiny):
    from contextlib import contextmanager

    turns = []

    @contextmanager
    def turn():
        turns.append(1)
        yield

    found = compute_perplexity(tiny, "A" * 40, most_tokens=12, window_tokens=8, turn=turn)
    assert (found.n_tokens, len(turns)) == (11, 2)


@pytest.mark.slow
def test_eight_bits_cost_less_than_2_percent_on_real_text(smollm2_file, data_folder):
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")
    found = {
        dtype: compute_perplexity(load_model(smollm2_file, dtype=dtype), text, most_tokens=1_024)
        for dtype in ("float32", "int8")
    }
    assert found["float32"].n_tokens == 1_023
    assert 5 < found["float32"].perplexity < 50  # a story of 1908, a model of 135 M
    ratio = found["int8"].perplexity / found["float32"].perplexity
    print(found, ratio)
    assert 0.98 < ratio < 1.02
