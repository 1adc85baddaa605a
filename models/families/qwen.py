"""Qwen 2, 2.5 and 3, dense and with experts.

Qwen2 (Yang et al. 2024, arXiv 2407.10671; 2.5: 2412.15115) is Llama's shape with biases on queries,
keys and values. Qwen3 (Yang et al. 2025, arXiv 2505.09388) drops them, normalises queries and keys
over each head before they are rotated, and has heads of 128 whatever d_model is. Its larger ones
replace the feed-forward by 128 experts, of which a token uses 8.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from models.config import (
    FULL,
    WINDOW,
    AttentionConfig,
    FfnConfig,
    LayerType,
    ModelConfig,
    MoeConfig,
    NormConfig,
    QkNorm,
)
from models.family import Family, GgufFormat, Settings
from models.gguf_file import GgufFile
from models.gguf_layout import (
    ROUTER,
    SOFTMAX_GATING,
    Key,
    gguf_rules,
    gguf_settings,
    read_llama_like,
)
from models.hf_layout import (
    UsualValues,
    hf_rules,
    read_heads,
    read_hf_config,
    read_layer_types,
    write_hf_config,
    write_layer_types,
)
from models.hf_rope import write_rope
from models.rope_config import RopeConfig
from models.tokenizers.chat_format import CHATML

# huggingface.co/Qwen/Qwen2.5-0.5B/blob/main/config.json
QWEN25_05B = ModelConfig(
    vocab_size=151_936,
    context_length=32_768,
    d_model=896,
    layer_types=(FULL,) * 24,
    attention=AttentionConfig(n_heads=14, n_kv_heads=2, d_head=64, qkv_bias=True),
    ffn=FfnConfig(d_ff=4_864, activation="silu", gated=True),
    norm=NormConfig(kind="rmsnorm", eps=1e-6),
    positions="rope",
    rope={FULL: RopeConfig(theta=1_000_000.0)},
    tied_head=True,
)
# huggingface.co/Qwen/Qwen3-0.6B/blob/main/config.json
QWEN3_06B = replace(
    QWEN25_05B,
    context_length=40_960,
    d_model=1_024,
    layer_types=(FULL,) * 28,
    attention=AttentionConfig(n_heads=16, n_kv_heads=8, d_head=128, qk_norm="head"),
    ffn=FfnConfig(d_ff=3_072, activation="silu", gated=True),
)


def _qwen3(d_model: int, n_layers: int, n_heads: int, d_ff: int, tied_head: bool) -> ModelConfig:
    return replace(
        QWEN3_06B,
        d_model=d_model,
        layer_types=(FULL,) * n_layers,
        attention=replace(QWEN3_06B.attention, n_heads=n_heads),
        ffn=replace(QWEN3_06B.ffn, d_ff=d_ff),
        tied_head=tied_head,
    )


# huggingface.co/Qwen/Qwen3-30B-A3B/blob/main/config.json
QWEN3_30B_A3B = replace(
    _qwen3(2_048, 48, 32, 6_144, tied_head=False),
    attention=replace(QWEN3_06B.attention, n_heads=32, n_kv_heads=4),
    moe=MoeConfig(n_experts=128, n_active=8, d_ff=768, normalise_weights=True),
)

PRESETS: Mapping[str, ModelConfig] = {
    "qwen2.5-0.5b": QWEN25_05B,
    "qwen3-0.6b": QWEN3_06B,
    "qwen3-1.7b": _qwen3(2_048, 28, 16, 6_144, tied_head=True),  # huggingface.co/Qwen/Qwen3-1.7B
    "qwen3-4b": _qwen3(2_560, 36, 32, 9_728, tied_head=True),  # huggingface.co/Qwen/Qwen3-4B
    "qwen3-8b": _qwen3(4_096, 36, 32, 12_288, tied_head=False),  # huggingface.co/Qwen/Qwen3-8B
    "qwen3-14b": _qwen3(5_120, 40, 40, 17_408, tied_head=False),  # huggingface.co/Qwen/Qwen3-14B
    "qwen3-32b": _qwen3(5_120, 64, 64, 25_600, tied_head=False),  # huggingface.co/Qwen/Qwen3-32B
    "qwen3-30b-a3b": QWEN3_30B_A3B,
    # huggingface.co/Qwen/Qwen3-30B-A3B-Instruct-2507
    "qwen3-30b-a3b-2507": replace(
        QWEN3_30B_A3B,
        context_length=262_144,
        rope={FULL: RopeConfig(theta=10_000_000.0)},
    ),
}


USUAL = UsualValues(context_length=32_768)


def config_from_hf(values: Mapping[str, Any]) -> ModelConfig:
    """Read config.json of Qwen 2, 2.5, 3 and 3 with experts.

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = Settings(values)
    moe = _read_moe(settings) if values.get("model_type") == "qwen3_moe" else None
    if values.get("model_type") == "qwen2":
        heads = read_heads(settings, qkv_bias=True, out_bias=False, window=_window(settings))
    else:
        norm: QkNorm = "head"
        d_head = settings.whole("head_dim", 128)
        heads = read_heads(settings, d_head=d_head, qk_norm=norm, window=_window(settings))
    layer_types = read_layer_types(settings, _usual_layer_types(settings))
    return read_hf_config(settings, USUAL, layer_types, attention=heads, moe=moe)


