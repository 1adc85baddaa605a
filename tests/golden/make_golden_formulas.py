"""Write the golden files of models that no library computes whole: formulas, and PyTorch's layers.

    python tests/golden/make_golden_formulas.py

`mla_plain`: a decoder with plain latent attention, written out here in float64, a head and a token
at a time. `encoder_decoder`: `torch.nn.Transformer` without its two outer norms (they are not in
the paper), with embeddings and sinusoids by their formula. Nothing of Glassbox is imported. Each
expected.safetensors carries the versions that made it. Weights are rounded to float16.
"""

import json
import math
from pathlib import Path

import torch
from safetensors import __version__ as safetensors_version
from safetensors.torch import save_file
from torch import nn

HERE = Path(__file__).parent
VERSIONS = {"torch": torch.__version__, "safetensors": safetensors_version}
PLAIN = {
    "model_type": "mla_plain", "vocab_size": 97, "hidden_size": 34, "intermediate_size": 52,
    "num_hidden_layers": 2, "num_attention_heads": 6, "qk_nope_head_dim": 10, "v_head_dim": 7,
    "kv_lora_rank": None, "max_position_embeddings": 61, "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
}  # fmt: skip


def draw(generator, *shape, around=0.0):
    """Normal numbers that float16 holds exactly, in float64."""
    spread = 0.5 if around else 1.5 / math.sqrt(shape[-1])
    return (around + spread * torch.randn(shape, generator=generator)).half().double()


def plain_weights(generator):
    vocabulary, width, inner = 97, 34, 52
    latent = max(16, width // 8)
    weights = {
        "model.embed_tokens.weight": draw(generator, vocabulary, width) * 4,
        "model.embed_positions.weight": draw(generator, 61, width) * 4,
        "model.norm.weight": draw(generator, width, around=1.0),
        "lm_head.weight": draw(generator, vocabulary, width),
    }
    for layer in range(2):
        at = f"model.layers.{layer}."
        weights |= {
            at + "input_layernorm.weight": draw(generator, width, around=1.0),
            at + "post_attention_layernorm.weight": draw(generator, width, around=1.0),
            at + "self_attn.q_proj.weight": draw(generator, 6 * 10, width),
            at + "self_attn.kv_a_proj_with_mqa.weight": draw(generator, latent, width),
            at + "self_attn.kv_b_proj.weight": draw(generator, 6 * (10 + 7), latent),
            at + "self_attn.o_proj.weight": draw(generator, width, 6 * 7),
            at + "mlp.gate_proj.weight": draw(generator, inner, width),
            at + "mlp.up_proj.weight": draw(generator, inner, width),
            at + "mlp.down_proj.weight": draw(generator, width, inner),
        }
    return weights


def normalised(x, weight):
    return x / (x.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * weight


def plain_attention(x, weights, at):
    """x (T, D): one latent a token, keys and values of each head read from it."""
    q_rows = weights[at + "q_proj.weight"].reshape(6, 10, -1)
    kv_rows = weights[at + "kv_b_proj.weight"].reshape(6, 10 + 7, -1)
    latent = x @ weights[at + "kv_a_proj_with_mqa.weight"].T
    heads = []
    for head in range(6):
        q, k = x @ q_rows[head].T, latent @ kv_rows[head, :10].T
        v = latent @ kv_rows[head, 10:].T
        read = []
        for t in range(len(x)):
            weight = torch.exp(k[: t + 1] @ q[t] / math.sqrt(10))
            read.append((weight / weight.sum()) @ v[: t + 1])
        heads.append(torch.stack(read))
    return torch.cat(heads, dim=1) @ weights[at + "o_proj.weight"].T


def plain_logits(ids, weights):
    x = weights["model.embed_tokens.weight"][ids]
    x = x + weights["model.embed_positions.weight"][: len(ids)]
    for layer in range(2):
        at = f"model.layers.{layer}."
        inputs = normalised(x, weights[at + "input_layernorm.weight"])
        x = x + plain_attention(inputs, weights, at + "self_attn.")
        inputs = normalised(x, weights[at + "post_attention_layernorm.weight"])
        gate = inputs @ weights[at + "mlp.gate_proj.weight"].T
        up = inputs @ weights[at + "mlp.up_proj.weight"].T
        x = x + (gate * torch.sigmoid(gate) * up) @ weights[at + "mlp.down_proj.weight"].T
    return normalised(x, weights["model.norm.weight"]) @ weights["lm_head.weight"].T


def write_plain(folder):
    generator = torch.Generator().manual_seed(1)
    weights = plain_weights(generator)
    ids = torch.randint(0, 97, (2, 23), generator=generator)
    logits = torch.stack([plain_logits(row, weights) for row in ids])
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(PLAIN, indent=2) + "\n")
    save_file({n: t.half() for n, t in weights.items()}, folder / "model.safetensors")
    expected = {"ids": ids, "logits": logits.float()}
    save_file(expected, folder / "expected.safetensors", metadata=VERSIONS)


def embedded(ids, table):
    """sqrt(d) times the row of each token, and the sines and cosines of its place."""
    width = table.shape[1]
    places = torch.zeros(ids.shape[1], width)
    for n in range(ids.shape[1]):
        for i in range(width // 2):
            angle = n / 10_000 ** (2 * i / width)
            places[n, 2 * i], places[n, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table[ids] * math.sqrt(width) + places


def write_encoder_decoder(folder):
    generator = torch.Generator().manual_seed(2)
    stacks = nn.Transformer(24, 6, 3, 2, 40, 0.0, batch_first=True).eval().requires_grad_(False)
    stacks.encoder.norm = stacks.decoder.norm = None
    stacks.encoder.use_nested_tensor = False  # warns
    for name, parameter in stacks.named_parameters():
        around = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        parameter.copy_(draw(generator, *parameter.shape, around=around))
    tables = {
        "source_embed.weight": draw(generator, 89, 24).float(),
        "target_embed.weight": draw(generator, 97, 24).float(),
        "head.weight": draw(generator, 97, 24).float(),
    }
    source = torch.randint(0, 89, (2, 11), generator=generator)
    target = torch.randint(0, 97, (2, 7), generator=generator)
    source_valid = torch.arange(11)[None] < torch.tensor([[11], [6]])
    hidden = stacks(
        embedded(source, tables["source_embed.weight"]),
        embedded(target, tables["target_embed.weight"]),
        tgt_mask=torch.ones(7, 7, dtype=torch.bool).triu(1),  # True is blocked there
        src_key_padding_mask=~source_valid,
        memory_key_padding_mask=~source_valid,
    )
    logits = hidden @ tables["head.weight"].T
    folder.mkdir(exist_ok=True)
    weights = {**stacks.state_dict(), **tables}
    save_file({n: t.half() for n, t in weights.items()}, folder / "model.safetensors")
    expected = {"source": source, "target": target, "source_valid": source_valid, "logits": logits}
    save_file(expected, folder / "expected.safetensors", metadata=VERSIONS)


if __name__ == "__main__":
    write_plain(HERE / "mla_plain")
    write_encoder_decoder(HERE / "encoder_decoder")
