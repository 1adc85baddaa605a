"""Write the golden files: tiny checkpoints and the logits that `transformers` computes for them.

    python tests/golden/make_golden.py

Run once with the versions pinned in requirements-dev.txt; the files are committed, together with
the versions that made them (versions.json). Weights are rounded to float16, to keep the files
small, and everything is computed in float32 from the rounded ones. Each dimension is another
number, so that two mixed-up axes cannot pass.
"""

import json
from pathlib import Path

import safetensors
import torch
import transformers
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent


def tiny_models():
    llama = LlamaConfig(
        vocab_size=97, hidden_size=42, intermediate_size=52, num_hidden_layers=2,
        num_attention_heads=6, num_key_value_heads=3, head_dim=10, max_position_embeddings=61,
        rms_norm_eps=1e-5, rope_parameters={"rope_type": "default", "rope_theta": 5_000.0},
        tie_word_embeddings=False,
    )  # fmt: skip
    gpt2 = GPT2Config(vocab_size=97, n_positions=61, n_embd=42, n_layer=2, n_head=6, n_inner=52)
    return {"llama": LlamaForCausalLM(llama), "gpt2": GPT2LMHeadModel(gpt2)}


def main():
    torch.manual_seed(1)
    for name, model in tiny_models().items():
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
