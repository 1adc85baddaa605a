"""Architectures to train: a style (which parts) and a size (how many, how wide), both by name.

    style     norm        position   heads                feed-forward   speciality
    gpt       LayerNorm   learned    all with own k, v    GELU           biases (GPT-2, 2019)
    llama     RMSNorm     RoPE       grouped              SwiGLU         Touvron et al. 2023
    qwen3     RMSNorm     RoPE       grouped              SwiGLU         queries, keys normalised
    gemma3    RMSNorm     RoPE x 2   grouped              GeGLU          sandwich norms, windows 5:1
    olmo3     RMSNorm     RoPE       all with own k, v    SwiGLU         norms after, windows 3:1
    moe       RMSNorm     RoPE       grouped              4 experts      2 at work (Qwen3-MoE)
    mla       RMSNorm     RoPE       keys from a latent   SwiGLU         DeepSeek-V2 2024
    window    RMSNorm     RoPE       grouped              SwiGLU         windows only (Mistral 2023)

A style is the published family made small. What a run breaks on purpose ("no residual") is a value
of the same configuration. No torch here: the page counts parameters while someone turns the dial.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, get_args

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    DropoutConfig,
    FfnConfig,
    Initialisation,
    LayerType,
    ModelConfig,
    MoeConfig,
    NormConfig,
)
from models.errors import ConfigError
from models.mla_config import MlaConfig
from models.rope_config import RopeConfig

Style = Literal["gpt", "llama", "qwen3", "gemma3", "olmo3", "moe", "mla", "window"]
SizeName = Literal["tiny", "small", "medium", "large", "124m"]
Recipe = Literal["recommended", "classic"]
Breakage = Literal[
    "none",
    "learning_rate",
    "no_warmup",
    "no_norm",
    "no_residual",
    "no_mask",
    "unscaled_init",
]
# The cut of a window style: a quarter of the context, so that windows matter in short texts too.
WINDOWS_PER_CONTEXT = 4
WIDTH_MULTIPLE = 32  # matrix products like round widths


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large a model of any style is; heads are d_model / n_heads wide.

    Args:
        n_layers: Blocks.
        n_heads: Query heads.
        n_kv_heads: Key/value heads of the styles that share them.
        d_model: Width of the stream.
        initialisation: Law of its first weights: by its width, or GPT-2's, which is for 768.
    """

    n_layers: int
    n_heads: int
    n_kv_heads: int
    d_model: int
    initialisation: Initialisation = "fan_in"


SIZES: Mapping[SizeName, Size] = {
    "tiny": Size(n_layers=4, n_heads=4, n_kv_heads=2, d_model=128),
    "small": Size(n_layers=6, n_heads=6, n_kv_heads=2, d_model=192),
    "medium": Size(n_layers=6, n_heads=6, n_kv_heads=2, d_model=384),
    "large": Size(n_layers=8, n_heads=8, n_kv_heads=4, d_model=512),
    "124m": Size(  # GPT-2 small
        n_layers=12, n_heads=12, n_kv_heads=4, d_model=768, initialisation="normal_scaled"
    ),
}


