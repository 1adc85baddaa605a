"""Multi-head attention and what came after it, side by side: shapes, parameters, bytes of cache.

    MHA      K = H                      Vaswani et al. 2017, arXiv 1706.03762
    GQA      1 < K < H                  Ainslie et al. 2023, arXiv 2305.13245
    MQA      K = 1                      Shazeer 2019, arXiv 1911.02150
    MLA      one latent a token         DeepSeek-V2 2024, arXiv 2405.04434, table 1
    window   GQA, the last w keys       Child et al. 2019, arXiv 1904.10509; Mistral 7B

Numbers come from `models/counting.py` and `models/costs.py`, by the configuration of one model in
which only this is changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from explorer.errors import ConfigError

if TYPE_CHECKING:
    from models.config import LayerType, ModelConfig

VARIANTS = ("mha", "gqa", "mqa", "mla", "window")
PUBLISHED = (
    "gpt2",
    "llama2-7b",
    "llama3-8b",
    "llama3.2-1b",
    "smollm2-135m",
    "qwen3-0.6b",
    "qwen3-30b-a3b",
    "gemma3-270m",
    "gemma3-1b",
    "olmo3-7b",
    "mistral-7b-v0.1",
)
CONTEXTS = tuple(2**n for n in range(7, 18))  # 128 to 131,072 tokens
CACHE_TYPES = ("bfloat16", "float32")


@dataclass(frozen=True, kw_only=True)
class VariantSettings:
    """Size of the layer.

    Args:
        d_model: Width of the stream.
        n_heads: Query heads.
        n_groups: Key/value heads of GQA and the window.
        d_head: Width of a head.
        latent: Width of MLA's latent.
        rotary: Width of MLA's rotated key, and of the rotated part of its queries.
        window: Keys that a query of the window sees, itself counted.
        n_layers: Layers of the model.
        context: Tokens of the text.
        dtype: Type of keys and values.
    """

    d_model: int = field(default=4_096, metadata={"least": 64, "most": 16_384, "step": 64})
    n_heads: int = field(default=32, metadata={"least": 1, "most": 128, "step": 1})
    n_groups: int = field(default=8, metadata={"least": 1, "most": 128, "step": 1})
    d_head: int = field(default=128, metadata={"least": 8, "most": 256, "step": 8})
    latent: int = field(default=512, metadata={"least": 16, "most": 2_048, "step": 16})
    rotary: int = field(default=64, metadata={"least": 8, "most": 128, "step": 8})
    window: int = field(default=4_096, metadata={"least": 16, "most": 131_072, "step": 16})
    n_layers: int = field(default=32, metadata={"least": 1, "most": 128, "step": 1})
    context: int = field(default=8_192, metadata={"least": 128, "most": 131_072, "step": 128})
    dtype: str = field(default="bfloat16", metadata={"choices": CACHE_TYPES, "dial": True})


@dataclass(frozen=True, kw_only=True)
class Variant:
    """One of them.

    Args:
        name: Of `VARIANTS`.
        shapes: Name of a matrix -> its (out, in).
        n_parameters: Of one layer's attention.
        kept_per_token: Numbers that the cache keeps of a token in one layer.
        cache_bytes: Of the whole text in all layers.
        bytes_by_context: The same for each of `CONTEXTS`.
    """

    name: str
    shapes: tuple[tuple[str, tuple[int, int]], ...]
    n_parameters: int
    kept_per_token: int
    cache_bytes: int
    bytes_by_context: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """A published model's heads and cache.

    Args:
        name: Of its preset.
        n_layers: Layers, and how many of them have a window.
        n_window_layers: Of those.
        n_heads: Query heads.
        n_kv_heads: Key/value heads.
        d_head: Width of a head.
        window: Keys that a query of a window layer sees, or None.
        attention_parameters: Of one layer.
        cache_bytes: Of the text asked for, in all layers.
        bytes_by_context: For each of `CONTEXTS`, whether or not it reads that far.
        context_length: How far it reads.
    """

    name: str
    n_layers: int
    n_window_layers: int
    n_heads: int
    n_kv_heads: int
    d_head: int
    window: int | None
    attention_parameters: int
    cache_bytes: int
    bytes_by_context: tuple[int, ...]
    context_length: int


def compute_variants(settings: VariantSettings) -> tuple[Variant, ...]:
    """All variants at one size.

    Raises:
        ConfigError: Groups that do not divide the heads, an unknown type, or a rotated part that is
            wider than a head.
    """
    _check(settings)
    return tuple(_compute(name, settings) for name in VARIANTS)


def compute_published(context: int, dtype: str = "bfloat16") -> tuple[PublishedModel, ...]:
    """Published models with the cache of a text of `context` tokens.

    Args:
        context: Tokens.
        dtype: Type of keys and values.
    """
    from models.registry import get_preset

    return tuple(_describe(name, get_preset(name), context, dtype) for name in PUBLISHED)


def settings_of(preset: str, base: VariantSettings) -> VariantSettings:
    """The size of a published model, with everything else as it was.

    Raises:
        ConfigError: There is no such preset.
    """
    from models.registry import get_preset

    config = get_preset(preset)
    heads = config.attention
    return replace(
        base,
        d_model=config.d_model,
        n_heads=heads.n_heads,
        n_groups=heads.n_kv_heads,
        d_head=heads.d_head,
        n_layers=config.n_layers,
        window=heads.window or base.window,
        rotary=min(base.rotary, heads.d_head),
    )


def build_variant_config(name: str, settings: VariantSettings) -> ModelConfig:
    """The configuration of a model that differs from the others in its attention alone."""
    from models.config import (
        AttentionConfig,
        FfnConfig,
        ModelConfig,
        NormConfig,
    )
    from models.mla_config import MlaConfig
    from models.rope_config import RopeConfig

    n_kv = {"gqa": settings.n_groups, "window": settings.n_groups, "mqa": 1}
    layer_type: LayerType = "window" if name == "window" else "full"
    mla = MlaConfig(
        kv_lora_rank=settings.latent,
        qk_rope_head_dim=settings.rotary,
        v_head_dim=settings.d_head,
        latent_norm=True,
    )
    # MLA's heads are as wide as the others, and the rotated part besides (arXiv 2405.04434, 2.1.3)
    d_head = settings.d_head + (settings.rotary if name == "mla" else 0)
    return ModelConfig(
        vocab_size=256,
        context_length=max(*CONTEXTS, settings.context),
        d_model=settings.d_model,
        layer_types=(layer_type,) * settings.n_layers,
        attention=AttentionConfig(
            n_heads=settings.n_heads,
            n_kv_heads=n_kv.get(name, settings.n_heads),
            d_head=d_head,
            window=settings.window if name == "window" else None,
        ),
        ffn=FfnConfig(d_ff=4 * settings.d_model, activation="silu", gated=True),
        norm=NormConfig(kind="rmsnorm"),
        positions="rope",
        rope={layer_type: RopeConfig(theta=10_000.0)},
        mla=mla if name == "mla" else None,
    )


def _compute(name: str, settings: VariantSettings) -> Variant:
    from models.costs import count_cache_bytes
    from models.counting import count_parameters

    config = build_variant_config(name, settings)

    def held(context: int) -> int:
        return count_cache_bytes(config, context, settings.dtype).total

    number = {"bfloat16": 2, "float32": 4}[settings.dtype]
    return Variant(
        name=name,
        shapes=_shapes(name, settings),
        n_parameters=count_parameters(config).parts["attention"] // settings.n_layers,
        kept_per_token=held(1) // settings.n_layers // number,
        cache_bytes=held(settings.context),
        bytes_by_context=tuple(held(context) for context in CONTEXTS),
    )


def _shapes(name: str, s: VariantSettings) -> tuple[tuple[str, tuple[int, int]], ...]:
    """(out, in) of each matrix of one layer."""
    queries = s.n_heads * s.d_head
    if name == "mla":
        return (
            ("q_proj", (s.n_heads * (s.d_head + s.rotary), s.d_model)),
            ("latent_proj", (s.latent, s.d_model)),
            ("k_rotary_proj", (s.rotary, s.d_model)),
            ("k_proj", (queries, s.latent)),
            ("v_proj", (queries, s.latent)),
            ("o_proj", (s.d_model, queries)),
        )
    n_kv = {"mha": s.n_heads, "mqa": 1}.get(name, s.n_groups)
    return (
        ("q_proj", (queries, s.d_model)),
        ("k_proj", (n_kv * s.d_head, s.d_model)),
        ("v_proj", (n_kv * s.d_head, s.d_model)),
        ("o_proj", (s.d_model, queries)),
    )


def _describe(name: str, config: ModelConfig, context: int, dtype: str) -> PublishedModel:
    from models.costs import count_cache_bytes
    from models.counting import count_parameters

    heads = config.attention

    def held(n_tokens: int) -> int:
        return count_cache_bytes(config, n_tokens, dtype).total

    n_window = sum(kind == "window" for kind in config.layer_types)
    return PublishedModel(
        name=name,
        n_layers=config.n_layers,
        n_window_layers=n_window,
        n_heads=heads.n_heads,
        n_kv_heads=heads.n_kv_heads,
        d_head=heads.d_head,
        window=heads.window if n_window else None,
        attention_parameters=count_parameters(config).parts["attention"] // config.n_layers,
        cache_bytes=held(context),
        bytes_by_context=tuple(held(n) for n in CONTEXTS),
        context_length=config.context_length,
    )


def _check(settings: VariantSettings) -> None:
    if settings.n_heads % settings.n_groups:
        divisors = [n for n in range(1, settings.n_heads + 1) if settings.n_heads % n == 0]
        raise ConfigError(
            f"{settings.n_groups} groups do not divide {settings.n_heads} heads; choose "
            f"{_listed(divisors)}",
            code="lab-variant-groups",
            groups=settings.n_groups,
            heads=settings.n_heads,
            divisors=_listed(divisors),
        )
    if settings.dtype not in CACHE_TYPES:
        raise ConfigError(f"dtype={settings.dtype!r} is unknown; choose {_listed(CACHE_TYPES)}")


def _listed(things: Sequence[object]) -> str:
    return ", ".join(str(thing) for thing in things)
