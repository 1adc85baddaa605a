"""Golden folders, varied, and what their GGUF files say."""

import json
from dataclasses import dataclass, field

import gguf
import torch
from gguf import GGMLQuantizationType as Kind
from safetensors.torch import load_file, save_file

from models.initialise import build_decoder
from models.registry import find_family
from models.weight_rules import save_weights
from tests.models.gguf_writing import Target, llama3_divisors, rounded

PLAIN = {"rope_type": "default", "rope_theta": 5_000.0}
YARN = {
    "rope_type": "yarn", "rope_theta": 5_000.0, "factor": 4.0,
    "original_max_position_embeddings": 9, "beta_fast": 2.0, "beta_slow": 0.25,
}  # fmt: skip
LONG_YARN = {  # both betas away from the usual, and pairs on both sides of each
    **YARN, "original_max_position_embeddings": 48, "beta_fast": 0.5, "beta_slow": 0.125,
}  # fmt: skip
LINEAR = {"rope_type": "linear", "rope_theta": 5_000.0, "factor": 3.0}
LLAMA3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0,
    "high_freq_factor": 4.0, "original_max_position_embeddings": 8_192,
}  # fmt: skip
YARN_KEYS = {
    "add_rope_scaling_type": gguf.RopeScalingType.YARN,
    "add_rope_scaling_factor": 4.0,
    "add_rope_scaling_orig_ctx_len": 9,
    "add_rope_scaling_yarn_beta_fast": 2.0,
    "add_rope_scaling_yarn_beta_slow": 0.25,
}
LONG_YARN_KEYS = {
    **YARN_KEYS,
    "add_rope_scaling_orig_ctx_len": 48,
    "add_rope_scaling_yarn_beta_fast": 0.5,
    "add_rope_scaling_yarn_beta_slow": 0.125,
}
MOE_KEYS = {
    "add_expert_count": 5,
    "add_expert_used_count": 2,
    "add_expert_feed_forward_length": 16,
}
WINDOW_THEN_FULL = {"add_sliding_window": 7, "add_sliding_window_pattern": [True, False]}


@dataclass(frozen=True)
class Case:
    """A golden folder, changes to its config.json, and what its GGUF file says."""

    golden: str
    target: Target
    changes: dict = field(default_factory=dict)


CASES = {
    "llama": Case("llama", Target("llama")),
    "llama, linear": Case(
        "llama",
        Target("llama", {
            "add_rope_scaling_type": gguf.RopeScalingType.LINEAR, "add_rope_scaling_factor": 3.0,
        }),
        {"rope_parameters": LINEAR},
    ),
    "llama, yarn": Case("llama", Target("llama", LONG_YARN_KEYS), {"rope_parameters": LONG_YARN}),
    "llama, llama3": Case(
        "llama",
        Target("llama", raw={"rope_freqs.weight": llama3_divisors(5e5, 10, 8.0)}),
        {"rope_parameters": LLAMA3},
    ),
    "mistral": Case("mistral", Target("llama", {"add_sliding_window": 7})),
    "mistral, as llama.cpp reads it": Case("mistral", Target("llama"), {"sliding_window": None}),
    "qwen2": Case("qwen2", Target("qwen2")),
    "qwen3": Case("qwen3", Target("qwen3")),
    "qwen3_moe": Case("qwen3_moe", Target("qwen3moe", MOE_KEYS)),
    "qwen3_moe, weights as they are": Case(
        "qwen3_moe",
        Target("qwen3moe", {**MOE_KEYS, "add_expert_weights_norm": False}),
        {"norm_topk_prob": False},
    ),
    "gemma2": Case(  # the period of two is llama.cpp's own
        "gemma2",
        Target("gemma2", {
            "add_sliding_window": 7, "add_attn_logit_softcapping": 20.0,
            "add_final_logit_softcapping": 10.0,
        }),
        {
            "query_pre_attn_scalar": 10, "attn_logit_softcapping": 20.0,
            "final_logit_softcapping": 10.0,
        },
    ),
    "gemma2, scale in the file": Case(
        "gemma2", Target("gemma2", {"add_sliding_window": 7, "add_attention_scale": 1 / 16})
    ),
    "gemma3": Case(
        "gemma3_text",
        Target("gemma3", {
            **WINDOW_THEN_FULL, "add_rope_freq_base_swa": 5_000.0,
            "add_rope_scaling_type": gguf.RopeScalingType.LINEAR, "add_rope_scaling_factor": 8.0,
        }),
        {"query_pre_attn_scalar": 10},
    ),
    "olmo2": Case(
        "olmo3", Target("olmo2"),
        {
            "model_type": "olmo2", "rope_parameters": PLAIN, "layer_types": None,
            "sliding_window": None,
        },
    ),
    "olmo3": Case("olmo3", Target("olmo2", {**WINDOW_THEN_FULL, **YARN_KEYS})),
}  # fmt: skip
WIDE = {  # every row a whole number of blocks of 32
    "hidden_size": 64, "intermediate_size": 96, "head_dim": 10,
    "num_attention_heads": 16, "num_key_value_heads": 4,
}  # fmt: skip


def make_folder(folder, golden_folder, case, kind=Kind.F32, **further):
    """A Hugging Face folder of that case; with a quantised kind, wide enough for its blocks."""
    config = json.loads((golden_folder / case.golden / "config.json").read_text())
    config = {**config, **case.changes, **further}
    if kind == Kind.F32:
        tensors = load_file(golden_folder / case.golden / "model.safetensors")
        weights = {name: tensor.float().numpy() for name, tensor in tensors.items()}
    else:
        weights = {n: rounded(values, kind) for n, values in random_weights(config).items()}
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    tensors = {name: torch.from_numpy(values.copy()) for name, values in weights.items()}
    save_file(tensors, folder / "model.safetensors")
    return config, weights


def random_weights(config):
    family = find_family(config)
    ours = family.config_from_hf(config)
    generator = torch.Generator().manual_seed(3)
    decoder = build_decoder(ours, generator).requires_grad_(False)
    for parameter in decoder.parameters():  # wider than at initialisation: errors show
        parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    saved = save_weights(family.rules(ours), dict(decoder.named_parameters()), ours)
    return {name: tensor.numpy() for name, tensor in saved.items()}
