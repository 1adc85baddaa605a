"""Fits, tight, too large: with numbers, before anything is read or downloaded."""

import json

import pytest

from explorer.errors import BudgetError
from explorer.fitting import estimate_fit, find_config
from explorer.store import ModelStore
from explorer.uploads import Uploads
from models import get_preset
from tests.models.hub_server import Repository, prepared_hub

# Meta's config.json of Llama 3.1 405B, as published.
LLAMA_405B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 128_256,
    "hidden_size": 16_384,
    "intermediate_size": 53_248,
    "num_hidden_layers": 126,
    "num_attention_heads": 128,
    "num_key_value_heads": 8,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "rope_theta": 500_000.0,
    "rope_scaling": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8_192,
    },
    "tie_word_embeddings": False,
}
SMOLLM2 = get_preset("smollm2-135m")
WEIGHTS = 134_515_008 * 4
# 2,048 tokens of 2 x 3 heads x 64 numbers in 30 layers, and a row of logits; the largest matrix is
# the embedding, which is more
TEXT = 2_048 * 2 * 3 * 64 * 30 * 4 + 49_152 * 4
READING = 49_152 * 576 * 4


def test_the_numbers_by_hand():
    found = estimate_fit(SMOLLM2, "float32", 10**12)
    assert (found.weight_bytes, found.needs_bytes) == (WEIGHTS, WEIGHTS + max(TEXT, READING))
    assert found.available_bytes == 10**12


@pytest.mark.parametrize(
    ("available", "verdict"),
    [
        (WEIGHTS + max(TEXT, READING), "fits"),
        (WEIGHTS + max(TEXT, READING) - 1, "tight"),
        (WEIGHTS, "tight"),
        (WEIGHTS - 1, "too large"),
        (0, "too large"),
    ],
)
def test_the_verdict_changes_at_the_weights_and_at_all_that_is_needed(available, verdict):
    assert estimate_fit(SMOLLM2, "float32", available).verdict == verdict


def test_a_smaller_format_fits_where_a_larger_does_not():
    room = 10 * 10**9
    found = [estimate_fit(get_preset("llama3-8b"), d, room) for d in ("float32", "int8")]
    assert [fit.verdict for fit in found] == ["too large", "tight"]


def test_a_preset_a_catalogue_id_a_folder_and_a_stranger(golden_folder):
    assert find_config("smollm2-135m") == SMOLLM2
    assert find_config("smollm2-135m-instruct") == SMOLLM2
    settings = json.loads((golden_folder / "llama" / "config.json").read_text())
    found = find_config(str(golden_folder / "llama"))
    assert found.d_model == settings["hidden_size"]
    assert find_config("nobody/has-this") is None


def test_the_header_of_a_gguf_file_is_enough(smollm2_file):
    found = find_config(str(smollm2_file))
    assert estimate_fit(found, "float32", 10**12).weight_bytes == WEIGHTS


# ----------------------------------------------------------------------------- in the store
@pytest.fixture
def hub(tmp_path, monkeypatch):
    with prepared_hub(tmp_path, monkeypatch) as server:
        yield server


def test_405_billion_parameters_are_refused_after_the_config_alone(hub, tmp_path):
    files = {"config.json": json.dumps(LLAMA_405B).encode(), "model.safetensors": b"x" * 10**6}
    hub.repositories["meta/405b"] = Repository(files)
    store = ModelStore(budget_bytes=8 * 10**9, uploads=Uploads(tmp_path / "home"))
    with pytest.raises(BudgetError, match=r"needs 1623\.4 GB of memory, models may take 8\.0 GB"):
        list(store.open("meta/405b", "ann"))
    assert [path for _, path, _ in hub.requests if path.endswith("model.safetensors")] == []
    with pytest.raises(BudgetError, match=r"needs 405\.9 GB"):
        list(store.open("meta/405b#int8", "ann"))


def test_the_catalogue_measures_against_what_is_free(tmp_path):
    store = ModelStore(
        budget_bytes=8 * 10**9,
        uploads=Uploads(tmp_path),
        available_bytes=lambda: 500 * 10**6,
    )
    fits = store.catalogue()[0].fits
    verdicts = {dtype: fit.verdict for dtype, fit in fits.items()}
    assert verdicts == {"float32": "too large", "bfloat16": "fits", "int8": "fits"}
    assert {fit.available_bytes for fit in fits.values()} == {500 * 10**6}