def config_to_hf(config: ModelConfig) -> dict[str, Any] | None:
    """Write config.json of Qwen2 where there is no norm of queries and keys, else of Qwen3."""
    heads = config.attention
    own: dict[str, Any] = {
        "use_sliding_window": WINDOW in config.layer_types,
        "sliding_window": heads.window if WINDOW in config.layer_types else None,
        **write_rope(config),
    }
    if config.moe is not None:  # there the window is for all layers or none
        own |= {"attention_bias": heads.qkv_bias, **_write_moe(config.moe)}
        return write_hf_config(config, "Qwen3MoeForCausalLM", "qwen3_moe", USUAL, **own)
    own["layer_types"] = write_layer_types(config)
    if heads.qk_norm == "none":
        return write_hf_config(config, "Qwen2ForCausalLM", "qwen2", USUAL, **own)
    own["attention_bias"] = heads.qkv_bias
    return write_hf_config(config, "Qwen3ForCausalLM", "qwen3", USUAL, **own)


def _write_moe(moe: MoeConfig) -> dict[str, Any]:
    return {
        "num_experts": moe.n_experts,
        "num_experts_per_tok": moe.n_active,
        "moe_intermediate_size": moe.d_ff,
        "norm_topk_prob": moe.normalise_weights,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _window(settings: Settings) -> int | None:
    if not settings.flag("use_sliding_window", False):
        return None
    return settings.whole("sliding_window", 4_096)


def _usual_layer_types(settings: Settings) -> tuple[LayerType, ...]:
    """With a window, layers from `max_window_layers` on have it; with experts, all."""
    n_layers = settings.layers("num_hidden_layers")
    if _window(settings) is None:
        return (FULL,) * n_layers
    if settings.values.get("model_type") == "qwen3_moe":
        return (WINDOW,) * n_layers
    first = settings.whole("max_window_layers", 28, least=0)
    return tuple(WINDOW if i >= first else FULL for i in range(n_layers))


def _read_moe(settings: Settings) -> MoeConfig:
    settings.refuse_unless(decoder_sparse_step=1, mlp_only_layers=[])
    return MoeConfig(
        # transformers 5 writes the second name
        n_experts=settings.whole("num_experts", settings.values.get("num_local_experts", 128)),
        n_active=settings.whole("num_experts_per_tok", 8),
        d_ff=settings.whole("moe_intermediate_size", 768),
        normalise_weights=settings.flag("norm_topk_prob", False),
    )


def config_from_gguf(gguf: GgufFile) -> ModelConfig:
    """Read a GGUF file of architecture "qwen2", "qwen3" or "qwen3moe".

    Raises:
        ConfigError: A key is missing, or a setting changes the numbers in a way we do not compute.
    """
    settings = gguf_settings(gguf)
    common = read_llama_like(gguf)
    if settings.whole(Key.WINDOW, 0, least=0) < common.context_length:  # a wider one hides nothing
        # which layers have it is not in the file
        settings.refuse_unless(**{Key.WINDOW.value: 0})
    if gguf.architecture == "qwen2":
        return common
    heads = replace(common.attention, qk_norm="head")
    if gguf.architecture == "qwen3":
        return replace(common, attention=heads)
    return replace(common, attention=heads, moe=_read_gguf_moe(gguf, settings))


def _read_gguf_moe(gguf: GgufFile, settings: Settings) -> MoeConfig:
    settings.refuse_unless(
        **{
            Key.EXPERT_SHARED_COUNT.value: 0,
            Key.EXPERT_GATING_FUNC.value: SOFTMAX_GATING,
            Key.EXPERT_WEIGHTS_SCALE.value: 1.0,
        }
    )
    n_experts = settings.whole(Key.EXPERT_COUNT)
    router = gguf.tensors.get(f"blk.0.{ROUTER}.weight")
    shape = None if router is None else router.shape
    if shape is None or shape[:1] != (n_experts,):  # not a number to build from
        kind = f"the number of rows of a router of shape {shape}"
        raise settings.wrong(Key.EXPERT_COUNT, n_experts, kind)
    return MoeConfig(
        n_experts=n_experts,
        n_active=settings.whole(Key.EXPERT_USED_COUNT),
        d_ff=settings.whole(Key.EXPERT_FEED_FORWARD_LENGTH),
        # llama.cpp divides whatever the original did, so its files do not always say
        normalise_weights=settings.flag(Key.EXPERT_WEIGHTS_NORM, True),
    )


FAMILY = Family(
    name="Qwen",
    source="Yang et al. 2024 and 2025, arXiv 2407.10671 and 2505.09388",
    model_types=("qwen2", "qwen3", "qwen3_moe"),
    presets=PRESETS,
    config_from_hf=config_from_hf,
    config_to_hf=config_to_hf,
    rules=hf_rules,
    gguf=GgufFormat(("qwen2", "qwen3", "qwen3moe"), config_from_gguf, gguf_rules),
    chat_formats=(CHATML,),
)
