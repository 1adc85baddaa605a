"""The store on real files: the small recorded checkpoints, and SmolLM2 of the offline pack."""

import gc
import json
import shutil
import socket
import subprocess
import sys
import weakref
from dataclasses import replace

import pytest
import tokenizers
import torch
from safetensors.numpy import load_file
from tokenizers import decoders, models

from explorer.errors import BudgetError, ConfigError, TokenizerError, WeightError
from explorer.store import ModelStore
from explorer.uploads import Uploads
from models import build_decoder, load_model
from models.families import book_gpt
from models.registry import CATALOGUE, FAMILIES
from models.weight_rules import save_weights

SMOLLM2 = "smollm2-135m-instruct"
BYTES_PER_FLOAT32 = 4


@pytest.fixture
def real_store(tmp_path):
    return ModelStore(budget_bytes=2 * 10**9, uploads=Uploads(tmp_path / "home"))


@pytest.fixture(params=["llama", "gpt2"])
def folder(golden_folder, request):
    return golden_folder / request.param


def stored_numbers(folder) -> int:
    """Counted by the safetensors package from the file itself."""
    return sum(tensor.size for tensor in load_file(folder / "model.safetensors").values())


def test_a_folder_opens_and_its_summary_is_that_of_its_files(real_store, folder):
    steps = list(real_store.open(str(folder), "ann"))
    summary = steps[-1].summary
    settings = json.loads((folder / "config.json").read_text())
    heads = settings.get("num_attention_heads") or settings["n_head"]
    assert summary.n_parameters == stored_numbers(folder)
    assert summary.n_bytes == stored_numbers(folder) * BYTES_PER_FLOAT32
    assert summary.n_layers == (settings.get("num_hidden_layers") or settings["n_layer"])
    assert summary.n_heads == heads
    assert summary.n_kv_heads == settings.get("num_key_value_heads", heads)
    assert summary.context_length == (
        settings.get("max_position_embeddings") or settings["n_positions"]
    )
    assert (summary.id, summary.origin, summary.dtype) == (str(folder), "folder", "float32")
    assert not summary.has_chat


def test_the_estimate_is_what_the_weights_take(real_store, folder):
    reading = [step for step in real_store.open(str(folder), "ann") if step.phase == "reading"]
    for step in reading:  # none when the load was faster than this reader
        assert step.total_bytes == stored_numbers(folder) * BYTES_PER_FLOAT32
    with pytest.raises(BudgetError, match="choose a smaller"):
        list(
            ModelStore(budget_bytes=stored_numbers(folder) * BYTES_PER_FLOAT32 - 1).open(
                str(folder), "ann"
            )
        )


def test_unload_frees_the_weights(real_store, folder):
    with real_store.lease(str(folder), "ann") as loaded:
        gone = weakref.ref(next(iter(loaded.model.parameters())))
    del loaded
    real_store.unload(str(folder), "ann")
    gc.collect()
    assert gone() is None


def test_an_uploaded_state_dict_opens_with_its_settings(real_store, golden_folder, tmp_path):
    loaded = load_model(golden_folder / "gpt2")
    config = replace(
        loaded.config, attention=replace(loaded.config.attention, qkv_bias=False), tied_head=False
    )
    fresh = build_decoder(config, torch.Generator().manual_seed(1))
    state = save_weights(book_gpt.rules(config), dict(fresh.named_parameters()), config)
    torch.save({"model_state_dict": state}, tmp_path / "my gpt.pth")
    (tmp_path / "settings.json").write_text('{"n_heads": 6}')
    files = [tmp_path / "my gpt.pth", tmp_path / "settings.json"]
    source = real_store.keep_upload(files, "ann")
    summary = list(real_store.open(source, "ann"))[-1].summary
    assert (summary.name, summary.family, summary.origin) == ("my-gpt", "Book GPT", "upload")
    assert summary.n_heads == 6
    with pytest.raises(TokenizerError, match="holds no tokenizer"):
        real_store.tokenizer(source, "ann")


def test_an_uploaded_folder_opens(real_store, golden_folder):
    folder = golden_folder / "llama"
    files = [folder / "config.json", folder / "model.safetensors"]
    source = real_store.keep_upload(files, "ann")
    summary = list(real_store.open(source, "ann"))[-1].summary
    assert (summary.id, summary.name, summary.origin) == (source, "upload", "upload")
    assert summary.n_parameters == stored_numbers(folder)


def test_a_folder_without_tokenizer_says_so(real_store, golden_folder):
    with pytest.raises(TokenizerError):
        real_store.tokenizer(str(golden_folder / "llama"), "ann")


