"""Settings of GGUF files: Llama 3's divisors, window patterns, and what is refused."""

import math

import gguf
import numpy as np
import pytest

from models import load_model
from models.config import ModelConfig
from models.errors import ConfigError, WeightError
from models.gguf_file import GgufFile
from models.registry import find_gguf_family, get_preset
from tests.models.gguf_cases import CASES, make_folder
from tests.models.gguf_writing import Target, llama3_divisors, write_gguf


# ------------------------------------------------------------------------- Llama 3's rescaling
def _header_only(path, d_head, divisors, **keys):
    """A file from which a configuration can be read, with next to no weights."""
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(131_072)
    writer.add_embedding_length(64)
    writer.add_block_count(2)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_key_length(d_head)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_rope_freq_base(500_000.0)
    for method, value in keys.items():
        getattr(writer, method)(value)
    writer.add_tensor("token_embd.weight", np.zeros((97, 64), np.float32))
    writer.add_tensor("rope_freqs.weight", divisors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GgufFile(path) as file:
        return find_gguf_family("llama").gguf.config_from_file(file)


@pytest.mark.parametrize(
    ("preset", "d_head", "factor"),
    [("llama3.1-8b", 128, 8.0), ("llama3.2-1b", 64, 32.0), ("llama3.2-3b", 128, 32.0)],
)
def test_llama3_parameters_are_found_from_the_divisors(preset, d_head, factor, tmp_path):
    divisors = llama3_divisors(5e5, d_head, factor)
    assert 1 < divisors[31 if d_head == 128 else 16] < factor  # one of the blended pairs
    found = _header_only(tmp_path / "a.gguf", d_head, divisors)
    assert found.rope == get_preset(preset).rope


@pytest.mark.parametrize(
    "spoil",
    [
        lambda d: d * 1.01,
        lambda d: d[:-1],
        lambda d: d[::-1].copy(),
        lambda d: np.where(d == d.max(), np.float32(math.nan), d),
        lambda d: llama3_divisors(5e5, 128, math.inf),
        lambda d: 1 / d,
        lambda d: np.linspace(1, 8, len(d), dtype=np.float32),  # long and short factors of Phi
        lambda d: llama3_divisors(5e5, 128, 8.0, original=4_096),
    ],
)
def test_other_divisors_are_refused(spoil, tmp_path):
    with pytest.raises(ConfigError, match=r"rope_freqs\.weight.*not supported"):
        _header_only(tmp_path / "a.gguf", 128, spoil(llama3_divisors(5e5, 128, 8.0)))


def test_divisors_of_another_original_context_are_read_where_the_file_names_it(tmp_path):
    divisors = llama3_divisors(5e5, 128, 8.0, original=4_096)
    keys = {"add_rope_scaling_orig_ctx_len": 4_096}
    found = _header_only(tmp_path / "a.gguf", 128, divisors, **keys)
    assert found.rope["full"].scaling.original_context == 4_096


def test_divisors_beside_another_scaling_are_refused(tmp_path):
    keys = {"add_rope_scaling_factor": 2.0}
    with pytest.raises(ConfigError, match="LinearScaling"):
        _header_only(tmp_path / "a.gguf", 128, llama3_divisors(5e5, 128, 8.0), **keys)


# ----------------------------------------------------------------------------------- bad input
def _load(tmp_path, golden_folder, name, keys=(), leave_out=()):
    case = CASES[name]
    config, weights = make_folder(tmp_path / "folder", golden_folder, case)
    target = Target(case.target.architecture, {**case.target.keys, **dict(keys)})
    write_gguf(tmp_path / "a.gguf", target, config, weights, leave_out=leave_out)
    return load_model(tmp_path / "a.gguf")


@pytest.mark.parametrize(
    ("name", "method", "key"),
    [
        ("llama", "add_head_count", "llama.attention.head_count"),
        ("llama", "add_context_length", "llama.context_length"),
        ("llama", "add_block_count", "llama.block_count"),
        ("qwen2", "add_feed_forward_length", "qwen2.feed_forward_length"),
        ("qwen3", "add_layer_norm_rms_eps", "qwen3.attention.layer_norm_rms_epsilon"),
        ("qwen3_moe", "add_expert_count", "qwen3moe.expert_count"),
        ("qwen3_moe", "add_expert_used_count", "qwen3moe.expert_used_count"),
        ("qwen3_moe", "add_expert_feed_forward_length", "qwen3moe.expert_feed_forward_length"),
        ("gemma3", "add_sliding_window", "gemma3.attention.sliding_window"),
        ("olmo3", "add_embedding_length", "olmo2.embedding_length"),
    ],
)
def test_a_missing_key_is_named(name, method, key, golden_folder, tmp_path):
    with pytest.raises(ConfigError, match=f"has no '{key}'") as caught:
        _load(tmp_path, golden_folder, name, leave_out=[method])
    assert caught.value.facts["key"] == key


@pytest.mark.parametrize(
    ("name", "keys", "key"),
    [
        ("llama", {"add_expert_count": 8}, "llama.expert_count"),
        ("llama", {"add_head_count": [6, 6]}, "llama.attention.head_count"),
        ("llama", {"add_block_count": 2**31}, "llama.block_count"),
        ("llama", {"add_block_count": 0}, "llama.block_count"),
        ("llama", {"add_head_count": 0}, "llama.attention.head_count"),
        ("llama", {"add_value_length": 8}, "llama.attention.value_length"),
        ("llama", {"add_rope_dimension_count": 4}, "llama.rope.dimension_count"),
        ("qwen2", {"add_sliding_window": 9}, "qwen2.attention.sliding_window"),
        ("qwen3_moe", {"add_expert_count": 2**31}, "qwen3moe.expert_count"),
        (
            "qwen3_moe",
            {"add_expert_gating_func": gguf.ExpertGatingFuncType.SIGMOID},
            "qwen3moe.expert_gating_func",
        ),
        ("qwen3_moe", {"add_expert_shared_count": 1}, "qwen3moe.expert_shared_count"),
        ("qwen3_moe", {"add_expert_weights_scale": 2.5}, "qwen3moe.expert_weights_scale"),
        ("gemma3", {"add_sliding_window_pattern": [True]}, "gemma3.attention.sliding_window_patt"),
        ("olmo3", {"add_rope_scaling_attn_factors": 1.5}, "olmo2.rope.scaling.attn_factor"),
        ("olmo3", {"add_rope_scaling_yarn_attn_factor": 0.9}, "olmo2.rope.scaling.yarn_attn_fact"),
    ],
)
def test_a_value_that_we_cannot_compute_with_is_refused_by_name(
    name, keys, key, golden_folder, tmp_path
):
    with pytest.raises(ConfigError, match=key):
        _load(tmp_path, golden_folder, name, keys)


def test_a_scaling_that_we_do_not_have_is_named(golden_folder, tmp_path):
    keys = {"add_rope_scaling_type": gguf.RopeScalingType.LONGROPE}
    with pytest.raises(ConfigError, match="'longrope'"):
        _load(tmp_path, golden_folder, "llama", keys)


@pytest.mark.parametrize("stated", [1.0, 0.1 * math.log(4) + 1])
def test_both_ways_to_state_yarns_own_attention_factor_are_read(stated, golden_folder, tmp_path):
    loaded = _load(tmp_path, golden_folder, "olmo3", {"add_rope_scaling_attn_factors": stated})
    scaling = loaded.config.rope["full"].scaling
    assert scaling.query_key_factor == pytest.approx(0.1 * math.log(4) + 1)


def test_a_window_as_wide_as_the_context_changes_nothing(golden_folder, tmp_path):
    loaded = _load(tmp_path, golden_folder, "qwen2", {"add_sliding_window": 61})
    assert set(loaded.config.layer_types) == {"full"}


def test_tensors_of_another_family_are_refused(golden_folder, tmp_path):
    """Qwen3's head norms in a file that calls itself Qwen2."""
    case = CASES["qwen3"]
    config, weights = make_folder(tmp_path / "folder", golden_folder, case)
    path = tmp_path / "a.gguf"
    write_gguf(path, Target("qwen3"), config, weights)
    path.write_bytes(path.read_bytes().replace(b"qwen3", b"qwen2"))
    with pytest.raises(WeightError, match=r"blk\.0\.attn_k_norm\.weight"):
        load_model(path)


# ---------------------------------------------------------------------------- sizes and patterns
@pytest.mark.parametrize(
    ("architecture", "n_layers", "expected"),
    [("gemma2", 46, 12.0**-0.5), ("gemma2", 42, 0.25), ("gemma3", 62, 12.0**-0.5)],
)
def test_only_27b_scales_scores_by_the_models_width(architecture, n_layers, expected, tmp_path):
    found = _read_gemma(tmp_path / "a.gguf", architecture, n_layers)
    assert found.attention.score_scale == pytest.approx(expected)


@pytest.mark.parametrize(
    ("pattern", "first"),
    [(None, "wwwwwfww"), (4, "wwwfwwwf"), (0, "wwwwwwww"), (1, "ffffffff")],
)
def test_a_period_puts_the_full_layer_last(pattern, first, tmp_path):
    found = _read_gemma(tmp_path / "a.gguf", "gemma3", 26, pattern)
    assert "".join(layer_type[0] for layer_type in found.layer_types[:8]) == first


def _read_gemma(path, architecture, n_layers, pattern=None) -> ModelConfig:
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(64)
    writer.add_embedding_length(48)
    writer.add_block_count(n_layers)
    writer.add_feed_forward_length(96)
    writer.add_head_count(4)
    writer.add_key_length(16)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_sliding_window(8)
    if pattern is not None:
        writer.add_sliding_window_pattern(pattern)
    writer.add_tensor("token_embd.weight", np.zeros((97, 48), np.float32))
    for layer in range(n_layers):
        writer.add_tensor(f"blk.{layer}.attn_norm.weight", np.zeros(48, np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with GgufFile(path) as file:
        return find_gguf_family(architecture).gguf.config_from_file(file)
