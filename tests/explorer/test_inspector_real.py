"""Losses of a real text with real weights, against the library's model and its own loop."""

import math

import pytest
import torch

from explorer.perplexity import compute_perplexity
from explorer.token_losses import compute_token_losses
from models import load_model

pytestmark = pytest.mark.slow

WIDTH, STRIDE = 512, 256
N_CHARACTERS = 6_000


def sliding_nats(theirs, ids):
    """Sum of losses and count, as the documentation of transformers measures long texts."""
    total, count, read_to = 0.0, 0, 0
    for begin in range(0, len(ids), STRIDE):
        end = min(begin + WIDTH, len(ids))
        row = torch.tensor([ids[begin:end]])
        labels = row.clone()
        labels[:, : -(end - read_to)] = -100  # seen before
        n_counted = int((labels[:, 1:] != -100).sum())
        with torch.no_grad():
            mean = theirs(row, labels=labels).loss
        total, count, read_to = total + float(mean) * n_counted, count + n_counted, end
        if end == len(ids):
            return total, count
    raise AssertionError("the last window ends the text")


def test_perplexity_of_a_story_equals_that_of_transformers(smollm2_file, data_folder):
    from transformers import LlamaForCausalLM

    # The whole of it takes minutes: 34.25435 here, 34.25406 there (tests/benchmarks/results.md).
    text = (data_folder / "the-verdict.txt").read_text(encoding="utf-8")[:N_CHARACTERS]
    loaded = load_model(smollm2_file)
    losses = compute_token_losses(loaded, text)
    theirs = LlamaForCausalLM.from_pretrained(smollm2_file.parent, gguf_file=smollm2_file.name)
    total, count = sliding_nats(theirs.eval(), loaded.tokenizer.encode(text))
    assert (count, losses.n_left_out) == (len(losses.nats), 0)
    # in float32: the two libraries round rotations differently
    assert losses.mean_nats == pytest.approx(total / count, abs=2e-5)
    assert losses.perplexity == pytest.approx(math.exp(total / count), rel=1e-4)
    short = text[:2_000]
    both = compute_token_losses(loaded, short).perplexity, compute_perplexity(loaded, short)
    assert both[0] == pytest.approx(both[1].perplexity, rel=1e-4)
