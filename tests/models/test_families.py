"""Every family against `transformers`: recorded logits always, live models when marked slow."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from models import KVCache, load_model
from models.registry import FAMILIES
from models.weight_rules import load_weights, save_weights

RECORDED = (
    "llama",
    "gpt2",
    "mistral",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "gemma2",
    "gemma3_text",
    "olmo3",
    "deepseek",
    "mla_plain",
)
TOLERANCE = 1e-4  # fp32 sums in another order


@pytest.fixture(params=RECORDED)
def recorded(request, golden_folder):
    folder = golden_folder / request.param
    expected = load_file(folder / "expected.safetensors")
    return load_model(folder), expected["ids"], expected["logits"]


def test_logits_equal_the_recorded_ones(recorded):
    loaded, ids, logits = recorded
    torch.testing.assert_close(loaded.model(ids), logits, atol=TOLERANCE, rtol=0)


def test_token_by_token_through_the_cache_equals_whole(recorded):
    loaded, ids, logits = recorded
    cache = KVCache(loaded.config, 2, 23)
    steps = [loaded.model(ids[:, i : i + 1], cache=cache) for i in range(ids.shape[1])]
    torch.testing.assert_close(torch.cat(steps, dim=1), logits, atol=TOLERANCE, rtol=0)
    assert cache.lengths.tolist() == [23, 23]


def test_in_chunks_through_the_cache_equals_whole(recorded):
    loaded, ids, logits = recorded
    cache = KVCache(loaded.config, 2, 40)
    steps = [loaded.model(chunk, cache=cache) for chunk in ids.split([5, 1, 11, 6], dim=1)]
    torch.testing.assert_close(torch.cat(steps, dim=1), logits, atol=TOLERANCE, rtol=0)


def test_rewound_cache_continues_as_if_never_read_further(recorded):
    loaded, ids, logits = recorded
    cache = KVCache(loaded.config, 2, 23)
    loaded.model(ids, cache=cache)
    cache.truncate(9)
    again = loaded.model(ids[:, 9:], cache=cache)
    torch.testing.assert_close(again, logits[:, 9:], atol=TOLERANCE, rtol=0)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("cached", [False, True])
def test_padded_row_equals_the_row_alone(recorded, side, cached):
    loaded, ids, logits = recorded
    n_real = (23, 14)
    valid = torch.zeros(2, 23, dtype=torch.bool)
    padded = torch.full_like(ids, 3)
    for row, n in enumerate(n_real):
        place = slice(23 - n, 23) if side == "left" else slice(0, n)
        valid[row, place] = True
        padded[row, place] = ids[row, :n]
    cache = KVCache(loaded.config, 2, 23) if cached else None
    found = loaded.model(padded, valid=valid, cache=cache)
    for row, n in enumerate(n_real):
        torch.testing.assert_close(found[row][valid[row]], logits[row, :n], atol=TOLERANCE, rtol=0)


def test_rows_of_unequal_length_go_on_together_in_the_cache(recorded):
    loaded, ids, logits = recorded
    cache = KVCache(loaded.config, 2, 23)
    valid = torch.arange(14)[None] >= torch.tensor([[0], [5]])  # row 1 starts with 5 paddings
    first = torch.stack([ids[0, :14], torch.cat([ids[1, :5], ids[1, :9]])])
    loaded.model(first, valid=valid, cache=cache)
    assert cache.lengths.tolist() == [14, 9]
    following = torch.stack([ids[0, 14:17], ids[1, 9:12]])
    found = torch.cat([loaded.model(following[:, i : i + 1], cache=cache) for i in range(3)], dim=1)
    torch.testing.assert_close(found[0], logits[0, 14:17], atol=TOLERANCE, rtol=0)
    torch.testing.assert_close(found[1], logits[1, 9:12], atol=TOLERANCE, rtol=0)


def test_rules_and_their_inverse_come_back_to_the_same_file(recorded, golden_folder):
    loaded, _, _ = recorded
    family = next(f for f in FAMILIES if f.name == loaded.info.family)
    saved = save_weights(
        family.rules(loaded.config), dict(loaded.model.named_parameters()), loaded.config
    )
    original = load_file(golden_folder / loaded.info.name / "model.safetensors")
    assert saved.keys() == original.keys()
    for name, tensor in original.items():
        torch.testing.assert_close(saved[name], tensor.float(), atol=0, rtol=0)


def test_gguf_rules_and_their_inverse_come_back(recorded):
    loaded, _, _ = recorded
    parameters = dict(loaded.model.named_parameters())
    name = "Llama" if loaded.info.family == "Mistral" else loaded.info.family  # one format
    layout = next(f for f in FAMILIES if f.name == name).gguf
    if layout is None:
        pytest.skip("there are no GGUF files of this family")
    table = layout.rules(loaded.config)
    saved = save_weights(table, parameters, loaded.config)

    class Memory:
        def names(self):
            return tuple(saved)

        def tensor(self, name):
            return saved[name]

    shapes = {name: tuple(p.shape) for name, p in parameters.items()}
    back = load_weights(table, Memory(), shapes, loaded.config, convert=lambda _, t: t)
    for name, tensor in parameters.items():
        torch.testing.assert_close(back[name], tensor.data, atol=0, rtol=0)


def test_recorded_files_name_the_versions_that_made_them(golden_folder):
    assert set(json.loads((golden_folder / "versions.json").read_text())) == {
        "torch", "transformers", "safetensors",
    }  # fmt: skip


# ------------------------------------------------------------------------ live transformers
LLAMAS = {
    "grouped": {},
    "multi-head": {"num_key_value_heads": 6},
    "multi-query": {"num_key_value_heads": 1},
    "tied": {"tie_word_embeddings": True},
    "head_dim free": {"head_dim": 22},
    "head_dim from hidden": {"head_dim": None, "hidden_size": 60},
    "attention bias": {"attention_bias": True},
    "mlp bias": {"mlp_bias": True},
    "gelu": {"hidden_act": "gelu"},
    "gelu_fast": {"hidden_act": "gelu_fast"},
    "gelu_pytorch_tanh": {"hidden_act": "gelu_pytorch_tanh"},
    "other base": {"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}},
    "one layer": {"num_hidden_layers": 1},
}
GPTS = {
    "plain": {},
    "untied": {"tie_word_embeddings": False},
    "exact gelu": {"activation_function": "gelu"},
    "relu": {"activation_function": "relu"},
    "unscaled": {"scale_attn_weights": False},
    "wide inner": {"n_inner": 52},
}


YARN = {
    "rope_type": "yarn", "rope_theta": 5e3, "factor": 4.0,
    "original_max_position_embeddings": 16, "beta_fast": 8, "beta_slow": 1,
}  # fmt: skip
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 1e4, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 16,
}  # fmt: skip
DEFAULT = {"rope_type": "default", "rope_theta": 5e3}
LLAMAS |= {
    "linear": {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0}},
    "llama3": {"rope_parameters": LLAMA3},
    "yarn": {"rope_parameters": YARN},
    "yarn, own attention factor": {"rope_parameters": {**YARN, "attention_factor": 1.5}},
}
DEEPSEEK_YARN = {**YARN, "mscale": 1.0, "mscale_all_dim": 0.7}
DEEPSEEK = dict(
    q_lora_rank=11, kv_lora_rank=13, qk_rope_head_dim=6, qk_nope_head_dim=4, v_head_dim=7,
    first_k_dense_replace=7, num_key_value_heads=6,
)  # fmt: skip
# family -> (class of transformers, variant -> changes); all prompts reach past the windows
OTHERS = {
    "Mistral": {"window": {"sliding_window": 9}, "no window": {"sliding_window": None}},
    "Qwen2": {
        "plain": {"hidden_size": 60},
        "late windows": {
            "hidden_size": 60, "use_sliding_window": True, "sliding_window": 9,
            "max_window_layers": 2,
        },
    },
    "Qwen3": {"plain": {}, "tied, biased": {"tie_word_embeddings": True, "attention_bias": True}},
    "Qwen3Moe": {
        "weights normalised": {"norm_topk_prob": True},
        "weights as they are": {"norm_topk_prob": False, "num_experts_per_tok": 3},
    },
    "Gemma2": {"plain": {"sliding_window": 9, "query_pre_attn_scalar": 14}},
    "Gemma3": {
        "plain": {"sliding_window": 9, "query_pre_attn_scalar": 14},
        "linear on full layers": {
            "sliding_window": 9,
            "rope_parameters": {
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": DEFAULT,
            },
        },
    },
    "Olmo2": {"plain": {"hidden_size": 60}},
    "Olmo3": {
        "yarn on full layers": {
            "hidden_size": 60, "sliding_window": 9,
            "rope_parameters": {"full_attention": YARN, "sliding_attention": DEFAULT},
        },
    },
    "DeepseekV3": {
        "dense": DEEPSEEK,
        "queries from the stream": {**DEEPSEEK, "q_lora_rank": None},
        "pairs as halves": {**DEEPSEEK, "rope_interleave": False},
        "biases, tied": {**DEEPSEEK, "attention_bias": True, "tie_word_embeddings": True},
        "other epsilon": {**DEEPSEEK, "rms_norm_eps": 1e-3},
        "yarn, mscale": {**DEEPSEEK, "rope_parameters": DEEPSEEK_YARN},
        "yarn": {**DEEPSEEK, "rope_parameters": YARN},
    },
}  # fmt: skip


def _other(family, changes):
    import transformers

    values = dict(
        vocab_size=97, hidden_size=48, intermediate_size=64, num_hidden_layers=7,
        num_attention_heads=6, num_key_value_heads=3, head_dim=10, max_position_embeddings=128,
    )  # fmt: skip
    if family == "Qwen3Moe":  # widths that its grouped products can take
        values |= {"num_experts": 5, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
    if family in {"Qwen2", "Olmo2", "Olmo3", "DeepseekV3"}:
        del values["head_dim"]
    kind = "Gemma3TextConfig" if family == "Gemma3" else f"{family}Config"
    config = getattr(transformers, kind)(**{**values, **changes})
    return getattr(transformers, f"{family}ForCausalLM")(config)


def _llama(changes):
    from transformers import LlamaConfig, LlamaForCausalLM

    values = dict(
        vocab_size=97, hidden_size=42, intermediate_size=52, num_hidden_layers=3,
        num_attention_heads=6, num_key_value_heads=3, head_dim=10, max_position_embeddings=128,
    )  # fmt: skip
    return LlamaForCausalLM(LlamaConfig(**{**values, **changes}))


def _gpt2(changes):
    from transformers import GPT2Config, GPT2LMHeadModel

    values = dict(vocab_size=97, n_positions=128, n_embd=42, n_layer=3, n_head=6)
    return GPT2LMHeadModel(GPT2Config(**{**values, **changes}))


def _build(family, variant):
    if family == "llama":
        return _llama(LLAMAS[variant])
    return _gpt2(GPTS[variant]) if family == "gpt2" else _other(family, OTHERS[family][variant])


CASES = [("llama", k) for k in LLAMAS] + [("gpt2", k) for k in GPTS]
CASES += [(family, variant) for family, variants in OTHERS.items() for variant in variants]


@pytest.mark.slow
@pytest.mark.parametrize(("family", "variant"), CASES, ids=lambda v: v)
@pytest.mark.parametrize("shard_size", ["1GB", "20KB"])
def test_97_tokens_equal_live_transformers(family, variant, shard_size, tmp_path):
    torch.manual_seed(2)
    theirs = _build(family, variant)
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    theirs.eval().save_pretrained(tmp_path, max_shard_size=shard_size)
    assert (tmp_path / "model.safetensors.index.json").exists() == (shard_size == "20KB")
    ids = torch.randint(0, 97, (2, 97))
    with torch.no_grad():
        expected = theirs(ids).logits
    loaded = load_model(tmp_path)
    scale = max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(loaded.model(ids) / scale, expected / scale, atol=1e-5, rtol=0)
    cache = KVCache(loaded.config, 2, 97)
    steps = [loaded.model(ids[:, i : i + 1], cache=cache) for i in range(97)]
    torch.testing.assert_close(torch.cat(steps, 1) / scale, expected / scale, atol=1e-5, rtol=0)


@pytest.mark.slow
def test_old_form_of_config_json_is_read_like_the_new_one(tmp_path):
    theirs = _llama({"rope_parameters": {"rope_type": "default", "rope_theta": 7e4}})
    theirs.eval().save_pretrained(tmp_path)
    values = json.loads((tmp_path / "config.json").read_text())
    values["rope_theta"] = values.pop("rope_parameters")["rope_theta"]
    values["rope_scaling"] = None
    (tmp_path / "config.json").write_text(json.dumps(values))
    ids = torch.randint(0, 97, (1, 40))
    with torch.no_grad():
        expected = theirs(ids).logits
    torch.testing.assert_close(load_model(tmp_path).model(ids), expected, atol=1e-4, rtol=0)


@pytest.mark.slow
def test_gpt2_files_without_the_prefix_and_with_mask_buffers_load(tmp_path):
    theirs = _gpt2({}).eval()
    theirs.save_pretrained(tmp_path)
    weights = load_file(tmp_path / "model.safetensors")
    bare = {n.removeprefix("transformer."): t.clone() for n, t in weights.items()}
    bare["h.0.attn.bias"] = torch.ones(1, 1, 128, 128).tril()
    bare["h.0.attn.masked_bias"] = torch.tensor(-1e4)
    save_file(bare, tmp_path / "model.safetensors")
    ids = torch.randint(0, 97, (1, 40))
    with torch.no_grad():
        expected = theirs(ids).logits
    torch.testing.assert_close(load_model(tmp_path).model(ids), expected, atol=1e-4, rtol=0)
