"""What GGUF files of Llama's descendants have in common.

llama.cpp writes every family under one set of names: metadata keys behind the name of the
architecture ("qwen3.attention.head_count") and tensors such as "blk.0.attn_q.weight". Here stands
each name once, and the common part of reading them; a family's file says what differs.

What its converter changes on the way from the Hugging Face layout, undone here on loading:

    q_proj, k_proj of architecture "llama"   rows in neighbouring pairs (models/rope.py)
    norm weights of Gemma                    stored + 1, so that a plain RMSNorm computes the same
    experts                                  stacked, one tensor for all of a layer
    Llama 3.1's rescaling                    not its parameters but a divisor for each pair

Source: *GGUF specification* (ggml, docs/gguf.md); a test holds every name to the constants of the
`gguf` package.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    FfnConfig,
    LayerType,
    ModelConfig,
    NormConfig,
    NormPosition,
)
from models.errors import ConfigError
from models.family import Settings
from models.gguf_file import GgufFile
from models.hf_rope import scaling_error
from models.rope_config import (
    LinearScaling,
    Llama3Scaling,
    RopeConfig,
    RopeScaling,
    YarnScaling,
)
from models.weight_rules import PAIRS_TO_HALVES, SPLIT_EXPERTS, Layout, RuleTable, WeightRule

if TYPE_CHECKING:
    from torch import Tensor

TOKEN_EMBEDDING = "token_embd.weight"
OUTPUT = "output.weight"
ROPE_DIVISORS = "rope_freqs.weight"
ROUTER = "ffn_gate_inp"
# Our part of a block -> its name; most families have most of them.
BLOCK_NAMES: Mapping[str, str] = {
    "attn.q_proj": "attn_q",
    "attn.k_proj": "attn_k",
    "attn.v_proj": "attn_v",
    "attn.o_proj": "attn_output",
    "ffn.gate_proj": "ffn_gate",
    "ffn.up_proj": "ffn_up",
    "ffn.down_proj": "ffn_down",
}
QK_NORM_NAMES: Mapping[str, str] = {"attn.q_norm": "attn_q_norm", "attn.k_norm": "attn_k_norm"}
EXPERT_NAMES: Mapping[str, str] = {
    "gate_proj": "ffn_gate_exps",
    "up_proj": "ffn_up_exps",
    "down_proj": "ffn_down_exps",
}
# Our norms of a block and their names, which follow from where the norms stand.
NORM_NAMES: Mapping[NormPosition, Mapping[str, str]] = {
    "pre": {"attn_norm": "attn_norm", "ffn_norm": "ffn_norm"},
    "post_sublayer": {"attn_norm": "post_attention_norm", "ffn_norm": "post_ffw_norm"},
    "sandwich": {
        "attn_norm": "attn_norm",
        "attn_post_norm": "post_attention_norm",
        "ffn_norm": "ffn_norm",
        "ffn_post_norm": "post_ffw_norm",
    },
}
# What Llama 3.1 and 3.2 share; files hold only what becomes of these (arXiv 2407.21783).
LLAMA3_LOW, LLAMA3_HIGH, LLAMA3_CONTEXT = 1.0, 4.0, 8_192
SOFTMAX_GATING = 1  # of llama.cpp's enumeration of ways to weigh experts


class Key(StrEnum):
    """Metadata keys, without the name of the architecture that stands before them."""

    CONTEXT_LENGTH = "context_length"
    EMBEDDING_LENGTH = "embedding_length"
    BLOCK_COUNT = "block_count"
    FEED_FORWARD_LENGTH = "feed_forward_length"
    EXPERT_COUNT = "expert_count"
    EXPERT_USED_COUNT = "expert_used_count"
    EXPERT_SHARED_COUNT = "expert_shared_count"
    EXPERT_FEED_FORWARD_LENGTH = "expert_feed_forward_length"
    EXPERT_GATING_FUNC = "expert_gating_func"
    EXPERT_WEIGHTS_NORM = "expert_weights_norm"
    EXPERT_WEIGHTS_SCALE = "expert_weights_scale"
    SCORE_CAP = "attn_logit_softcapping"
    LOGIT_CAP = "final_logit_softcapping"
    HEAD_COUNT = "attention.head_count"
    HEAD_COUNT_KV = "attention.head_count_kv"
    KEY_LENGTH = "attention.key_length"
    VALUE_LENGTH = "attention.value_length"
    LAYERNORM_EPS = "attention.layer_norm_epsilon"
    RMSNORM_EPS = "attention.layer_norm_rms_epsilon"
    SCORE_SCALE = "attention.scale"
    WINDOW = "attention.sliding_window"
    WINDOW_PATTERN = "attention.sliding_window_pattern"
    ROPE_WIDTH = "rope.dimension_count"
    ROPE_BASE = "rope.freq_base"
    ROPE_BASE_WINDOW = "rope.freq_base_swa"
    SCALING_TYPE = "rope.scaling.type"
    SCALING_FACTOR = "rope.scaling.factor"
    SCALING_CONTEXT = "rope.scaling.original_context_length"
    SCALING_ATTENTION = "rope.scaling.attn_factor"
    YARN_ATTENTION = "rope.scaling.yarn_attn_factor"
    YARN_EXTRAPOLATION = "rope.scaling.yarn_ext_factor"
    YARN_LOG_MULTIPLIER = "rope.scaling.yarn_log_multiplier"
    YARN_BETA_FAST = "rope.scaling.yarn_beta_fast"
    YARN_BETA_SLOW = "rope.scaling.yarn_beta_slow"


def _less_one(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    return [tensor - 1 for tensor in tensors]


def _plus_one(tensors: list[Tensor], _: ModelConfig) -> list[Tensor]:
    return [tensor + 1 for tensor in tensors]


LESS_ONE = Layout("norm weight + 1", _less_one, _plus_one)


# ------------------------------------------------------------------------------------ settings
def gguf_settings(gguf: GgufFile) -> Settings:
    """The metadata that stands behind the name of the file's architecture."""
    return Settings(gguf.metadata, "the GGUF file", prefix=f"{gguf.architecture}.")


