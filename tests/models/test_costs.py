"""Operations and bytes against published numbers, hand formulas, and tensors that are there."""

from dataclasses import replace

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from models import KVCache, Trace, get_preset, load_model
from models.config import MoeConfig
from models.costs import (
    count_cache_bytes,
    count_operations,
    count_training_bytes,
    count_weight_bytes,
)
from models.errors import ConfigError
from models.initialise import build_decoder
from models.mla_config import MlaConfig

GIB = 2**30


# Published figures; course code behind them counts what the options say.
@pytest.mark.parametrize(
    ("name", "options", "float32", "bfloat16"),
    [
        ("llama2-7b", {"stores_masks": True}, 52.21, None),
        ("llama2-7b", {"stores_masks": True, "rope_tables": "every layer"}, 52.33, 26.17),
        ("llama3-8b", {"rope_tables": "once"}, 59.84, 29.92),
        ("qwen3-0.6b", {"copies_head": True, "rope_tables": "once"}, 5.64, 2.82),
        ("qwen3-30b-a3b-2507", {"rope_tables": "once"}, 227.73, 113.87),
        ("gemma3-270m", {"copies_head": True, "rope_tables": "once"}, 3.37, 1.69),
    ],
)
def test_weights_and_gradients_as_published(name, options, float32, bfloat16):
    config = get_preset(name)
    assert round(count_training_bytes(config, "float32", **options) / GIB, 2) == float32
    if bfloat16 is not None:
        assert round(count_training_bytes(config, "bfloat16", **options) / GIB, 2) == bfloat16


def test_plain_weights_and_gradients_are_two_numbers_a_parameter():
    assert count_training_bytes(get_preset("smollm2-135m"), "float32") == 134_515_008 * 2 * 4


def test_8_bits_have_no_gradients():
    with pytest.raises(ConfigError, match="choose float32"):
        count_training_bytes(get_preset("gpt2"), "int8")


# -------------------------------------------------------------------------------- operations
def measured(config, n_tokens):
    """Of one pass over a text, by torch's own counter of matrix products."""
    model = build_decoder(config, torch.Generator().manual_seed(1)).requires_grad_(False)
    ids = torch.randint(0, 97, (1, n_tokens), generator=torch.Generator().manual_seed(2))
    # patterns are asked for: the counter does not look into the fused kernel of the CPU
    with FlopCounterMode(display=False) as counter:
        model(ids, trace=Trace(record=("blocks.*.attn.pattern",)))
    return counter.get_total_flops()


def of_text(config, n_tokens):
    """The counter sees every query meet every key, those behind the mask too."""
    return count_operations(config, n_tokens).total * n_tokens


def test_operations_equal_the_counter_of_torch(config):
    assert of_text(config, 7) == measured(config, 7)


def test_of_experts_only_the_active_ones_count(llama_config):
    moe = MoeConfig(n_experts=5, n_active=2, d_ff=22, normalise_weights=True)
    config = replace(llama_config, moe=moe)
    assert of_text(config, 7) == measured(config, 7)


@pytest.mark.parametrize("q_latent", [None, 14])
def test_operations_of_latent_attention_equal_the_counter_of_torch(llama_config, q_latent):
    heads = replace(llama_config.attention, n_kv_heads=6)
    mla = MlaConfig(kv_lora_rank=18, q_lora_rank=q_latent, qk_rope_head_dim=4, v_head_dim=8)
    config = replace(llama_config, attention=heads, mla=mla)
    assert of_text(config, 7) == measured(config, 7)


def test_a_mixture_by_hand():
    attention = 2_048 * (4_096 + 512 + 512) + 4_096 * 2_048
    experts = 8 * 3 * 2_048 * 768 + 2_048 * 128
    expected = 48 * (attention + experts) + 151_936 * 2_048
    assert count_operations(get_preset("qwen3-30b-a3b"), 1).matrices == 2 * expected


def test_attention_by_hand(llama_config):
    assert count_operations(llama_config, 19).attention == 4 * 19 * 6 * 10 * 3
    windowed = replace(
        llama_config,
        layer_types=("window", "window", "full"),
        attention=replace(llama_config.attention, window=8),
        rope={"window": llama_config.rope["full"], "full": llama_config.rope["full"]},
    )
    assert count_operations(windowed, 19).attention == 4 * 6 * 10 * (8 + 8 + 19)
    assert count_operations(windowed, 5).attention == 4 * 6 * 10 * 15


# ------------------------------------------------------------------------------------- cache
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_bytes_of_the_cache_equal_those_allocated(config, dtype):
    cache = KVCache(config, 1, 19, dtype=getattr(torch, dtype))
    assert count_cache_bytes(config, 19, dtype).total == cache.nbytes


def test_llama3_8b_takes_128_kib_a_token_in_16_bits():
    """2 x 8 heads x 128 x 32 layers x 2 bytes."""
    found = count_cache_bytes(get_preset("llama3-8b"), 8_192, "bfloat16")
    assert found.per_token == {"full": 128 * 1024}
    assert found.total == GIB


def test_window_layers_stop_growing():
    mistral = get_preset("mistral-7b-v0.1")
    of_token = 2 * 8 * 128 * 32 * 2
    assert count_cache_bytes(mistral, 4_096, "bfloat16").total == 4_096 * of_token
    assert count_cache_bytes(mistral, 32_768, "bfloat16").total == 4_096 * of_token
    gemma = get_preset("gemma3-1b")  # 26 layers, every sixth sees all, one head of 256
    found = count_cache_bytes(gemma, 2_000, "bfloat16")
    assert found.per_token == {"window": 22 * 1_024, "full": 4 * 1_024}
    assert found.total == 22 * 1_024 * 512 + 4 * 1_024 * 2_000


def test_in_8_bits_the_cache_stays_float32(llama_config):
    in_8_bits = count_cache_bytes(llama_config, 5, "int8")
    assert in_8_bits == count_cache_bytes(llama_config, 5, "float32")


# ----------------------------------------------------------------------------------- weights
@pytest.mark.parametrize("name", ["llama", "gpt2", "qwen2", "qwen3_moe", "gemma2", "olmo3"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", "int8"])
def test_bytes_of_weights_equal_those_of_the_tensors(golden_folder, name, dtype):
    loaded = load_model(golden_folder / name, dtype=dtype)
    stored = sum(p.nbytes for p in loaded.model.parameters())
    assert count_weight_bytes(loaded.config, dtype) == stored


def test_smollm2_in_8_bits_is_about_a_quarter():
    config = get_preset("smollm2-135m")
    assert count_weight_bytes(config, "float32") == 538_060_032
    assert count_weight_bytes(config, "int8") / 538_060_032 < 0.26


def test_an_unknown_type_is_refused(llama_config):
    for count in (count_weight_bytes, count_training_bytes):
        with pytest.raises(ConfigError, match="choose float32"):
            count(llama_config, "int4")
