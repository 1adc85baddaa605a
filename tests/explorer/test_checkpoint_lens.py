"""The lens over checkpoints, against whole passes of each of them."""

from contextlib import contextmanager, nullcontext

import pytest
import torch

from explorer.checkpoint_lens import choose_steps, stream_checkpoint_lens
from explorer.checkpoint_sources import run_of
from explorer.errors import ConfigError
from models.initialise import build_decoder
from tests.components.tiny_chat import CONFIG, build_tiny_chat

TEXT = "ab 玛 cd"


@pytest.fixture(scope="module")
def checkpoints():
    """Three models that differ, with one tokenizer."""
    found = {}
    for step in (0, 40, 80):
        loaded = build_tiny_chat()
        other = build_decoder(CONFIG, torch.Generator().manual_seed(100 + step))
        loaded.model.load_state_dict(other.state_dict())
        found[step] = loaded
    return found


def answer(loaded, position=-1):
    with torch.no_grad():
        logits = loaded.model(torch.tensor([loaded.tokenizer.encode(TEXT)]))
    return logits[0, position].double().softmax(-1)


def test_the_last_layer_of_each_is_its_own_answer(checkpoints):
    opened = []

    @contextmanager
    def open_checkpoint(step):
        opened.append(step)
        yield checkpoints[step]

    steps = list(stream_checkpoint_lens(open_checkpoint, (0, 40, 80), TEXT))
    assert [len(step.lenses) for step in steps] == [1, 2, 3]
    assert opened == [80, 0, 40, 80]
    last = steps[-1]
    assert (last.steps, last.position) == ((0, 40, 80), 8)
    newest = int(answer(checkpoints[80]).argmax())
    assert last.target.id == newest
    assert not last.target.chosen
    for step, lens in zip(last.steps, last.lenses, strict=True):
        p = answer(checkpoints[step])
        assert int(lens.top_ids[-1, 0]) == int(p.argmax())
        assert lens.answer_probabilities[-1] == pytest.approx(float(p[newest]), abs=1e-6)
        assert lens.answer_ranks[-1] == int((p > p[newest]).sum())
    assert last.lenses[-1].answer_ranks[-1] == 0


def test_a_word_of_ones_own_is_followed_at_a_chosen_place(checkpoints):
    *_, last = stream_checkpoint_lens(
        lambda step: nullcontext(checkpoints[step]), (0, 80), TEXT, position=2, target="z"
    )
    assert (last.target.id, last.target.chosen, last.labels[2]) == (3 + ord("z"), True, "·")
    p = answer(checkpoints[0], 2)
    assert last.lenses[0].answer_probabilities[-1] == pytest.approx(
        float(p[3 + ord("z")]), abs=1e-6
    )


def test_of_a_long_text_what_leads_to_the_place_is_read(checkpoints):
    def read(position):
        *_, last = stream_checkpoint_lens(
            lambda step: nullcontext(checkpoints[step]),
            (80,),
            "ab" * 60 + "cd" * 60,
            position=position,
        )
        return last

    end, early = read(-1), read(100)
    assert (len(end.ids), end.position, end.n_left_out) == (128, 127, 112)
    assert (end.labels[-1], end.labels[0]) == ("d", "a")
    assert (len(early.ids), early.position, early.labels[100]) == (128, 100, "a")
    with torch.no_grad():
        logits = checkpoints[80].model(torch.tensor([end.ids]))[0, -1]
    assert int(end.lenses[0].top_ids[-1, 0]) == int(logits.argmax())
    with pytest.raises(ConfigError, match="type some"):
        next(stream_checkpoint_lens(lambda step: nullcontext(checkpoints[80]), (80,), ""))


def test_many_checkpoints_are_thinned_and_none_is_refused(checkpoints):
    assert choose_steps(range(0, 1000, 10), 5) == (0, 250, 500, 740, 990)
    assert choose_steps((0, 7), 5) == (0, 7)
    with pytest.raises(ConfigError, match="wait for its first"):
        next(stream_checkpoint_lens(lambda step: nullcontext(checkpoints[step]), (), TEXT))
    assert run_of("run:abc_DEF-1234567890@40#int8") == "abc_DEF-1234567890"
    assert run_of("starter") == ""
