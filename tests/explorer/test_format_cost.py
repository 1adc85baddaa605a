"""What a number format costs: measured with both, by the definition, with progress and a stop."""

import math
from contextlib import contextmanager
from dataclasses import replace

import pytest
import torch

from explorer.errors import ConfigError, Stopped
from explorer.format_cost import measure_format_cost, read_sample
from explorer.perplexity import windows
from explorer.store_records import LoadStep
from models import load_model


class Letters:
    """A tokenizer of letters, for a vocabulary of 97."""

    adds_bos, bos_id = False, None

    def encode(self, text, special=False):
        return [ord(letter) % 97 for letter in text]


class Shelf:
    """A store of one recorded checkpoint in every format."""

    def __init__(self, folder):
        self._folder = folder
        self.loaded = {}
        self.unloaded = []

    def open(self, source, owner):
        yield LoadStep("reading", 1, 4)
        dtype = source.partition("#")[2] or "float32"
        found = load_model(self._folder, dtype=dtype)
        self.loaded[source] = replace(found, tokenizer_or_error=Letters())
        yield LoadStep("ready", 4, 4)

    def summary(self, source, owner):
        return self.loaded.get(source)

    @contextmanager
    def lease(self, source, owner, *, cancelled=None):
        yield self.loaded[source]

    def unload(self, source, owner):
        del self.loaded[source]
        self.unloaded.append(source)


@pytest.fixture
def shelf(golden_folder):
    return Shelf(golden_folder / "llama")


def _plain_perplexity(model):
    ids = Letters().encode(read_sample())
    nats = []
    for start, end, first in windows(len(ids), 61):  # its context, below the window
        table = model(torch.tensor([ids[start:end]]))[0].double().log_softmax(-1)
        nats += [-float(table[i - 1 - start, ids[i]]) for i in range(first, end)]
    assert len(nats) == len(ids) - 1
    return math.exp(sum(nats) / len(nats))


def test_both_perplexities_are_those_of_the_definition(shelf, golden_folder):
    *steps, last = measure_format_cost(shelf, "tiny#int8", "me")
    for dtype, found in (("float32", last.cost.exact), ("int8", last.cost.rounded)):
        model = load_model(golden_folder / "llama", dtype=dtype).model
        assert found.perplexity == pytest.approx(_plain_perplexity(model), rel=1e-4)
        assert found.n_tokens == len(read_sample()) - 1
    ratio = last.cost.rounded.perplexity / last.cost.exact.perplexity
    assert last.cost.added_share == pytest.approx(ratio - 1)
    assert abs(last.cost.added_share) > 1e-5  # 8 bits are another model
    assert [s.dtype for s in steps] == sorted(s.dtype for s in steps)  # one after the other
    shares = [s.done_share for s in steps if s.phase == "measuring" and s.dtype == "int8"]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)
    assert len(shares) > 10


def test_models_loaded_for_it_go_and_open_ones_stay(shelf):
    *_, ready = shelf.open("tiny", "me")
    list(measure_format_cost(shelf, "tiny#int8", "me"))
    assert shelf.unloaded == ["tiny#int8"]
    assert list(shelf.loaded) == ["tiny"]


def test_it_stops_between_two_passes_and_unloads(shelf):
    asked = []

    def stopped():
        asked.append(1)
        return len(asked) > 4

    with pytest.raises(Stopped):
        list(measure_format_cost(shelf, "tiny#int8", "me", stopped=stopped))
    assert shelf.unloaded == ["tiny"]
    assert not shelf.loaded


@pytest.mark.parametrize("source", ["tiny", "#int8", "tiny#float32"])
def test_float32_is_not_compared_with_itself(shelf, source):
    with pytest.raises(ConfigError, match="choose a model, and bfloat16 or int8"):
        list(measure_format_cost(shelf, source, "me"))