def read_vocab_size(gguf: GgufFile) -> int:
    """Rows of the embedding; the metadata does not always say.

    Raises:
        ConfigError: There is no embedding.
    """
    embedding = gguf.tensors.get(TOKEN_EMBEDDING)
    if embedding is None or not embedding.shape:
        raise ConfigError(
            f"the GGUF file has no {TOKEN_EMBEDDING!r}; take the file that belongs to the weights",
            code="config-key-missing",
            file="the GGUF file",
            key=TOKEN_EMBEDDING,
        )
    return embedding.shape[0]


def read_n_layers(gguf: GgufFile) -> int:
    """Number of blocks.

    Raises:
        ConfigError: The key is missing, or more blocks than tensors: not a number to build from.
    """
    settings = gguf_settings(gguf)
    n_layers = settings.layers(Key.BLOCK_COUNT)
    if not 0 < n_layers <= len(gguf.tensors):
        kind = f"a number of blocks in a file of {len(gguf.tensors)} tensors"
        raise settings.wrong(Key.BLOCK_COUNT, n_layers, kind)
    return n_layers


def read_n_heads(settings: Settings) -> int:
    """Query heads; a width is divided by them, so that none is refused here.

    Raises:
        ConfigError: The key is missing, or no number of heads.
    """
    n_heads = settings.whole(Key.HEAD_COUNT)
    if n_heads < 1:
        raise settings.wrong(Key.HEAD_COUNT, n_heads, "a number of heads")
    return n_heads


