"""Adapters against the matrices that they stand for, and against PEFT."""

from pathlib import Path

import pytest
import torch

from models.errors import ConfigError, WeightError
from models.lora import (
    add_lora,
    base_weights,
    count_lora,
    lora_layers,
    merge_lora,
    merged_copy,
    share_base,
    unmerge_lora,
)
from models.lora_config import LoraConfig
from models.lora_files import load_adapter, save_adapter
from models.saving import save_model
from tests.explorer.training.tiny_models import GPT, LLAMA, build_tiny, draw_ids

CONFIG = LoraConfig(rank=3, alpha=7.0, targets=("q_proj", "v_proj", "up_proj"))


def tuned(seed: int = 5):
    model = build_tiny(LLAMA)
    add_lora(model, CONFIG, torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed + 1)
    with torch.no_grad():
        for _, layer in lora_layers(model):
            layer.lora_b.normal_(0, 0.3, generator=generator)
    return model


def test_a_fresh_adapter_changes_nothing_and_is_all_that_is_trained() -> None:
    model, base = build_tiny(LLAMA), build_tiny(LLAMA)
    names = add_lora(model, CONFIG, torch.Generator().manual_seed(1))
    torch.testing.assert_close(model(draw_ids()), base(draw_ids()), rtol=0, atol=0)
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert len(trained) == 2 * len(names)
    assert all(name.endswith(("lora_a", "lora_b")) for name in trained)


def test_merged_equals_unmerged_and_the_plain_product() -> None:
    model = tuned()
    before = model(draw_ids())
    merge_lora(model)
    torch.testing.assert_close(model(draw_ids()), before, rtol=1e-5, atol=1e-5)
    unmerge_lora(model)
    torch.testing.assert_close(model(draw_ids()), before, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(merged_copy(model)(draw_ids()), before, rtol=1e-5, atol=1e-5)
    name, layer = next(lora_layers(model))
    plain = layer.base.weight + 7.0 / 3 * layer.lora_b @ layer.lora_a
    torch.testing.assert_close(merged_copy(model).state_dict()[f"{name}.weight"], plain)
    assert not torch.allclose(before, build_tiny(LLAMA)(draw_ids()), atol=1e-3)


def test_many_adapters_share_the_memory_of_one_base() -> None:
    base = build_tiny(LLAMA)
    others = [share_base(base) for _ in range(2)]
    for seed, other in enumerate(others):
        add_lora(other, CONFIG, torch.Generator().manual_seed(seed))
        merge_lora(other)
        unmerge_lora(other)
    own = {name: tensor.data_ptr() for name, tensor in base_weights(base).items()}
    for other in (share_base(base), others[0]):
        shared = {name: tensor.data_ptr() for name, tensor in base_weights(other).items()}
        untouched = [name for name in own if "embed" in name or "norm" in name]
        assert untouched
        assert all(shared[name] == own[name] for name in untouched)


def test_the_share_is_counted() -> None:
    model = tuned()
    adapters = sum(p.numel() for p in model.parameters() if p.requires_grad)
    size = count_lora(model)
    assert size.n_adapter == adapters
    assert size.n_base == sum(p.numel() for p in build_tiny(LLAMA).parameters())
    assert size.share == adapters / (adapters + size.n_base)


def test_an_adapter_goes_to_the_disk_and_back(tmp_path: Path) -> None:
    model, again = tuned(), build_tiny(LLAMA)
    save_adapter(tmp_path, model, CONFIG, base="tiny")
    assert load_adapter(tmp_path, again).rank == 3
    torch.testing.assert_close(again(draw_ids()), model(draw_ids()), rtol=0, atol=0)
    (tmp_path / "adapter_model.safetensors").write_bytes(b"x")
    with pytest.raises(WeightError) as error:
        load_adapter(tmp_path, build_tiny(LLAMA))
    assert error.value.code == "lora-unreadable"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        LoraConfig(rank=0)
    assert error.value.code == "run-setting"
    with pytest.raises(ConfigError) as error:
        add_lora(build_tiny(LLAMA), LoraConfig(targets=("c_attn",)), torch.Generator())
    assert error.value.code == "lora-no-target"
    with pytest.raises(ConfigError):
        add_lora(tuned(), CONFIG, torch.Generator())
    joined = build_tiny(GPT)
    add_lora(joined, LoraConfig(targets=("q_proj",)), torch.Generator().manual_seed(0))
    with pytest.raises(ConfigError) as error:  # GPT-2's files keep q, k and v as one matrix
        save_adapter(tmp_path, joined, LoraConfig(targets=("q_proj",)), base="tiny")
    assert error.value.code == "lora-no-layout"


@pytest.mark.slow
def test_peft_opens_our_adapter_and_gives_the_same_logits(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    from transformers import AutoModelForCausalLM

    model = tuned()
    save_model(tmp_path / "base", build_tiny(LLAMA))
    save_adapter(tmp_path / "adapter", model, CONFIG, base=str(tmp_path / "base"))
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path / "base", dtype=torch.float32)
    theirs = peft.PeftModel.from_pretrained(theirs, tmp_path / "adapter")
    with torch.no_grad():
        torch.testing.assert_close(
            theirs(draw_ids()).logits, model(draw_ids()), rtol=1e-5, atol=1e-5
        )