def test_a_broken_folder_says_why_and_can_be_mended(real_store, golden_folder, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(golden_folder / "llama", folder)
    whole = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(WeightError):
        list(real_store.open(str(folder), "ann"))
    (folder / "model.safetensors").write_bytes(whole)
    assert list(real_store.open(str(folder), "ann"))[-1].phase == "ready"


def test_an_unknown_family_is_refused_with_the_known_ones(real_store, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "mamba"}')
    with pytest.raises(ConfigError, match="Llama"):
        list(real_store.open(str(tmp_path), "ann"))


def test_the_catalogue_says_what_is_here(real_store, smollm2_file):
    entries = {entry.id: entry for entry in real_store.catalogue()}
    assert entries[SMOLLM2].presence == "here"
    assert next(iter(entries)) == SMOLLM2
    # the offline pack's file is smaller than the one that a download would fetch
    assert entries[SMOLLM2].size_bytes == smollm2_file.stat().st_size
    assert entries["gpt2"].size_bytes == 548_105_171


def test_the_catalogue_is_told_with_no_network(real_store, monkeypatch):
    """What is not here says so; sizes come from the files' own numbers or the configuration."""

    def refuse(*_):
        raise OSError("no network in this test")

    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    entries = {entry.id: entry for entry in real_store.catalogue()}
    assert len(entries) >= 15
    for entry in entries.values():
        assert entry.presence == "here" or entry.size_bytes > 10**8
        assert set(entry.fits) == {"float32", "bfloat16", "int8"}
        assert entry.licence
        assert entry.fits["float32"].weight_bytes >= 2 * entry.fits["bfloat16"].weight_bytes * 0.99
    # two bytes for each of the published numbers of parameters, the copied head included
    assert entries["qwen3-0.6b"].size_bytes == 2 * 751_632_384
    assert entries["llama3.2-1b-instruct"].size_bytes == 2 * 1_235_814_400
    assert entries["llama3.2-1b-instruct"].size_is_counted
    assert not entries["gpt2"].size_is_counted
    gated = {id_ for id_, entry in entries.items() if entry.gate_page}
    assert all(id_.startswith(("llama3", "gemma")) for id_ in gated)
    page = entries["gemma3-1b-it"].gate_page
    assert page == "https://huggingface.co/google/gemma-3-1b-it"


def test_every_catalogue_model_names_a_family_and_a_preset_of_ours():
    names = {family.name: family for family in FAMILIES}
    for model in CATALOGUE.values():
        assert model.preset in names[model.family].presets
        assert (model.hub_id is None) == (model.bundled_folder is not None)
        assert model.hub_id is None or model.hub_id.count("/") == 1


def write_tokenizer(folder, n_words, n_special):
    """As many words as asked, then special tokens."""
    library = tokenizers.Tokenizer(models.BPE({chr(256 + i): i for i in range(n_words)}, []))
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens([f"<{i}>" for i in range(n_special)])
    library.save(str(folder / "tokenizer.json"))


def test_a_tokenizer_of_another_model_is_refused_everywhere(real_store, golden_folder, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(golden_folder / "llama", folder)
    write_tokenizer(folder, n_words=120, n_special=0)
    with pytest.raises(TokenizerError, match="has 120 tokens, the model only 97"):
        real_store.tokenizer(str(folder), "ann")
    with (
        real_store.lease(str(folder), "ann") as loaded,
        pytest.raises(TokenizerError, match="has 120 tokens, the model only 97"),
    ):
        _ = loaded.tokenizer
    (folder / "config.json").unlink()  # a tokenizer alone
    assert ModelStore().tokenizer(str(folder), "ann").vocab_size == 120


def test_special_tokens_without_a_row_are_left_out_everywhere(real_store, golden_folder, tmp_path):
    folder = tmp_path / "mine"
    shutil.copytree(golden_folder / "llama", folder)
    write_tokenizer(folder, n_words=95, n_special=4)
    assert real_store.tokenizer(str(folder), "ann").vocab_size == 97
    with real_store.lease(str(folder), "ann") as loaded:
        assert loaded.tokenizer.vocab_size == 97


def test_a_tokenizer_needs_no_torch(smollm2_file):
    program = (
        "import sys\n"
        "from explorer.store import ModelStore\n"
        f"tokenizer = ModelStore().tokenizer({SMOLLM2!r}, 'ann')\n"
        "print(tokenizer.decode(tokenizer.encode('Hello world')), 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("Hello world False\n", "")


@pytest.mark.slow
def test_the_real_model_opens_from_the_offline_pack(real_store, smollm2_file):
    steps = list(real_store.open(SMOLLM2, "ann"))
    summary = steps[-1].summary
    assert summary.origin in ("offline pack", "cache")
    assert summary.n_parameters == 134_515_008  # the model's card on the Hub: 135M
    assert summary.has_chat
    with real_store.lease(SMOLLM2, "ann") as loaded:
        assert real_store.tokenizer(SMOLLM2, "ann") is loaded.tokenizer
