"""Loading: real weights answer as published, files in every form, and what is refused."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from models import SamplingConfig, generate, load_model
from models.errors import ConfigError, ExplorerError, SourceError, TokenizerError, WeightError
from models.hub_cache import is_complete_snapshot
from models.sources import find_local, resolve_source

PARIS = [{"role": "user", "content": "What is the capital of France?"}]
PARIS_IDS = [
    1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018, 411, 407,
    19712, 8182, 2, 198, 1, 4093, 198, 1780, 314, 260, 3575, 282, 4649, 47, 2, 198, 1, 520, 9531,
    198,
]  # fmt: skip


@pytest.fixture
def folder(golden_folder, tmp_path):
    """A copy of the tiny Llama that a test may damage."""
    folder = Path(shutil.copytree(golden_folder / "llama", tmp_path / "tiny"))
    (folder / "expected.safetensors").unlink()
    return folder


@pytest.fixture
def weights(folder):
    return load_file(folder / "model.safetensors")


def _edit_config(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# ------------------------------------------------------------------------------ real weights
@pytest.mark.slow
def test_smollm2_from_gguf_answers_paris(smollm2_file):
    loaded = load_model(smollm2_file)
    prompt = loaded.chat.encode(PARIS)
    assert prompt == PARIS_IDS
    tokens = list(
        generate(
            loaded.model, prompt, sampling=SamplingConfig(temperature=0.0), stop_ids=loaded.stop_ids
        )
    )
    assert tokens[-1].finish == "stop"
    answer = loaded.tokenizer.decode([token.id for token in tokens[:-1]])
    assert answer == "The capital of France is Paris."
    assert loaded.info.n_parameters == 134_515_008


@pytest.mark.slow
def test_smollm2_from_gguf_equals_transformers(smollm2_file):
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(
        smollm2_file.parent, gguf_file=smollm2_file.name, dtype=torch.float32
    )
    loaded = load_model(smollm2_file)
    ids = torch.tensor([PARIS_IDS + list(range(500, 560))])
    with torch.no_grad():
        expected = theirs(ids).logits
    torch.testing.assert_close(loaded.model(ids), expected, atol=1e-3, rtol=0)


@pytest.mark.slow
def test_loading_smollm2_peaks_below_1_3_gb(smollm2_file):
    # not getrusage: its maximum begins with the memory of the process that was forked
    if not Path("/proc/self/status").exists():
        pytest.skip("this system does not tell the peak of a process")
    code = (
        "import sys; from models import load_model; load_model(sys.argv[1]);"
        "print(open('/proc/self/status').read())"
    )
    run = [sys.executable, "-c", code, str(smollm2_file)]
    status = subprocess.run(run, check=True, capture_output=True, text=True).stdout
    peak_kib = next(int(s.split()[1]) for s in status.splitlines() if s.startswith("VmHWM"))
    assert peak_kib * 1024 < 1.3e9


# ------------------------------------------------------------------------------------- forms
def test_shards_with_an_index_equal_one_file(folder, weights, golden_folder):
    names = sorted(weights)
    parts = {"a.safetensors": names[:7], "b.safetensors": names[7:]}
    for file, part in parts.items():
        save_file({n: weights[n] for n in part}, folder / file)
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {n: file for file, part in parts.items() for n in part}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    whole, sharded = load_model(golden_folder / "llama"), load_model(folder)
    assert torch.equal(whole.model(ids), sharded.model(ids))
    (folder / "b.safetensors").unlink()
    with pytest.raises(WeightError, match="1 of 2 weight files are missing: b.safetensors"):
        load_model(folder)


def test_a_tied_checkpoint_may_hold_a_copy_of_the_embedding(folder, weights):
    _edit_config(folder, tie_word_embeddings=True)
    loaded = load_model(folder)
    assert not hasattr(loaded.model, "head")
    assert loaded.model(torch.tensor([[1, 2]])).shape == (1, 2, 97)


def test_float32_weights_are_mapped_not_copied(folder, weights):
    save_file({n: t.float() for n, t in weights.items()}, folder / "model.safetensors")
    loaded = load_model(folder)
    ours = loaded.model.embed.weight.data_ptr()
    maps = [line.split()[0].split("-") for line in _mapped(folder / "model.safetensors")]
    assert any(int(start, 16) <= ours < int(end, 16) for start, end in maps)


def _mapped(path):
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("this system does not list its memory maps")
    return [line for line in maps.read_text().splitlines() if line.endswith(str(path))]


def test_bfloat16_halves_the_bytes(folder):
    full, half = load_model(folder), load_model(folder, dtype="bfloat16")
    assert half.info.n_bytes * 2 == full.info.n_bytes
    assert half.model.dtype == torch.bfloat16
    with pytest.raises(ConfigError, match="choose float32"):
        load_model(folder, dtype="int3")


def test_stop_ids_are_those_of_all_files(folder):
    _edit_config(folder, eos_token_id=[5, 6])
    (folder / "generation_config.json").write_text('{"eos_token_id": 7}')
    assert load_model(folder).stop_ids == {5, 6, 7}


@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_gguf_files_written_by_the_gguf_package_give_the_same_logits(name, golden_folder, tmp_path):
    path = tmp_path / "tiny.gguf"
    loaded = load_model(golden_folder / name)
    _write_gguf(path, name, loaded)
    ids = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])
    again = load_model(path)
    assert again.config.attention == loaded.config.attention
    torch.testing.assert_close(again.model(ids), loaded.model(ids), atol=1e-5, rtol=0)


def _write_gguf(path, architecture, loaded):
    import gguf

    from models.registry import find_gguf_family
    from models.weight_rules import save_weights

    config, writer = loaded.config, gguf.GGUFWriter(path, architecture)
    writer.add_context_length(config.context_length)
    writer.add_embedding_length(config.d_model)
    writer.add_block_count(config.n_layers)
    writer.add_feed_forward_length(config.ffn.d_ff)
    writer.add_head_count(config.attention.n_heads)
    if architecture == "llama":
        writer.add_head_count_kv(config.attention.n_kv_heads)
        writer.add_key_length(config.attention.d_head)
        writer.add_rope_freq_base(config.rope["full"].theta)
        writer.add_layer_norm_rms_eps(config.norm.eps)
    else:
        writer.add_layer_norm_eps(config.norm.eps)
    rules = find_gguf_family(architecture).gguf.rules(config)
    for name, tensor in save_weights(rules, dict(loaded.model.named_parameters()), config).items():
        writer.add_tensor(name, tensor.numpy().astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


# --------------------------------------------------------------------------------- bad input
def test_a_folder_without_config_is_refused(folder):
    (folder / "config.json").unlink()
    with pytest.raises(WeightError, match=r"has no config\.json.*as downloaded"):
        load_model(folder)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "\x00\x01"])
def test_a_config_that_is_no_object_is_refused(folder, text):
    (folder / "config.json").write_text(text)
    with pytest.raises(WeightError, match="download it again"):
        load_model(folder)


def test_an_unknown_family_is_refused_with_the_known_ones(folder):
    _edit_config(folder, model_type="mamba")
    with pytest.raises(ConfigError, match=r"'mamba'.*Llama.*GPT-2"):
        load_model(folder)


@pytest.mark.parametrize("size", [0, 5, 200, 5_000, -4])
def test_a_truncated_safetensors_file_is_refused(folder, size):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(WeightError, match="download it again"):
        load_model(folder)


def test_garbage_instead_of_weights_is_refused(folder):
    (folder / "model.safetensors").write_bytes(bytes(range(256)) * 40)
    with pytest.raises(WeightError, match="download it again"):
        load_model(folder)


def test_a_missing_and_an_extra_tensor_are_both_named(folder, weights):
    weights["model.layers.0.mlp.gate.weight"] = weights.pop("model.layers.0.mlp.gate_proj.weight")
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(WeightError) as caught:
        load_model(folder)
    assert "blocks.0.ffn.gate_proj.weight" in caught.value.message
    assert "model.layers.0.mlp.gate.weight" in caught.value.message


def test_a_wrong_shape_is_named_with_both_shapes(folder, weights):
    weights["model.norm.weight"] = torch.ones(41)
    save_file(weights, folder / "model.safetensors")
    with pytest.raises(WeightError, match=r"model\.norm\.weight \(41,\).*\(42,\)"):
        load_model(folder)


def test_weights_for_more_layers_than_the_config_has_are_refused(folder):
    _edit_config(folder, num_hidden_layers=1)
    with pytest.raises(WeightError, match=r"no place: model\.layers\.1"):
        load_model(folder)


@pytest.mark.parametrize(
    ("config", "weights", "named"),
    [
        ("gpt2", "llama", "model.embed_tokens.weight"),
        ("llama", "gpt2", r"transformer\.h\.0"),
        ("qwen3", "llama", "q_norm"),
        ("gemma3_text", "qwen3", "post_norm"),
        ("olmo3", "llama", "input_layernorm"),
        ("deepseek", "llama", "latent_proj"),
        ("qwen3_moe", "qwen3", "experts"),
    ],
)
def test_weights_of_another_family_are_refused(config, weights, named, golden_folder, tmp_path):
    shutil.copy(golden_folder / config / "config.json", tmp_path)
    shutil.copy(golden_folder / weights / "model.safetensors", tmp_path)
    with pytest.raises(WeightError, match=rf"(?s){named}.*belong together"):
        load_model(tmp_path)


def test_only_pickles_are_refused_by_name(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(WeightError, match=r"only as pytorch_model\.bin.*save_pretrained"):
        load_model(folder)


def test_an_index_cannot_lead_out_of_its_folder(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"weight_map": {"x": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(WeightError, match="no file of its folder"):
        load_model(folder)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' + "9" * 5_000 + "}", "[]", "{"])
@pytest.mark.parametrize("name", ["config", "generation_config", "model.safetensors.index"])
def test_json_of_any_kind_is_refused_by_name(folder, name, content):
    (folder / "model.safetensors").rename(folder / "weights-00001-of-00002.safetensors")
    (folder / f"{name}.json").write_text(content)
    with pytest.raises(WeightError, match=rf"{name}\.json cannot be .*download it again"):
        load_model(folder)


@pytest.mark.parametrize("name", ["weights.safetensors", "model-00001-of-00001.safetensors"])
def test_weights_of_another_name_are_opened_and_complete(folder, name):
    (folder / "model.safetensors").rename(folder / name)
    assert is_complete_snapshot(folder)
    (folder / "consolidated.safetensors").write_bytes(b"a second copy")
    assert load_model(folder).info.n_parameters > 0
    (folder / "other.safetensors").touch()
    assert not is_complete_snapshot(folder)
    with pytest.raises(WeightError, match="has no model.safetensors"):
        load_model(folder)


def test_one_file_of_several_is_no_whole_model(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00002.safetensors")
    assert not is_complete_snapshot(folder)
    with pytest.raises(WeightError, match=r"no model\.safetensors\.index\.json"):
        load_model(folder)


def test_a_model_without_tokenizer_opens_and_says_so_when_asked(folder):
    loaded = load_model(folder)
    assert loaded.chat is None
    with pytest.raises(TokenizerError):
        _ = loaded.tokenizer


@pytest.mark.parametrize(
    "source",
    [
        "nothing here",
        "/no/such/folder",
        "a.gguf",
        "",
        "x" * 5_000,
        "a\0b",
        "~nobody_of_that_name/x",
    ],
)
def test_a_source_that_is_nothing_is_refused_with_names_that_exist(source):
    with pytest.raises(ExplorerError, match="smollm2-135m-instruct|Hub"):
        resolve_source(source)


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "weights.h5").write_bytes(b"x")
    with pytest.raises(SourceError, match=r"\.gguf file"):
        resolve_source(str(tmp_path / "weights.h5"))


def test_a_safetensors_file_stands_for_its_folder(folder):
    found = find_local(str(folder / "model.safetensors"))
    assert (found.kind, found.path, found.origin) == ("folder", folder, "file")


def test_presets_and_tokenizers_need_no_torch():
    code = (
        "import sys; from models import get_preset, count_parameters, ModelConfig;"
        "import models.tokenizers, models.sources, explorer.store;"
        "count_parameters(get_preset('gpt2')); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_asking_again_and_again_for_a_missing_tokenizer_keeps_nothing(folder):
    loaded = load_model(folder)
    for _ in range(3):
        with pytest.raises(TokenizerError) as caught:
            _ = loaded.tokenizer
    assert len(caught.traceback) <= 3  # the one of this time alone


@pytest.mark.parametrize("device", ["foo", "xpu", "cuda"])
def test_a_device_that_is_not_there_is_refused(folder, device):
    if device == "cuda" and torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(ConfigError, match="choose cpu"):
        load_model(folder, device=device)
