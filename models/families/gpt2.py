"""GPT-2: LayerNorm, learned positions, GELU, biases everywhere, tied head.

Radford et al. 2019, "Language Models are Unsupervised Multitask Learners". Its checkpoints keep
q, k and v in one matrix, stored transposed (in x out, "Conv1D"); both are undone on loading.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.config import FULL, AttentionConfig, DropoutConfig, FfnConfig, ModelConfig, NormConfig
from models.family import Family, ForeignFormat, GgufFormat, Settings, activation_named
from models.gguf_file import GgufFile
from models.gguf_layout import (
    OUTPUT,
    TOKEN_EMBEDDING,
    Key,
    gguf_settings,
    read_n_heads,
    read_n_layers,
    read_vocab_size,
)
from models.weight_rules import SPLIT_QKV, TRANSPOSE, Layout, RuleTable, WeightRule


def _attention(n_heads: int, d_model: int, scale: float | None = None) -> AttentionConfig:
    return AttentionConfig(
        n_heads=n_heads,
        n_kv_heads=n_heads,
        d_head=d_model // n_heads,
        qkv_bias=True,
        out_bias=True,
        scale=scale,
    )


def _feed_forward(d_model: int) -> FfnConfig:
    return FfnConfig(d_ff=4 * d_model, activation="gelu_tanh", gated=False, bias=True)


# huggingface.co/openai-community/gpt2/blob/main/config.json
GPT2 = ModelConfig(
    vocab_size=50_257,
    context_length=1_024,
    d_model=768,
    layer_types=(FULL,) * 12,
    attention=_attention(12, 768),
    ffn=_feed_forward(768),
    norm=NormConfig(kind="layernorm", eps=1e-5),
    positions="learned",
    tied_head=True,
    dropout=DropoutConfig(embedding=0.1, attention=0.1, residual=0.1),
)


def _wider(d_model: int, n_layers: int, n_heads: int) -> ModelConfig:
    return replace(
        GPT2,
        d_model=d_model,
        layer_types=(FULL,) * n_layers,
        attention=_attention(n_heads, d_model),
        ffn=_feed_forward(d_model),
    )


PRESETS: Mapping[str, ModelConfig] = {
    "gpt2": GPT2,
    "gpt2-medium": _wider(1_024, 24, 16),  # huggingface.co/openai-community/gpt2-medium
    "gpt2-large": _wider(1_280, 36, 20),  # huggingface.co/openai-community/gpt2-large
    "gpt2-xl": _wider(1_600, 48, 25),  # huggingface.co/openai-community/gpt2-xl
}


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = Settings(values)
    settings.refuse_unless(scale_attn_by_inverse_layer_idx=False, add_cross_attention=False)
    d_model = settings.whole("n_embd")
    scaled = settings.flag("scale_attn_weights", True)
    return ModelConfig(
        vocab_size=settings.whole("vocab_size"),
        context_length=settings.whole("n_positions", values.get("n_ctx")),
        d_model=d_model,
        layer_types=(FULL,) * settings.layers("n_layer"),
        attention=_attention(settings.whole("n_head"), d_model, scale=None if scaled else 1.0),
        ffn=FfnConfig(
            d_ff=settings.whole("n_inner", 4 * d_model),
            activation=activation_named(values.get("activation_function", "gelu_new")),
            gated=False,
            bias=True,
        ),
        norm=NormConfig(kind="layernorm", eps=settings.number("layer_norm_epsilon", 1e-5)),
        positions="learned",
        tied_head=settings.flag("tie_word_embeddings", True),
        dropout=DropoutConfig(
            embedding=settings.number("embd_pdrop", 0.1),
            attention=settings.number("attn_pdrop", 0.1),
            residual=settings.number("resid_pdrop", 0.1),
        ),
    )


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json; None where heads side by side are not as wide as the stream."""
    heads = config.attention
    if config.d_model != heads.n_heads * heads.d_head:
        return None
    activation = config.ffn.activation
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": config.vocab_size,
        "n_positions": config.context_length,
        "n_embd": config.d_model,
        "n_layer": config.n_layers,
        "n_head": heads.n_heads,
        "n_inner": config.ffn.d_ff,
        "activation_function": "gelu_new" if activation == "gelu_tanh" else activation,
        "layer_norm_epsilon": config.norm.eps,
        "scale_attn_weights": heads.score_scale == heads.d_head**-0.5,
        "tie_word_embeddings": config.tied_head,
        "embd_pdrop": config.dropout.embedding,
        "attn_pdrop": config.dropout.attention,
        "resid_pdrop": config.dropout.residual,
    }