def build_model_config(
    style: str,
    size: str,
    *,
    vocab_size: int,
    context: int,
    dropout: float = 0.0,
    recipe: str = "recommended",
    breakage: str = "none",
) -> ModelConfig:
    """The configuration of a model to train.

    Args:
        style: One of `Style`.
        size: One of `SizeName`.
        vocab_size: Tokens of the tokenizer.
        context: Longest text that it reads, in tokens.
        dropout: All three rates.
        recipe: `classic` is the GPT of "Build a Large Language Model (From Scratch)" (Raschka
            2024, section 4.1): no biases on queries, keys and values, a head of its own, PyTorch's
            usual initial weights.
        breakage: What to leave out, to see what it is for.

    Raises:
        ConfigError: An unknown name, or parts that do not go together.
    """
    _require_known("style", style, get_args(Style))
    _require_known("size", size, get_args(SizeName))
    _require_known("recipe", recipe, get_args(Recipe))
    _require_known("breakage", breakage, get_args(Breakage))
    if recipe == "classic" and style != "gpt":
        raise ConfigError(
            f"the classic recipe is that of GPT, style={style!r} has other parts; choose the style "
            "'gpt' or the recommended recipe",
            code="run-classic-style",
            style=style,
        )
    if not isinstance(context, int) or context < 1:
        raise ConfigError(
            f"context={context!r} must be a whole number of at least 1; 128 is usual for a small "
            "model",
            code="run-setting",
            problem=f"context={context!r} must be a whole number of at least 1",
        )
    base = _STYLES[style](SIZES[size], vocab_size, context)  # type: ignore[index]
    rates = DropoutConfig(embedding=dropout, attention=dropout, residual=dropout)
    model = replace(
        base,
        dropout=rates,
        initialisation=SIZES[size].initialisation,  # type: ignore[index]
    )
    if recipe == "classic":
        model = _classic(model)
    return _BREAKAGES[breakage](model)  # type: ignore[index]


