"""Configurations, presets, counts: what is refused, and every number against the published one."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, replace

import pytest
import torch

from models import count_parameters, get_preset
from models.config import AttentionConfig, DropoutConfig, FfnConfig, NormConfig, RopeConfig
from models.decoder import Decoder
from models.errors import ConfigError
from models.families import deepseek, gpt2, llama
from models.registry import find_family, find_gguf_family, presets

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama2-7b": 6_738_415_616,
    "llama2-7b-chat": 6_738_415_616,
    "llama3-8b": 8_030_261_248,
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "llama3.1-8b": 8_030_261_248,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "mistral-7b-v0.1": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
    "qwen2.5-0.5b": 494_032_768,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-30b-a3b-2507": 30_532_122_624,
    "gemma3-270m": 268_098_176,
    "gemma3-1b": 999_885_952,
    "gemma3-4b": 3_880_263_168,
    "olmo2-1b": 1_484_916_736,
    "olmo3-7b": 7_298_011_136,
    "olmo3-32b": 32_233_522_176,
}
# made to be trained here; summed by hand from the widths in models/families/
TO_TRAIN = {
    "starter": 4_096 * 192 + 6 * (110_592 + 368_640 + 384) + 192,
    "mla-plain-tiny": 50_257 * 256 + 256 * 256 + 4 * (155_648 + 528_384 + 512) + 256,
    "mla-rope-tiny": 50_257 * 256 + 4 * (139_264 + 528_384 + 640) + 256,
}


def test_every_preset_has_its_published_count():
    counts = {name: count_parameters(c).unique for name, c in presets().items()}
    assert counts == {**PUBLISHED, **TO_TRAIN}


# the ones with 6,144 experts take seconds to build even without memory
EXPERTS = [
    pytest.param(n, marks=pytest.mark.slow) if "a3b" in n else n for n in [*PUBLISHED, *TO_TRAIN]
]


@pytest.mark.parametrize("name", EXPERTS)
def test_counts_equal_those_of_the_tensors(name):
    with torch.device("meta"):
        model = Decoder(get_preset(name))
    count = count_parameters(model.config)
    assert count.unique == sum(p.numel() for p in model.parameters())
    assert count.unique == sum(count.parts.values())
    copy = model.embed.weight.numel() if model.config.tied_head else 0
    assert count.total == count.unique + copy


def test_an_unknown_preset_lists_the_closest():
    with pytest.raises(ConfigError, match="smollm2-135m"):
        get_preset("smollm-135")


def test_configurations_cannot_be_changed_from_inside(llama_config):
    with pytest.raises(TypeError):
        llama_config.rope["full"] = RopeConfig(theta=3.0)
    with pytest.raises(TypeError):
        llama_config.rope.clear()
    for copied in (copy.deepcopy(llama_config), pickle.loads(pickle.dumps(llama_config))):
        assert copied == llama_config
    assert asdict(llama_config)["rope"]["full"]["theta"] == 5_000.0
    listed = replace(llama_config, layer_types=["full", "full"])
    assert listed.layer_types == ("full", "full")
    assert hash(listed) == hash(replace(llama_config, layer_types=("full", "full")))


def test_configurations_are_frozen(llama_config):
    with pytest.raises(FrozenInstanceError):
        llama_config.d_model = 3


@pytest.mark.parametrize(
    ("make", "remedy"),
    [
        (lambda c: AttentionConfig(n_heads=16, n_kv_heads=5, d_head=8), "choose 1, 2, 4, 8 or 16"),
        (lambda c: AttentionConfig(n_heads=0, n_kv_heads=1, d_head=8), "at least 1"),
        (lambda c: AttentionConfig(n_heads=1, n_kv_heads=1, d_head=8, scale=0.0), "above 0"),
        (lambda c: FfnConfig(d_ff=0, activation="silu", gated=True), "at least 1"),
        (lambda c: NormConfig(kind="rmsnorm", eps=0.0), "between 0 and 1"),
        (lambda c: RopeConfig(theta=0.5), "10000 is usual"),
        (lambda c: DropoutConfig(residual=1.0), "below 1"),
        (lambda c: replace(c, rope={}), "add the missing ones"),
        (lambda c: replace(c, positions="learned"), "use positions='rope'"),
        (lambda c: replace(c, layer_types=()), "n_layers"),
        (lambda c: replace(c, vocab_size=0), "at least 1"),
        (
            lambda c: replace(c, attention=AttentionConfig(n_heads=2, n_kv_heads=1, d_head=7)),
            "choose 8",
        ),
    ],
)
def test_impossible_values_are_refused_with_a_remedy(make, remedy, llama_config):
    with pytest.raises(ConfigError, match=remedy):
        make(llama_config)


HF_LLAMA = {
    "model_type": "llama",
    "vocab_size": 97,
    "hidden_size": 42,
    "intermediate_size": 52,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
}


def test_defaults_of_a_short_config_are_those_of_the_reference():
    config = llama.config_from_hf({**HF_LLAMA, "hidden_size": 48})
    assert (config.attention.n_kv_heads, config.attention.d_head) == (6, 8)
    assert config.context_length == 2_048
    assert config.norm.eps == 1e-6
    assert config.rope["full"].theta == 10_000.0
    assert not config.tied_head


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden_size": None}, "no 'hidden_size'"),
        ({"hidden_size": "wide"}, "not a whole number"),
        ({"rms_norm_eps": "small"}, "not a number"),
        ({"attention_bias": "yes"}, "not true or false"),
        ({"hidden_act": "snake"}, "known are silu"),
        ({"rope_scaling": {"rope_type": "longrope", "factor": 8.0}}, "known are default"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "no 'low_freq_factor'"),
        ({"rope_scaling": {"type": "linear", "factor": 0.5}}, "at least 1"),
        ({"partial_rotary_factor": 0.5}, "partial_rotary_factor"),
        ({"num_key_value_heads": 4}, "choose 1, 2, 3 or 6"),
        ({"num_attention_heads": 0}, "between 1 and"),
        ({"num_attention_heads": 1_000_000_007, "num_key_value_heads": 2}, "choose 1 or 10000"),
        ({"num_hidden_layers": 30_000_000}, "between 1 and 1000"),
        ({"num_hidden_layers": 10**30}, "between 1 and 1000"),
        ({"hidden_size": 2**63}, "between 1 and"),
        ({"rms_norm_eps": 10**400}, "reasonable size"),
        ({"rms_norm_eps": float("nan")}, "reasonable size"),
        ({"rope_parameters": "linear"}, "not an object"),
        ({"rope_scaling": [1]}, "not an object"),
    ],
)
def test_a_config_that_we_would_compute_wrongly_is_refused(changes, message):
    values = {**HF_LLAMA, "head_dim": 8, **changes}
    with pytest.raises(ConfigError, match=message):
        llama.config_from_hf(values)


def test_gpt2_variants_that_change_the_numbers_are_refused():
    values = {"vocab_size": 97, "n_positions": 61, "n_embd": 42, "n_layer": 2, "n_head": 6}
    assert gpt2.config_from_hf(values).attention.d_head == 7
    for key in ("scale_attn_by_inverse_layer_idx", "add_cross_attention"):
        with pytest.raises(ConfigError, match=key):
            gpt2.config_from_hf({**values, key: True})


DENSE_DEEPSEEK = {
    "vocab_size": 97, "hidden_size": 42, "intermediate_size": 52, "num_hidden_layers": 2,
    "num_attention_heads": 6, "first_k_dense_replace": 2,
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"first_k_dense_replace": 1}, "sigmoid scores.*choose a model without them"),
        ({"first_k_dense_replace": None, "num_hidden_layers": 4}, "first_k_dense_replace=3 of 4"),
        ({"attention_bias": True, "q_lora_rank": None}, "attention_bias=True"),
        ({"num_key_value_heads": 3}, "num_key_value_heads=3"),
        (
            {"rope_scaling": {"type": "yarn", "factor": 4.0, "mscale": "a", "mscale_all_dim": 1}},
            "mscale='a', which is not a number",
        ),
        ({"qk_rope_head_dim": 5}, "must be even"),
    ],
)
def test_a_deepseek_that_we_would_compute_wrongly_is_refused(changes, message):
    assert deepseek.config_from_hf(DENSE_DEEPSEEK).attention.d_head == 128 + 64
    with pytest.raises(ConfigError, match=message):
        deepseek.config_from_hf({**DENSE_DEEPSEEK, **changes})


def test_totals_with_a_copy_of_the_tied_head_as_published():
    assert count_parameters(get_preset("qwen3-0.6b")).total == 751_632_384
    assert count_parameters(get_preset("gemma3-270m")).total == 435_870_336


def test_an_unknown_family_lists_the_known():
    with pytest.raises(ConfigError, match=r"'mamba'.*Llama.*GPT-2"):
        find_family({"model_type": "mamba"})
    with pytest.raises(ConfigError, match=r"'rwkv'.*Llama"):
        find_gguf_family("rwkv")


def test_a_configuration_of_no_kind_says_what_is_missing():
    for values in ({}, {"model_type": None, "hidden_size": 8}):
        with pytest.raises(ConfigError, match=r"no model_type.*Llama.*llama") as error:
            find_family(values)
        assert error.value.code == "family-missing"
