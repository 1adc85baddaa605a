"""The logit lens: each row is the answer of the same model cut off after that layer."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError
from explorer.logit_lens import compute_logit_lens
from models import Decoder, load_model

IDS = (5, 17, 3, 88, 42, 11, 9)


@pytest.fixture(scope="module", params=["llama", "gpt2", "gemma3_text", "olmo3", "qwen3_moe"])
def loaded(request, golden_folder):
    model = load_model(golden_folder / request.param)
    words = SimpleNamespace(decode=lambda ids: " ".join(map(str, ids)))
    return SimpleNamespace(model=model.model, config=model.config, tokenizer=words)


def cut_after(loaded, n_layers):
    """The same weights with fewer blocks."""
    config = replace(loaded.config, layer_types=loaded.config.layer_types[:n_layers])
    with torch.device("meta"):
        model = Decoder(config)
    kept = {k: v for k, v in loaded.model.state_dict().items() if k in model.state_dict()}
    model.load_state_dict(kept, assign=True)
    return model


@pytest.mark.parametrize("position", [-1, 2])
def test_each_layer_says_what_the_model_cut_off_there_says(loaded, position):
    lens = compute_logit_lens(loaded, IDS, position=position, n_top=4)
    assert lens.stages == ("embed", *map(str, range(loaded.config.n_layers)))
    for n_layers in range(1, loaded.config.n_layers + 1):
        with torch.no_grad():
            logits = cut_after(loaded, n_layers)(torch.tensor([IDS]))[0, position].double()
        p = torch.softmax(logits, -1)
        best = p.topk(4)
        assert lens.top_ids[n_layers].tolist() == best.indices.tolist()
        np.testing.assert_allclose(lens.top_probabilities[n_layers], best.values, rtol=1e-4)
        entropy = float(-(p * p.log()).sum())
        assert lens.entropies_nats[n_layers] == pytest.approx(entropy, rel=1e-4)


def test_the_last_row_is_the_models_own_answer(loaded):
    lens = compute_logit_lens(loaded, IDS)
    with torch.no_grad():
        logits = loaded.model(torch.tensor([IDS]))[0, -1]
    assert lens.top_ids[-1, 0] == int(logits.argmax())
    assert lens.answer_ranks[-1] == 0
    assert lens.top_tokens[-1][0] == str(int(logits.argmax()))


def test_the_rank_of_the_answer_is_its_place_in_each_layer(loaded):
    lens = compute_logit_lens(loaded, IDS, n_top=loaded.config.vocab_size)
    answer = lens.top_ids[-1, 0]
    places = [row.tolist().index(answer) for row in lens.top_ids]
    assert lens.answer_ranks.tolist() == places


def test_a_position_outside_the_text_is_refused(loaded):
    with pytest.raises(ConfigError, match="7 tokens"):
        compute_logit_lens(loaded, IDS, position=7)