def _block_rules(
    theirs: Mapping[str, str], split: tuple[Layout, ...], matrix: tuple[Layout, ...]
) -> list[WeightRule]:
    """Rows of one block, weights and biases; `theirs` maps our part to their name."""
    rows = []
    for kind in ("weight", "bias"):
        # biases have one axis, for which a transpose means nothing
        fused, turned = (split, matrix) if kind == "weight" else ((SPLIT_QKV,), ())
        qkv = tuple(f"blocks.{{i}}.attn.{p}_proj.{kind}" for p in "qkv")
        rows.append(WeightRule(f"{theirs['qkv']}.{kind}", qkv, fused))
        for part in ("attn.o_proj", "ffn.up_proj", "ffn.down_proj"):
            rows.append(WeightRule(f"{theirs[part]}.{kind}", f"blocks.{{i}}.{part}.{kind}", turned))
        for part in ("attn_norm", "ffn_norm"):
            rows.append(WeightRule(f"{theirs[part]}.{kind}", f"blocks.{{i}}.{part}.{kind}"))
    return rows


def rules(config: ModelConfig) -> RuleTable:
    """Names of the Hugging Face layout; OpenAI's own upload leaves "transformer." off."""
    block = "transformer.h.{i}"
    names = {
        "qkv": f"{block}.attn.c_attn",
        "attn.o_proj": f"{block}.attn.c_proj",
        "ffn.up_proj": f"{block}.mlp.c_fc",
        "ffn.down_proj": f"{block}.mlp.c_proj",
        "attn_norm": f"{block}.ln_1",
        "ffn_norm": f"{block}.ln_2",
    }
    rows = [
        WeightRule("transformer.wte.weight", "embed.weight"),
        WeightRule("transformer.wpe.weight", "position_embed.weight"),
        WeightRule("transformer.ln_f.weight", "final_norm.weight"),
        WeightRule("transformer.ln_f.bias", "final_norm.bias"),
        WeightRule("lm_head.weight", () if config.tied_head else "head.weight"),
        WeightRule(f"{block}.attn.bias", ()),  # the causal mask, kept as a buffer in old files
        WeightRule(f"{block}.attn.masked_bias", ()),
        *_block_rules(names, (TRANSPOSE, SPLIT_QKV), (TRANSPOSE,)),
    ]
    return RuleTable(tuple(rows), optional_prefix="transformer.")


def config_from_gguf(gguf: GgufFile) -> ModelConfig:
    """Read the metadata of a GGUF file of architecture "gpt2".

    Raises:
        ConfigError: A key is missing.
    """
    settings = gguf_settings(gguf)
    d_model = settings.whole(Key.EMBEDDING_LENGTH)
    return replace(
        _wider(d_model, read_n_layers(gguf), read_n_heads(settings)),
        vocab_size=read_vocab_size(gguf),
        context_length=settings.whole(Key.CONTEXT_LENGTH),
        ffn=replace(_feed_forward(d_model), d_ff=settings.whole(Key.FEED_FORWARD_LENGTH)),
        norm=NormConfig(kind="layernorm", eps=settings.number(Key.LAYERNORM_EPS)),
        tied_head=OUTPUT not in gguf.tensors,
    )


def gguf_rules(config: ModelConfig) -> RuleTable:
    """Names of GGUF files, whose matrices are (out, in) like ours."""
    names = {
        "qkv": "blk.{i}.attn_qkv",
        "attn.o_proj": "blk.{i}.attn_output",
        "ffn.up_proj": "blk.{i}.ffn_up",
        "ffn.down_proj": "blk.{i}.ffn_down",
        "attn_norm": "blk.{i}.attn_norm",
        "ffn_norm": "blk.{i}.ffn_norm",
    }
    rows = [
        WeightRule(TOKEN_EMBEDDING, "embed.weight"),
        WeightRule("position_embd.weight", "position_embed.weight"),
        WeightRule("output_norm.weight", "final_norm.weight"),
        WeightRule("output_norm.bias", "final_norm.bias"),
        WeightRule(OUTPUT, () if config.tied_head else "head.weight"),
        *_block_rules(names, (SPLIT_QKV,), ()),
    ]
    return RuleTable(tuple(rows))


TENSORFLOW = ForeignFormat(
    pattern="model.ckpt.*",
    name="OpenAI's TensorFlow checkpoint",
    instead="openai-community/gpt2, gpt2-medium, gpt2-large or gpt2-xl on the Hugging Face Hub",
)

FAMILY = Family(
    name="GPT-2",
    source="Radford et al. 2019",
    model_types=("gpt2",),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    rules=rules,
    gguf=GgufFormat(("gpt2",), config_from_gguf, gguf_rules),
    foreign=(TENSORFLOW,),
)
