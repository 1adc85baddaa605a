"""Numbers that no model can have are refused when they are read."""

import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from models import load_model
from models.errors import WeightError


@pytest.fixture
def folder(golden_folder, tmp_path):
    folder = Path(shutil.copytree(golden_folder / "llama", tmp_path / "tiny"))
    (folder / "expected.safetensors").unlink()
    return folder


def put_number(folder: Path, name: str, number: float, dtype: torch.dtype = torch.float32) -> None:
    weights = {n: t.to(dtype) for n, t in load_file(folder / "model.safetensors").items()}
    weights[name].view(-1)[7] = number
    save_file(weights, folder / "model.safetensors")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_weights_that_are_not_finite_are_refused_by_name(folder, number, dtype):
    name = "model.layers.1.mlp.up_proj.weight"
    put_number(folder, name, number, dtype)
    with pytest.raises(WeightError, match=rf"1 of 2184 numbers in {name}.*download"):
        load_model(folder)


def test_large_finite_numbers_pass_though_their_sum_overflows(folder):
    name = "model.layers.1.mlp.up_proj.weight"
    put_number(folder, name, 3e38)
    weights = load_file(folder / "model.safetensors")
    weights[name].view(-1)[8] = 3e38
    save_file(weights, folder / "model.safetensors")
    assert load_model(folder).model.blocks[1].ffn.up_proj.weight.view(-1)[8] == 3e38


def test_numbers_beyond_float16_are_refused_in_float16_only(folder):
    name = "model.layers.0.self_attn.q_proj.weight"
    put_number(folder, name, 65_504.0)
    load_model(folder, dtype="float16")
    put_number(folder, name, -70_000.0)
    with pytest.raises(WeightError, match=rf"{name} holds 70000.*bfloat16 or float32"):
        load_model(folder, dtype="float16")
    load_model(folder, dtype="bfloat16")
    load_model(folder)