def read_llama_like(gguf: GgufFile) -> ModelConfig:
    """The configuration as if the file were Llama's; a family replaces what differs.

    Biases and a head apart from the embedding are there when their tensors are.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = gguf_settings(gguf)
    heads = _read_heads(gguf, settings)
    return ModelConfig(
        vocab_size=read_vocab_size(gguf),
        context_length=settings.whole(Key.CONTEXT_LENGTH),
        d_model=settings.whole(Key.EMBEDDING_LENGTH),
        layer_types=(FULL,) * read_n_layers(gguf),
        attention=heads,
        ffn=FfnConfig(
            d_ff=settings.whole(Key.FEED_FORWARD_LENGTH),
            activation="silu",
            gated=True,
            bias="blk.0.ffn_up.bias" in gguf.tensors,
        ),
        norm=NormConfig(kind="rmsnorm", eps=settings.number(Key.RMSNORM_EPS)),
        positions="rope",
        rope={FULL: _read_rope(gguf, settings, heads.d_head)},
        tied_head=OUTPUT not in gguf.tensors,
    )


def _read_heads(gguf: GgufFile, settings: Settings) -> AttentionConfig:
    n_heads = read_n_heads(settings)
    d_head = settings.whole(Key.KEY_LENGTH, settings.whole(Key.EMBEDDING_LENGTH) // n_heads)
    settings.refuse_unless(**{Key.VALUE_LENGTH.value: d_head, Key.ROPE_WIDTH.value: d_head})
    stated = settings.raw(Key.SCORE_SCALE)
    return AttentionConfig(
        n_heads=n_heads,
        n_kv_heads=settings.whole(Key.HEAD_COUNT_KV, n_heads),
        d_head=d_head,
        qkv_bias="blk.0.attn_q.bias" in gguf.tensors,
        out_bias="blk.0.attn_output.bias" in gguf.tensors,
        scale=None if stated is None else settings.number(Key.SCORE_SCALE),
    )


def read_gguf_layer_types(
    settings: Settings, n_layers: int, usual_period: int
) -> tuple[LayerType, ...]:
    """Which layers have a window: stated for each, or all but every n-th.

    Raises:
        ConfigError: A pattern that is neither, or not one entry for each layer.
    """
    pattern = settings.raw(Key.WINDOW_PATTERN)
    if pattern is None:
        pattern = usual_period
    if isinstance(pattern, int) and not isinstance(pattern, bool) and pattern >= 0:
        # as llama.cpp has it: 0 is a window everywhere, 1 nowhere
        pattern = [not pattern or (i + 1) % pattern != 0 for i in range(n_layers)]
    if not isinstance(pattern, list) or len(pattern) != n_layers:
        raise settings.wrong(Key.WINDOW_PATTERN, pattern, f"a period or {n_layers} flags")
    return tuple(WINDOW if windowed else FULL for windowed in pattern)


# -------------------------------------------------------------------------------------- rotary
def _read_rope(gguf: GgufFile, settings: Settings, d_head: int) -> RopeConfig:
    plain = RopeConfig(theta=settings.number(Key.ROPE_BASE, 10_000.0))
    scaling = _read_scaling(settings)
    if ROPE_DIVISORS in gguf.tensors:
        if scaling is not None:
            raise scaling_error(settings.where, f"{ROPE_DIVISORS} and {scaling}")
        scaling = _read_llama3(gguf, settings, plain, d_head)
    return RopeConfig(theta=plain.theta, scaling=scaling)


def _read_scaling(settings: Settings) -> RopeScaling | None:
    """A factor without a type is linear, as llama.cpp reads it."""
    kind = settings.raw(Key.SCALING_TYPE) or "linear"
    factor = settings.number(Key.SCALING_FACTOR, 1.0) or 1.0  # 0 stands for "none" in old files
    if kind == "none" or (kind == "linear" and factor == 1):
        return None
    if kind == "linear":
        return LinearScaling(factor=factor)
    if kind == "yarn":
        return _read_yarn(settings, factor)
    raise scaling_error(settings.where, str(kind))


def _read_yarn(settings: Settings, factor: float) -> YarnScaling:
    yarn = YarnScaling(
        factor=factor,
        original_context=settings.whole(Key.SCALING_CONTEXT, settings.whole(Key.CONTEXT_LENGTH)),
        beta_fast=settings.number(Key.YARN_BETA_FAST, 32.0),
        beta_slow=settings.number(Key.YARN_BETA_SLOW, 1.0),
    )
    settings.refuse_unless(
        **{
            Key.YARN_ATTENTION.value: 1.0,
            Key.YARN_EXTRAPOLATION.value: 1.0,
            Key.YARN_LOG_MULTIPLIER.value: 0.0,  # DeepSeek's own attention factor
        }
    )
    # Olmo 3's files state the whole factor here, others what it is multiplied by. Where the two
    # readings agree on YaRN's own, equation 22, nothing is left to guess.
    stated = settings.number(Key.SCALING_ATTENTION, 1.0)
    if abs(stated - yarn.query_key_factor) > 1e-4:
        settings.refuse_unless(**{Key.SCALING_ATTENTION.value: 1.0})
    return yarn


def _read_llama3(
    gguf: GgufFile, settings: Settings, plain: RopeConfig, d_head: int
) -> Llama3Scaling:
    """Llama 3's parameters from what each frequency is divided by; the largest is the factor."""
    import torch  # late: families are listed without loading torch

    from models.rope import inverse_frequencies

    divisors = torch.from_numpy(gguf.read(ROPE_DIVISORS))
    scaling = Llama3Scaling(
        factor=max(1.0, float(divisors.max())),
        low_frequency_factor=LLAMA3_LOW,
        high_frequency_factor=LLAMA3_HIGH,
        original_context=settings.whole(Key.SCALING_CONTEXT, LLAMA3_CONTEXT),
    )
    scaled = RopeConfig(theta=plain.theta, scaling=scaling)
    expected = inverse_frequencies(plain, d_head) / inverse_frequencies(scaled, d_head)
    same = divisors.shape == expected.shape and torch.allclose(divisors, expected, rtol=1e-4)
    if not same or not divisors.isfinite().all():
        raise scaling_error(settings.where, ROPE_DIVISORS)
    return scaling


