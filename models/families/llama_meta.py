"""Llama 2 and 3 as Meta gives them out: consolidated.00.pth, params.json, tokenizer.model.

Meta's code rotates neighbouring numbers of a head, so rows of q and k lie in pairs here (see
`models/rope.py`). params.json holds sizes under names of its own; what it leaves out:

    vocab_size       -1 in Llama 2: the rows of the embedding
    d_ff             the rows of feed_forward.w1; `multiple_of` and `ffn_dim_multiplier` are the
                     numbers from which Meta's code computes the same width
    context length   chosen when Meta's code is started: `max_seq_len` if somebody wrote it down,
                     else that of the preset with the same sizes, else by generation: 131,072 with
                     rescaled frequencies, 8,192 with base 500,000 (Llama 3), 4,096 (Llama 2)
    rescaling        `use_scaled_rope` says whether, not how: `rope_scaling_factor` if it is there,
                     else that of the preset with the same sizes (32 in Llama 3.2), else 8 (3.1)
"""

from collections.abc import Collection, Mapping

from models.config import FULL, AttentionConfig, FfnConfig, ModelConfig, NormConfig
from models.errors import WeightError
from models.family import Settings, Shape, StateDict
from models.rope_config import Llama3Scaling, RopeConfig
from models.weight_rules import PAIRS_TO_HALVES, RuleTable, WeightRule

MARKER = "layers.0.attention.wq.weight"
LLAMA3_BASE = 500_000.0
SCALED_CONTEXT, LLAMA3_CONTEXT, LLAMA2_CONTEXT = 131_072, 8_192, 4_096


def config_from_params(
    file: StateDict, settings: Settings, presets: Collection[ModelConfig]
) -> ModelConfig:
    """Read params.json and the shapes.

    Args:
        file: The tensors.
        settings: params.json.
        presets: What is known of published sizes.

    Raises:
        ConfigError: A key is missing, or has a value that cannot be.
        WeightError: A tensor that tells a size is missing.
    """
    shapes = file.shapes
    d_model, n_heads = settings.whole("dim"), settings.whole("n_heads")
    attention = AttentionConfig(
        n_heads=n_heads,
        n_kv_heads=settings.whole("n_kv_heads", n_heads),
        d_head=settings.whole("head_dim", d_model // max(1, n_heads)),
    )
    layer_types = (FULL,) * settings.layers("n_layers")
    alike = [
        preset
        for preset in presets
        if (preset.d_model, preset.layer_types, preset.attention)
        == (d_model, layer_types, attention)
    ]
    rope = _read_rope(settings, alike)
    return ModelConfig(
        vocab_size=_rows(shapes, "tok_embeddings.weight"),
        context_length=settings.whole("max_seq_len", _find_context(rope, alike)),
        d_model=d_model,
        layer_types=layer_types,
        attention=attention,
        ffn=FfnConfig(
            d_ff=_rows(shapes, "layers.0.feed_forward.w1.weight"), activation="silu", gated=True
        ),
        norm=NormConfig(kind="rmsnorm", eps=settings.number("norm_eps")),
        positions="rope",
        rope={FULL: rope},
        # 3.2 is tied, and may hold a copy
        tied_head="output.weight" not in shapes
        or file.equal("output.weight", "tok_embeddings.weight"),
    )


def _rows(shapes: Mapping[str, Shape], name: str) -> int:
    if len(shapes.get(name, ())) != 2:
        raise WeightError(
            f"{name} is missing or is not a matrix; download consolidated.00.pth again",
            code="pth-tensor-missing",
            name=name,
        )
    return shapes[name][0]


def _read_rope(settings: Settings, alike: Collection[ModelConfig]) -> RopeConfig:
    theta = settings.number("rope_theta", 10_000.0)
    if not settings.flag("use_scaled_rope", False):
        return RopeConfig(theta=theta)
    known = [preset.rope[FULL].scaling for preset in alike]
    factors = [scaling.factor for scaling in known if isinstance(scaling, Llama3Scaling)]
    factor = settings.number("rope_scaling_factor", factors[0] if factors else 8.0)
    scaling = Llama3Scaling(
        factor=factor,
        low_frequency_factor=1.0,
        high_frequency_factor=4.0,
        original_context=LLAMA3_CONTEXT,  # all generations that rescale were trained on it first
    )
    return RopeConfig(theta=theta, scaling=scaling)


def _find_context(rope: RopeConfig, alike: Collection[ModelConfig]) -> int:
    for preset in alike:
        if preset.rope[FULL] == rope:
            return preset.context_length
    if rope.scaling is not None:
        return SCALED_CONTEXT
    return LLAMA3_CONTEXT if rope.theta == LLAMA3_BASE else LLAMA2_CONTEXT


def rules(config: ModelConfig) -> RuleTable:
    """Names of Meta's files."""
    theirs, ours = "layers.{i}", "blocks.{i}"
    return RuleTable(
        (
            WeightRule("tok_embeddings.weight", "embed.weight"),
            WeightRule("norm.weight", "final_norm.weight"),
            WeightRule("output.weight", () if config.tied_head else "head.weight"),
            WeightRule("rope.freqs", ()),  # a table, not a weight; Llama 2's files hold it
            WeightRule(f"{theirs}.attention_norm.weight", f"{ours}.attn_norm.weight"),
            WeightRule(f"{theirs}.ffn_norm.weight", f"{ours}.ffn_norm.weight"),
            WeightRule(
                f"{theirs}.attention.wq.weight", f"{ours}.attn.q_proj.weight", (PAIRS_TO_HALVES,)
            ),
            WeightRule(
                f"{theirs}.attention.wk.weight", f"{ours}.attn.k_proj.weight", (PAIRS_TO_HALVES,)
            ),
            WeightRule(f"{theirs}.attention.wv.weight", f"{ours}.attn.v_proj.weight"),
            WeightRule(f"{theirs}.attention.wo.weight", f"{ours}.attn.o_proj.weight"),
            WeightRule(f"{theirs}.feed_forward.w1.weight", f"{ours}.ffn.gate_proj.weight"),
            WeightRule(f"{theirs}.feed_forward.w2.weight", f"{ours}.ffn.down_proj.weight"),
            WeightRule(f"{theirs}.feed_forward.w3.weight", f"{ours}.ffn.up_proj.weight"),
        )
    )
