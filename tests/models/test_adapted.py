"""Tuned models on the memory of their base, against the checkpoints that hold all weights."""

from pathlib import Path

import pytest
import torch

from models.adapted import load_adapted
from models.loading import LoadedModel, load_model
from models.lora import (
    MergedWeights,
    add_lora,
    add_lora_of,
    base_weights,
    lora_layers,
    merged_copy,
    share_base,
)
from models.lora_config import LoraConfig
from models.lora_files import save_adapter
from models.saving import save_model
from models.sources import resolve_source
from tests.explorer.training.tiny_models import GPT, LLAMA, build_tiny, draw_ids

FIRST = LoraConfig(rank=3, alpha=7.0, targets=("q_proj", "v_proj", "up_proj"))
SECOND = LoraConfig(rank=2, alpha=3.0, targets=("v_proj", "down_proj"))


def save_tuned(folder: Path, begun: LoadedModel, config: LoraConfig, seed: int) -> Path:
    """A checkpoint as a run writes it: merged weights, and the adapter in a folder of its own."""
    model = share_base(merged_copy(begun.model))
    draw = torch.Generator().manual_seed(seed)
    add_lora(model, config, draw)
    with torch.no_grad():
        for _, layer in lora_layers(model):
            layer.lora_b.normal_(0, 0.3, generator=draw)
    save_model(folder, merged_copy(model))
    save_adapter(folder / "adapter", model, config, base="base")
    return folder


def open_on(base: LoadedModel, folder: Path) -> LoadedModel | None:
    return load_adapted(resolve_source(str(folder)), base, folder / "adapter")


@pytest.fixture
def base(tmp_path: Path) -> LoadedModel:
    save_model(tmp_path / "base", build_tiny(LLAMA))
    return load_model(tmp_path / "base")


def test_three_adapters_take_the_memory_of_one_base(tmp_path: Path, base: LoadedModel) -> None:
    own = {name: tensor.data_ptr() for name, tensor in base_weights(base.model).items()}
    for seed in range(3):
        folder = save_tuned(tmp_path / str(seed), base, FIRST, seed)
        tuned = open_on(base, folder)
        assert tuned is not None
        shared = {name: tensor.data_ptr() for name, tensor in base_weights(tuned.model).items()}
        assert shared == own
        adapters = [p for n, p in tuned.model.named_parameters() if n.endswith(("_a", "_b"))]
        assert tuned.info.n_bytes == 4 * sum(p.numel() for p in adapters)
        assert (tuned.info.base_name, tuned.info.n_base_bytes) == ("base", base.info.n_bytes)
        assert tuned.info.n_parameters == base.info.n_parameters
        assert not any(p.requires_grad for p in tuned.model.parameters())
        alone = load_model(folder).model
        torch.testing.assert_close(tuned.model(draw_ids()), alone(draw_ids()), rtol=1e-5, atol=1e-5)


def test_what_was_tuned_twice_stands_on_the_first_base(tmp_path: Path, base: LoadedModel) -> None:
    first = open_on(base, save_tuned(tmp_path / "first", base, FIRST, 1))
    assert first is not None
    folder = save_tuned(tmp_path / "second", first, SECOND, 2)
    second = open_on(first, folder)
    assert second is not None
    alone = load_model(folder).model
    torch.testing.assert_close(second.model(draw_ids()), alone(draw_ids()), rtol=1e-5, atol=1e-5)
    names = dict(lora_layers(second.model))
    assert {name.rpartition(".")[2] for name in names} == {*FIRST.targets, *SECOND.targets}
    assert names["blocks.0.attn.v_proj"].lora_a.shape[0] == 5  # ranks add up
    assert second.info.base_name == "base"
    embed = base.model.embed.weight.data_ptr()
    assert second.model.embed.weight.data_ptr() == embed


def test_two_corrections_are_one_of_the_ranks_sum() -> None:
    first, second = build_tiny(LLAMA), build_tiny(LLAMA)
    for seed, (model, config) in enumerate(((first, FIRST), (second, SECOND))):
        draw = torch.Generator().manual_seed(seed)
        add_lora(model, config, draw)
        with torch.no_grad():
            for _, layer in lora_layers(model):
                layer.lora_b.normal_(0, 0.3, generator=draw)
    plain = build_tiny(LLAMA).state_dict()
    for name, layer in (*lora_layers(first), *lora_layers(second)):
        plain[f"{name}.weight"] = plain[f"{name}.weight"] + (layer.lora_b @ layer.lora_a) * (
            7.0 / 3 if layer.lora_a.shape[0] == 3 else 3.0 / 2
        )
    add_lora_of(second, first)
    found = MergedWeights(second)
    assert found.keys() == plain.keys()
    for name, wanted in plain.items():
        torch.testing.assert_close(found[name], wanted.detach(), rtol=1e-6, atol=1e-6)


def test_an_exchanged_base_is_noticed(tmp_path: Path, base: LoadedModel) -> None:
    folder = save_tuned(tmp_path / "tuned", base, FIRST, 1)
    with torch.no_grad():
        base.model.blocks[1].ffn.gate_proj.weight[3, 5] += 1e-4  # no adapter is beside it
    assert open_on(base, folder) is None
    save_model(tmp_path / "other", build_tiny(GPT))
    assert open_on(load_model(tmp_path / "other"), folder) is None


def test_weights_are_read_as_the_sum_that_the_layer_computes(
    tmp_path: Path, base: LoadedModel
) -> None:
    tuned = open_on(base, save_tuned(tmp_path / "tuned", base, FIRST, 1))
    assert tuned is not None
    name, layer = next(lora_layers(tuned.model))
    x = torch.randn(4, layer.lora_a.shape[1], generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(layer(x), x @ layer.weight.T, rtol=1e-5, atol=1e-5)
    assert layer.bias is None
    copy = merged_copy(tuned.model).state_dict()
    torch.testing.assert_close(MergedWeights(tuned.model)[f"{name}.weight"], copy[f"{name}.weight"])
    assert merged_copy(base.model) is base.model
