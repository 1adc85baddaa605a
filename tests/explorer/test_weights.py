"""Tensors of a model against numpy, and the kinds of a real GGUF file."""

import numpy as np
import pytest
import torch

from explorer.errors import ConfigError
from explorer.weights import (
    WeightSettings,
    compute_singular_values,
    compute_weight_view,
    find_stored_kinds,
    measure_stored_tensor,
)
from models import load_model


@pytest.fixture(scope="module")
def loaded(golden_folder):
    return load_model(golden_folder / "llama")


def test_every_tensor_is_found_and_told(loaded):
    found = compute_weight_view(loaded, WeightSettings(search="", which=0))
    names = set(loaded.model.state_dict())
    assert {tensor.name for tensor in found.listed} == names
    assert found.n_all == found.n_found == len(names)
    for tensor in found.listed:
        values = loaded.model.state_dict()[tensor.name].double().numpy()
        assert tensor.norm == pytest.approx(np.sqrt((values**2).sum()), rel=1e-5)
        assert tensor.std == pytest.approx(values.std(), rel=1e-4, abs=1e-7)
        assert (tensor.low, tensor.high) == pytest.approx((values.min(), values.max()))


def test_one_tensor_in_full(loaded):
    settings = WeightSettings(search="blocks.1 down_proj", which=0)
    found = compute_weight_view(loaded, settings)
    assert found.chosen.name == "blocks.1.ffn.down_proj.weight"
    values = loaded.model.state_dict()[found.chosen.name]
    expected = np.linalg.svd(values.double().numpy(), compute_uv=False)
    np.testing.assert_allclose(found.singular_values, expected, atol=1e-6)
    assert found.counts.sum() == values.numel()
    scales = values.abs().amax(dim=1, keepdim=True) / 127
    rounded = (values / scales).round() * scales
    assert found.int8_error == pytest.approx(
        float((values - rounded).norm() / values.norm()), rel=1e-4
    )


def test_vectors_have_no_singular_values_and_a_low_matrix_keeps_its_zeros():
    assert compute_singular_values(torch.ones(5)).size == 0
    low = torch.outer(torch.arange(1.0, 8.0), torch.arange(1.0, 6.0))
    found = compute_singular_values(low)
    np.testing.assert_allclose(found[0], float(low.norm()), rtol=1e-6)
    np.testing.assert_allclose(found[1:], 0, atol=1e-5)


def test_a_name_that_is_not_there_is_refused(loaded):
    with pytest.raises(ConfigError, match="names are such as embed.weight"):
        compute_weight_view(loaded, WeightSettings(search="lm_head"))


@pytest.mark.slow
def test_kinds_of_a_real_gguf_file(smollm2_file):
    from gguf import GGUFReader

    from models.registry import get_preset

    found = find_stored_kinds(str(smollm2_file), get_preset("smollm2-135m"))
    theirs = {tensor.name: tensor.tensor_type.name for tensor in GGUFReader(smollm2_file).tensors}
    assert found["blocks.3.ffn.down_proj.weight"] == theirs["blk.3.ffn_down.weight"]
    assert found["embed.weight"] == theirs["token_embd.weight"]
    assert len(found) == len(theirs)


@pytest.mark.slow
def test_how_a_real_gguf_file_stores_a_tensor(smollm2_file):
    from models.registry import get_preset

    config, source = get_preset("smollm2-135m"), str(smollm2_file)
    found = measure_stored_tensor(source, config, "blocks.3.ffn.down_proj.weight")
    assert found is not None
    assert (found.kind, found.bits) == ("Q4_1", 5.0)  # 20 bytes a block of 32
    assert 0.02 < found.error < 0.15
    norm = measure_stored_tensor(source, config, "blocks.3.ffn_norm.weight")
    assert norm is not None
    assert (norm.kind, norm.error) == ("F32", 0.0)


def test_a_model_from_no_gguf_file_has_no_stored_tensor(golden_folder, loaded):
    folder = str(golden_folder / "llama")
    assert measure_stored_tensor(folder, loaded.config, "embed.weight") is None
