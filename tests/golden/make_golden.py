"""Write the golden files: tiny checkpoints and the logits that `transformers` computes for them.

    python tests/golden/make_golden.py [NAME ...]

Without names it writes all of them. Run once with the versions pinned in requirements-dev.txt; the
files are committed, together with the versions that made them (versions.json). Weights are rounded
to float16, to keep the files small, and everything is computed in float32 from the rounded ones.
Each dimension is another number, so that two mixed-up axes cannot pass.
"""

import json
import sys
from pathlib import Path

import safetensors
import torch
import transformers
from safetensors.torch import save_file
from transformers import (
    DeepseekV3Config,
    DeepseekV3ForCausalLM,
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MistralConfig,
    MistralForCausalLM,
    Olmo3Config,
    Olmo3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
    Qwen3MoeConfig,
    Qwen3MoeForCausalLM,
)

HERE = Path(__file__).parent


SHARED = dict(
    vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, head_dim=10, max_position_embeddings=61,
)  # fmt: skip
YARN = {
    "rope_type": "yarn", "rope_theta": 5_000.0, "factor": 4.0,
    "original_max_position_embeddings": 9, "beta_fast": 2, "beta_slow": 0.25,
}  # fmt: skip
PLAIN = {"rope_type": "default", "rope_theta": 5_000.0}


def tiny_models():
    """Prompts of 23 tokens reach past every window and original context here."""
    llama = LlamaConfig(
        vocab_size=97, hidden_size=42, intermediate_size=52, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=3, head_dim=10, max_position_embeddings=61,
        rms_norm_eps=1e-5, rope_parameters=PLAIN, tie_word_embeddings=False,
    )  # fmt: skip
    gpt2 = GPT2Config(vocab_size=97, n_positions=61, n_embd=42, n_layer=2, n_head=6, n_inner=52)
    mistral = MistralConfig(**SHARED, sliding_window=7, rope_parameters=PLAIN)
    qwen3 = Qwen3Config(**SHARED, rope_parameters=PLAIN, tie_word_embeddings=True)
    qwen2 = Qwen2Config(**{**SHARED, "hidden_size": 40}, rope_parameters=PLAIN)
    qwen3_moe = Qwen3MoeConfig(
        **{**SHARED, "num_hidden_layers": 1}, rope_parameters=PLAIN, num_experts=5,
        num_experts_per_tok=2, moe_intermediate_size=16, norm_topk_prob=True,
    )  # fmt: skip
    gemma3 = Gemma3TextConfig(
        **SHARED, sliding_window=7, query_pre_attn_scalar=14,
        layer_types=["sliding_attention", "full_attention"],
        rope_parameters={
            "sliding_attention": PLAIN,
            "full_attention": {"rope_type": "linear", "rope_theta": 9_000.0, "factor": 8.0},
        },
    )  # fmt: skip
    gemma2 = Gemma2Config(**SHARED, sliding_window=7, rope_parameters=PLAIN)
    olmo3 = Olmo3Config(
        **{**SHARED, "hidden_size": 40}, sliding_window=7,
        layer_types=["sliding_attention", "full_attention"],
        rope_parameters={"sliding_attention": PLAIN, "full_attention": YARN},
    )  # fmt: skip
    deepseek = DeepseekV3Config(
        vocab_size=97, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=4, q_lora_rank=11, kv_lora_rank=13,
        qk_rope_head_dim=6, qk_nope_head_dim=4, v_head_dim=7, first_k_dense_replace=2,
        max_position_embeddings=61, rope_parameters={**YARN, "mscale": 1.0, "mscale_all_dim": 0.7},
    )  # fmt: skip
    return {
        "deepseek": DeepseekV3ForCausalLM(deepseek),
        "llama": LlamaForCausalLM(llama),
        "gpt2": GPT2LMHeadModel(gpt2),
        "mistral": MistralForCausalLM(mistral),
        "qwen2": Qwen2ForCausalLM(qwen2),
        "qwen3": Qwen3ForCausalLM(qwen3),
        "qwen3_moe": Qwen3MoeForCausalLM(qwen3_moe),
        "gemma2": Gemma2ForCausalLM(gemma2),
        "gemma3_text": Gemma3ForCausalLM(gemma3),
        "olmo3": Olmo3ForCausalLM(olmo3),
    }


def main():
    models = tiny_models()
    for name in sys.argv[1:] or models:
        model = models[name]
        torch.manual_seed(1)
        with torch.no_grad():
            for parameter in model.parameters():  # wider than at initialisation: errors show
                parameter.add_(0.3 * torch.randn_like(parameter)).copy_(parameter.half().float())
            ids = torch.randint(0, 97, (2, 23))
            model.eval()
            logits = model(ids).logits
        folder = HERE / name
        model.half().save_pretrained(folder)
        save_file({"ids": ids, "logits": logits}, folder / "expected.safetensors")
        (folder / "generation_config.json").unlink(missing_ok=True)
    versions = {m.__name__: m.__version__ for m in (torch, transformers, safetensors)}
    (HERE / "versions.json").write_text(json.dumps(versions, indent=2) + "\n")


if __name__ == "__main__":
    main()
