"""A translation looked at: against the model's own passes, step by step."""

import numpy as np
import pytest
import torch

from explorer.datasets.translations import END_ID, START_ID, get_task
from explorer.errors import ConfigError, ContextError
from explorer.training.translation_setup import TranslationSetup, build_translation_run
from explorer.translation_runs import Translator
from explorer.translation_view import TranslateSettings, compute_translation, pattern_of
from models.encoder_decoder import search_target
from models.initialise import build_encoder_decoder
from models.trace import Trace

L, H = 2, 2


@pytest.fixture(scope="module")
def translator():
    config = build_translation_run(TranslationSetup(task="dates", d_model=16 * H, n_layers=L))
    assert config.translation is not None
    both = config.translation.both_stacks(config.model)
    model = build_encoder_decoder(both, torch.Generator().manual_seed(11))
    return Translator(model.requires_grad_(False), get_task("dates"), 7)


@pytest.fixture(scope="module")
def found(translator):
    return compute_translation(translator, TranslateSettings(text="Mar 5, 1987", n_beams=3))


def test_attention_is_what_the_decoder_reads_step_by_step(translator, found):
    """Each row again with the tokens so far alone, and the encoder's text read once."""
    task, model = translator.task, translator.model
    memory = model.encode(torch.tensor([task.cut("Mar 5, 1987")]))
    ids = [START_ID, *(task.cut(found.greedy) if found.greedy else [])]
    assert found.source_labels == ("Mar", "5", ",", "1", "9", "8", "7")
    assert found.patterns.shape == (L, H, len(found.chosen), 7)
    np.testing.assert_allclose(found.patterns.sum(axis=-1), 1, atol=1e-5)
    for place in range(min(4, len(ids))):
        trace = Trace(record=("decoder.blocks.*.cross_attn.pattern",))
        logits = model.decode(torch.tensor([ids[: place + 1]]), memory, trace=trace)[0, -1]
        for layer in range(L):
            row = trace[f"decoder.blocks.{layer}.cross_attn.pattern"][0, :, -1]
            np.testing.assert_allclose(found.patterns[layer][:, place], row, atol=1e-5)
        best = logits.softmax(dim=-1)
        assert found.candidates[place][0].probability == pytest.approx(best.max().item(), rel=1e-4)
        assert found.chosen[place] == task.label(int(best.argmax()))


def test_the_beam_is_that_of_the_model_and_greedy_is_one_beam(translator, found):
    task, model = translator.task, translator.model
    source = task.cut("Mar 5, 1987")
    alone = compute_translation(translator, TranslateSettings(text="Mar 5, 1987", n_beams=1))
    assert alone.texts[0].text == found.greedy
    assert alone.texts[0].log_probability == pytest.approx(found.greedy_total, rel=1e-4)
    assert len(found.texts) == 3
    from models.beam import BeamConfig

    config = BeamConfig(n_beams=3, max_new_tokens=11, length_penalty=0.6)
    expected = search_target(model, source, config, start_id=START_ID, stop_ids={END_ID})
    assert [text.score for text in found.texts] == [beam.score for beam in expected.beams]
    assert found.wanted == "1987-03-05"
    assert found.step == 7


def test_a_head_or_the_mean_of_all(found):
    np.testing.assert_allclose(pattern_of(found, 1, -1), found.patterns[1].mean(axis=0))
    np.testing.assert_array_equal(pattern_of(found, 0, 1), found.patterns[0, 1])
    for layer, head in ((L, 0), (0, H), (-1, 0), (0, -2)):
        with pytest.raises(ConfigError, match="choose a layer from 0 to 1"):
            pattern_of(found, layer, head)


def test_what_is_too_long_is_refused(translator):
    with pytest.raises(ContextError, match="at most 8"):
        compute_translation(translator, TranslateSettings(text="5 March 1987, 1987"))