# --------------------------------------------------------------------------------------- rules
def gguf_rules(config: ModelConfig, *, neighbouring_pairs: bool = False) -> RuleTable:
    """Rules for llama.cpp's names, as far as the configuration has those parts.

    Args:
        config: What is to be filled.
        neighbouring_pairs: Rows of q and k lie in neighbouring pairs, as architecture "llama"
            has them; all others keep Hugging Face's split halves.
    """
    theirs, ours = "blk.{i}", "blocks.{i}"
    norm: tuple[Layout, ...] = (LESS_ONE,) if config.norm.unit_offset else ()
    rows = [
        WeightRule(TOKEN_EMBEDDING, "embed.weight"),
        WeightRule("output_norm.weight", "final_norm.weight", norm),
        WeightRule(OUTPUT, () if config.tied_head else "head.weight"),
    ]
    norms = {**NORM_NAMES[config.norm_position]}
    if config.attention.qk_norm != "none":
        norms |= QK_NORM_NAMES
    rows += [
        WeightRule(f"{theirs}.{name}.weight", f"{ours}.{part}.weight", norm)
        for part, name in norms.items()
    ]
    for kind in ("weight", "bias"):
        for part, name in BLOCK_NAMES.items():
            turned = neighbouring_pairs and part in {"attn.q_proj", "attn.k_proj"}
            layouts = (PAIRS_TO_HALVES,) if turned else ()
            rows.append(WeightRule(f"{theirs}.{name}.{kind}", f"{ours}.{part}.{kind}", layouts))
    if config.moe is not None:
        rows += _expert_rules(config.moe.n_experts, theirs, ours)
    if any(isinstance(rope.scaling, Llama3Scaling) for rope in config.rope.values()):
        rows.append(WeightRule(ROPE_DIVISORS, ()))  # read into the configuration
    return RuleTable(tuple(rows))


def _expert_rules(n_experts: int, theirs: str, ours: str) -> list[WeightRule]:
    rows = [WeightRule(f"{theirs}.{ROUTER}.weight", f"{ours}.ffn.router.weight")]
    for part, name in EXPERT_NAMES.items():
        targets = tuple(f"{ours}.ffn.experts.{e}.{part}.weight" for e in range(n_experts))
        rows.append(WeightRule(f"{theirs}.{name}.weight", targets, (SPLIT_EXPERTS,)))
    return rows
