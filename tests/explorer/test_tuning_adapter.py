"""An adapter beside, merged and taken out: against plain products and against PEFT's own merge."""

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError, JobError
from explorer.training.learner import decoder_of, make_learner, plain_decoder, write_learner_files
from explorer.training.tuning_config import TuningConfig
from explorer.tuning_adapter import AdapterReport, inspect_adapter
from models.initialise import build_decoder
from models.loading import load_model
from models.lora import lora_layers
from models.lora_config import LoraConfig
from models.saving import save_model
from models.tokenizers.bpe_trainer import train_bpe
from tests.explorer.training.run_cases import TEXT
from tests.explorer.training.tiny_models import GPT, LLAMA

TUNING = TuningConfig(
    base="base",
    base_name="base",
    trains="lora",
    lora=LoraConfig(rank=2, alpha=6.0, targets=("q_proj", "down_proj")),
)
Folders = tuple[Path, Path]


def make_folders(folder: Path, shape=LLAMA, tuning: TuningConfig = TUNING) -> Folders:
    """A base, and a checkpoint of it whose adapter has learned something."""
    tokenizer = train_bpe(TEXT, vocab_size=280, special_tokens=("<|endoftext|>",)).to_tokenizer("t")
    config = replace(shape, vocab_size=tokenizer.vocab_size, context_length=200)
    draw = torch.Generator().manual_seed(3)
    save_model(folder / "base", build_decoder(config, draw), tokenizer=tokenizer)
    learner = make_learner(load_model(folder / "base").model, tuning, draw)
    with torch.no_grad():
        for _, layer in lora_layers(decoder_of(learner)):
            layer.lora_b.normal_(0, 0.3, generator=draw)
    save_model(folder / "tuned", plain_decoder(learner), tokenizer=tokenizer)
    write_learner_files(folder / "tuned", learner, tuning)
    return folder / "base", folder / "tuned"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Folders:
    return make_folders(tmp_path_factory.mktemp("adapter"))


def inspect(folders: Folders, strength=1.0, text="Ada has a ball", tuning=TUNING) -> AdapterReport:
    base, tuned = map(load_model, folders)
    return inspect_adapter(
        base, tuned, folders[1], tuning, text, strength=strength, turn=nullcontext
    )


def test_merged_and_beside_say_the_same_and_taken_out_is_the_base(folders: Folders) -> None:
    found = inspect(folders)
    base, beside, merged, apart = found.states
    assert [s.name for s in found.states] == ["base", "beside", "merged", "apart"]
    assert beside.distance(base) > 0.05
    assert merged.distance(beside) < 1e-5
    assert apart.distance(base) < 1e-5
    ids = torch.tensor([load_model(folders[0]).tokenizer.encode("Ada has a ball")])
    for state, folder in ((base, folders[0]), (merged, folders[1])):
        with torch.no_grad():
            wanted = load_model(folder).model(ids)[0, -1].numpy()
        np.testing.assert_allclose(state.logits, wanted, atol=1e-5)
    assert all(state.seconds > 0 for state in found.states)


def test_numbers_are_counted(folders: Folders) -> None:
    found = inspect(folders)
    model = load_model(folders[0]).model
    n_base = sum(p.numel() for p in model.parameters())
    n_adapter = sum(
        2 * (m.in_features + m.out_features)
        for n, m in model.named_modules()
        if n.endswith(("q_proj", "down_proj"))
    )
    assert (found.n_base, found.n_adapter) == (n_base, n_adapter)
    read = [s.n_numbers for s in found.states]
    assert read == [n_base, n_base + n_adapter, n_base, n_base]
    assert len(found.layers) == 2 * model.config.n_layers
    assert (found.rank, found.alpha) == (2, 6.0)


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0, 2.0])
def test_any_strength_is_the_base_and_so_much_of_the_correction(
    folders: Folders, strength: float
) -> None:
    base, tuned = map(load_model, folders)
    with torch.no_grad():
        for own, other in zip(base.model.parameters(), tuned.model.parameters(), strict=True):
            own.add_(strength * (other - own))
        ids = torch.tensor([base.tokenizer.encode("Ada has a ball")])
        wanted = base.model(ids)[0, -1].double().softmax(-1)
    found = inspect(folders, strength).choices
    best = wanted.argsort(descending=True)[: len(found)].tolist()
    assert [name for name, _ in found] == [base.tokenizer.decode([i]) for i in best]
    np.testing.assert_allclose([p for _, p in found], wanted[best].numpy(), rtol=1e-4)


def test_the_checkpoint_that_is_looked_at_stays_as_it_was(folders: Folders) -> None:
    base, tuned = map(load_model, folders)
    before = {name: tensor.clone() for name, tensor in tuned.model.state_dict().items()}
    inspect_adapter(base, tuned, folders[1], TUNING, "Ada", strength=2.0, turn=nullcontext)
    after = tuned.model.state_dict()
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_classes_are_chosen_in_place_of_tokens(tmp_path: Path) -> None:
    tuning = replace(TUNING, labels=("blue", "red"))
    folders = make_folders(tmp_path, tuning=tuning)
    found = inspect(folders, tuning=tuning)
    assert [name for name, _ in found.choices] == ["blue", "red"]
    assert sum(p for _, p in found.choices) == pytest.approx(1.0)
    assert found.states[2].distance(found.states[1]) < 1e-5
    assert len(found.states[0].logits) == 2


def test_what_has_no_adapter_says_so(folders: Folders, tmp_path: Path) -> None:
    with pytest.raises(JobError) as error:
        inspect(folders, tuning=replace(TUNING, trains="all", lora=None))
    assert error.value.code == "tune-no-adapter"
    joined = make_folders(tmp_path, replace(GPT, d_model=60))  # GPT-2's files keep q, k, v as one
    with pytest.raises(JobError) as error:
        inspect(joined)
    assert error.value.code == "tune-adapter-merged"
    with pytest.raises(ConfigError) as error:
        inspect(folders, text="")
    assert error.value.code == "text-empty"


@pytest.mark.slow
def test_peft_opens_an_adapter_with_the_head_that_was_trained_with_it(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForSequenceClassification

    tuning = replace(TUNING, labels=("blue", "red", "white"))
    folders = make_folders(tmp_path, tuning=tuning)
    theirs = AutoModelForSequenceClassification.from_pretrained(
        folders[0], num_labels=3, dtype=torch.float32
    )
    theirs = peft.PeftModel.from_pretrained(theirs, folders[1] / "adapter")
    ids = torch.tensor([load_model(folders[0]).tokenizer.encode("Ada has a ball")])
    with torch.no_grad():
        wanted = theirs(ids).logits[0].numpy()
    found = inspect(folders, tuning=tuning)
    np.testing.assert_allclose(found.states[1].logits, wanted, atol=1e-5)


@pytest.mark.slow
def test_peft_merges_to_the_same_logits(folders: Folders) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    found = inspect(folders)
    theirs = AutoModelForCausalLM.from_pretrained(folders[0], dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(theirs, folders[1] / "adapter").merge_and_unload()
    ids = torch.tensor([load_model(folders[0]).tokenizer.encode("Ada has a ball")])
    with torch.no_grad():
        wanted = theirs(ids).logits[0, -1].numpy()
    np.testing.assert_allclose(found.states[2].logits, wanted, atol=1e-5)