def _require_known(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        choices = ", ".join(known)
        raise ConfigError(
            f"{name}={value!r} is unknown; choose {choices}",
            code="run-choice",
            name=name,
            found=value,
            known=choices,
        )


# ---------------------------------------------------------------------------------------- styles
def _gated_width(d_model: int) -> int:
    """8/3 of the width: three such matrices weigh as much as two of 4 (Shazeer 2020, section 2)."""
    return round(8 * d_model / 3 / WIDTH_MULTIPLE) * WIDTH_MULTIPLE


def _gpt(size: Size, vocab_size: int, context: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=context,
        d_model=size.d_model,
        layer_types=(FULL,) * size.n_layers,
        attention=AttentionConfig(
            n_heads=size.n_heads,
            n_kv_heads=size.n_heads,
            d_head=size.d_model // size.n_heads,
            qkv_bias=True,
            out_bias=True,
        ),
        ffn=FfnConfig(d_ff=4 * size.d_model, activation="gelu_tanh", gated=False, bias=True),
        norm=NormConfig(kind="layernorm", eps=1e-5),
        positions="learned",
        tied_head=True,
    )


def _llama(size: Size, vocab_size: int, context: int) -> ModelConfig:
    return ModelConfig(
        vocab_size=vocab_size,
        context_length=context,
        d_model=size.d_model,
        layer_types=(FULL,) * size.n_layers,
        attention=AttentionConfig(
            n_heads=size.n_heads,
            n_kv_heads=size.n_kv_heads,
            d_head=size.d_model // size.n_heads,
        ),
        ffn=FfnConfig(d_ff=_gated_width(size.d_model), activation="silu", gated=True),
        norm=NormConfig(kind="rmsnorm", eps=1e-5),
        positions="rope",
        rope={FULL: RopeConfig(theta=10_000.0)},
        tied_head=True,
    )


def _qwen3(size: Size, vocab_size: int, context: int) -> ModelConfig:
    llama = _llama(size, vocab_size, context)
    return replace(
        llama,
        attention=replace(llama.attention, qk_norm="head"),
        norm=NormConfig(kind="rmsnorm", eps=1e-6),
        rope={FULL: RopeConfig(theta=1_000_000.0)},
    )


def _layers(n_layers: int, period: int) -> tuple[LayerType, ...]:
    """Window layers, every `period`-th one full, and the last one in any case."""
    return tuple(
        FULL if (i + 1) % period == 0 or i + 1 == n_layers else WINDOW for i in range(n_layers)
    )


def _window_of(context: int) -> int:
    return max(1, context // WINDOWS_PER_CONTEXT)


def _gemma3(size: Size, vocab_size: int, context: int) -> ModelConfig:
    llama = _llama(size, vocab_size, context)
    return replace(
        llama,
        layer_types=_layers(size.n_layers, 6),
        attention=replace(llama.attention, qk_norm="head", window=_window_of(context)),
        ffn=replace(llama.ffn, activation="gelu_tanh"),
        norm=NormConfig(kind="rmsnorm", eps=1e-6, unit_offset=True),
        norm_position="sandwich",
        rope={WINDOW: RopeConfig(theta=10_000.0), FULL: RopeConfig(theta=1_000_000.0)},
        embedding_scale=size.d_model**0.5,
    )


def _olmo3(size: Size, vocab_size: int, context: int) -> ModelConfig:
    llama = _llama(size, vocab_size, context)
    return replace(
        llama,
        layer_types=_layers(size.n_layers, 4),
        attention=replace(
            llama.attention, n_kv_heads=size.n_heads, qk_norm="full", window=_window_of(context)
        ),
        norm=NormConfig(kind="rmsnorm", eps=1e-6),
        norm_position="post_sublayer",
        rope={WINDOW: RopeConfig(theta=500_000.0), FULL: RopeConfig(theta=500_000.0)},
        tied_head=False,
    )


def _moe(size: Size, vocab_size: int, context: int) -> ModelConfig:
    qwen3 = _qwen3(size, vocab_size, context)
    # two experts at work compute as much as the one feed-forward of the other styles
    experts = MoeConfig(n_experts=4, n_active=2, d_ff=qwen3.ffn.d_ff // 2, normalise_weights=True)
    return replace(qwen3, moe=experts)


def _mla(size: Size, vocab_size: int, context: int) -> ModelConfig:
    llama = _llama(size, vocab_size, context)
    d_head = llama.attention.d_head
    return replace(
        llama,
        attention=replace(llama.attention, n_kv_heads=size.n_heads),
        mla=MlaConfig(
            kv_lora_rank=size.d_model // 4, qk_rope_head_dim=d_head // 2, latent_norm=True
        ),
    )


def _window(size: Size, vocab_size: int, context: int) -> ModelConfig:
    llama = _llama(size, vocab_size, context)
    return replace(
        llama,
        layer_types=(WINDOW,) * size.n_layers,
        attention=replace(llama.attention, window=_window_of(context)),
        rope={WINDOW: RopeConfig(theta=10_000.0)},
    )


_STYLES: Mapping[Style, Callable[[Size, int, int], ModelConfig]] = {
    "gpt": _gpt,
    "llama": _llama,
    "qwen3": _qwen3,
    "gemma3": _gemma3,
    "olmo3": _olmo3,
    "moe": _moe,
    "mla": _mla,
    "window": _window,
}


def _classic(model: ModelConfig) -> ModelConfig:
    return replace(
        model,
        attention=replace(model.attention, qkv_bias=False),
        tied_head=False,
        initialisation="torch_default",
    )


# ------------------------------------------------------------------------------------- breakages
def _unchanged(model: ModelConfig) -> ModelConfig:
    """The learning rate and its warm-up are no part of the model."""
    return model


def _without_norm(model: ModelConfig) -> ModelConfig:
    return replace(model, norm=NormConfig(kind="none"))


def _without_residual(model: ModelConfig) -> ModelConfig:
    return replace(model, residual=False)


def _without_mask(model: ModelConfig) -> ModelConfig:
    if WINDOW in model.layer_types:
        raise ConfigError(
            "this style has windows, which are masks themselves; choose 'gpt', 'llama', 'qwen3', "
            "'moe' or 'mla' to train without a mask",
            code="run-mask-window",
        )
    return replace(model, attention=replace(model.attention, causal=False))


def _with_unscaled_weights(model: ModelConfig) -> ModelConfig:
    return replace(model, initialisation="unit_normal")


_BREAKAGES: Mapping[Breakage, Callable[[ModelConfig], ModelConfig]] = {
    "none": _unchanged,
    "learning_rate": _unchanged,
    "no_warmup": _unchanged,
    "no_norm": _without_norm,
    "no_residual": _without_residual,
    "no_mask": _without_mask,
    "unscaled_init": _with_unscaled_weights,
}
