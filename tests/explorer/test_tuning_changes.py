"""What a fine-tuning changed, and answers token by token, against plain torch."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.answer_tokens import join_models, read_answer_tokens
from explorer.datasets.examples import Example, Prompt
from explorer.errors import ConfigError
from explorer.training.tuning_config import TuningConfig
from explorer.tuning_changes import compare_passes, compare_weights, measure_variation
from explorer.tuning_scores import measure_answers
from models.initialise import build_decoder
from models.loading import LoadedModel, load_model
from models.saving import save_model
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.training.run_cases import TEXT
from tests.explorer.training.tiny_models import LLAMA


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedModel, LoadedModel]:
    tokenizer = train_bpe(TEXT, vocab_size=280, special_tokens=("<|endoftext|>",)).to_tokenizer("t")
    config = replace(LLAMA, vocab_size=tokenizer.vocab_size, context_length=200)
    found = []
    for name in ("before", "after"):
        folder: Path = tmp_path_factory.mktemp(name)
        model = build_decoder(config, torch.Generator().manual_seed(8))
        if name == "after":
            with torch.no_grad():
                model.blocks[1].attn.q_proj.weight.mul_(3.0)
                model.embed.weight.mul_(1.5)
        save_model(folder, model, tokenizer=tokenizer)
        found.append(load_model(folder))
    return found[0], found[1]


def test_each_matrix_moved_by_its_own_share(models: tuple[LoadedModel, LoadedModel]) -> None:
    found = compare_weights(*models)
    place = found.parts.index("attn.q_proj")
    wanted = np.zeros_like(found.layers)
    wanted[1, place] = 2.0
    np.testing.assert_allclose(found.layers, wanted, atol=1e-6)
    assert dict(found.others)["embed"] == pytest.approx(0.5)
    before, after = (dict(m.model.named_parameters()) for m in models)
    moved = torch.cat([(after[n] - before[n]).flatten() for n in before])
    size = torch.cat([p.flatten() for p in before.values()])
    assert found.total == pytest.approx(float(moved.norm() / size.norm()), rel=1e-5)
    other = load_model_of_another_size(models[0])
    with pytest.raises(ConfigError) as error:
        compare_weights(models[0], other)
    assert error.value.code == "tune-other-model"


def load_model_of_another_size(loaded: LoadedModel) -> LoadedModel:
    config = replace(loaded.config, layer_types=("full",) * 3)
    return replace(loaded, model=build_decoder(config, torch.Generator().manual_seed(1)))


def test_attention_and_lens_are_of_both_models(models: tuple[LoadedModel, LoadedModel]) -> None:
    found = compare_passes(*models, "Ada has two red balls.", turn=nullcontext)
    assert found.attention.shape == (2, 6)
    assert (found.attention[1] > 1e-3).all()
    assert ((found.attention >= 0) & (found.attention <= 1)).all()
    ids = torch.tensor([found.ids])
    for loaded, lens in zip(models, (found.before, found.after), strict=True):
        assert int(lens.top_ids[-1, 0]) == int(loaded.model(ids)[0, -1].argmax())
    first = np.array([[[[1.0, 0], [0.5, 0.5]]]])
    second = np.array([[[[1.0, 0], [0, 1.0]]]])
    assert measure_variation(first, second).tolist() == [[0.25]]
    with pytest.raises(ConfigError):
        compare_passes(*models, "", turn=nullcontext)


def test_tokens_of_an_answer_add_up_to_its_log_probability(
    models: tuple[LoadedModel, LoadedModel],
) -> None:
    tuning = TuningConfig(base="", template="phi3")
    example = Example(row=1, prompt=Prompt(instruction="Who has it?"), answer="Ada has old maps.")
    read = [
        read_answer_tokens(m, example, example.answer, tuning, turn=nullcontext) for m in models
    ]
    joined = join_models(read[1], read[0], models[0].tokenizer)
    assert "".join(unit.text for unit in joined.units) == "Ada has old maps.<|endoftext|>"
    for loaded, logs in zip(models, (joined.reference, joined.policy), strict=True):
        ((total, n),) = measure_answers(loaded, [example], [example.answer], tuning)
        assert (float(logs.sum()), len(logs)) == (pytest.approx(total, rel=1e-5), n)
    np.testing.assert_allclose(joined.gains, joined.policy - joined.reference)
