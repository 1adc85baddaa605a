"""Hugging Face folders rewritten as GGUF files, by the `gguf` package's writer and name tables.

What llama.cpp's converter does to tensors is repeated here from its description, not from our
rules, so that a mistake in those cannot hide in the file as well.
"""

import re
from dataclasses import dataclass, field

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Kind
from gguf.quants import dequantize, quantize

EXPERT = re.compile(r"(model\.layers\.\d+\.mlp\.experts)\.(\d+)\.(\w+)\.weight")
BLOCK = 32  # numbers in a block of the kinds that we write


@dataclass(frozen=True)
class Target:
    """What a family's files are like, besides the keys that all have.

    Args:
        architecture: Of llama.cpp.
        keys: Calls of the writer: name of its method -> value.
        raw: Further tensors by their final names.
    """

    architecture: str
    keys: dict = field(default_factory=dict)
    raw: dict = field(default_factory=dict)


def write_gguf(path, target, config, weights, kind=Kind.F32, leave_out=()):
    """Write `weights` (Hugging Face names) of a parsed config.json as a GGUF file."""
    writer = gguf.GGUFWriter(path, target.architecture)
    for method, value in {**_common_keys(config), **target.keys}.items():
        if method not in leave_out:
            getattr(writer, method)(value)
    tensors = rename(target.architecture, config, weights) | target.raw
    for name, values in tensors.items():
        values = np.ascontiguousarray(values, dtype=np.float32)
        if is_quantised(values, kind):
            writer.add_tensor(name, quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def is_quantised(values, kind):
    return kind != Kind.F32 and values.ndim > 1 and values.shape[-1] % BLOCK == 0


def rounded(values, kind):
    """What is left of a tensor after it was quantised."""
    return dequantize(quantize(values, kind), kind) if is_quantised(values, kind) else values


def rename(architecture, config, weights):
    """Names from the package's own tables, and the converter's changes of layout."""
    number = {name: arch for arch, name in gguf.MODEL_ARCH_NAMES.items()}[architecture]
    names = gguf.get_tensor_name_map(number, config["num_hidden_layers"])
    found = {}
    for name, values in stack_experts(weights).items():
        theirs = names.get_name(name, try_suffixes=(".weight", ".bias"))
        assert theirs is not None, f"the gguf package has no name for {name}"
        if architecture == "llama" and re.search(r"attn_[qk]\.", theirs):
            heads = "num_attention_heads" if "attn_q" in theirs else "num_key_value_heads"
            values = to_neighbouring_pairs(values, config[heads])
        if architecture.startswith("gemma") and name.endswith("norm.weight"):
            values = values + 1
        found[theirs] = values
    return found


def stack_experts(weights):
    stacked, plain = {}, {}
    for name, values in weights.items():
        match = EXPERT.fullmatch(name)
        if match is None:
            plain[name] = values
            continue
        experts = stacked.setdefault(f"{match[1]}.{match[3]}.weight", {})
        experts[int(match[2])] = values
    return plain | {n: np.stack([es[e] for e in sorted(es)]) for n, es in stacked.items()}


def to_neighbouring_pairs(values, n_heads):
    """Row i and row i + half of each head become neighbours, as in Meta's own files."""
    turned = np.empty_like(values)
    d_head = values.shape[0] // n_heads
    for head in range(n_heads):
        for i in range(d_head // 2):
            turned[head * d_head + 2 * i] = values[head * d_head + i]
            turned[head * d_head + 2 * i + 1] = values[head * d_head + d_head // 2 + i]
    return turned


def llama3_divisors(theta, d_head, factor, low=1.0, high=4.0, original=8192):
    """What a converter writes as rope_freqs.weight: by how much each frequency is divided."""
    divisors = []
    for i in range(d_head // 2):
        wavelength = 2 * np.pi * theta ** (2 * i / d_head)
        kept = np.clip((original / wavelength - low) / (high - low), 0, 1)
        share = (1 - kept) / factor + kept
        divisors.append(1 / share if share else np.inf)
    return np.array(divisors, dtype=np.float32)


def _common_keys(config):
    ropes = config["rope_parameters"]
    full = ropes.get("full_attention", ropes)
    return {
        "add_context_length": config["max_position_embeddings"],
        "add_embedding_length": config["hidden_size"],
        "add_block_count": config["num_hidden_layers"],
        "add_feed_forward_length": config["intermediate_size"],
        "add_head_count": config["num_attention_heads"],
        "add_head_count_kv": config["num_key_value_heads"],
        "add_key_length": config["head_dim"],
        "add_value_length": config["head_dim"],
        "add_rope_dimension_count": config["head_dim"],
        "add_layer_norm_rms_eps": config["rms_norm_eps"],
        "add_rope_freq_base": full["rope_theta"],
    }
