"""The parts of a model, in the order of its forward pass, read from its configuration alone.

    bottom    embedding, positions
    block     norm ─► attention ─► (norm) ─► add ─► norm ─► feed-forward ─► (norm) ─► add    x L
    top       norm ─► head

Which parts there are follows from values of the configuration (models/block.py has the same rules
in code), so a new model needs no new drawing. Each part lists its tensors by the names that the
built model gives them; a test holds both lists against each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from explorer.architecture_formulas import FORMULAS, source_of_part
from models.config import FULL, WINDOW, ModelConfig
from models.counting import ParameterCount, count_parameters
from models.encoder_decoder_config import EncoderDecoderConfig, count_encoder_decoder

Section = Literal["bottom", "encoder", "block", "top"]
AnyConfig = ModelConfig | EncoderDecoderConfig
Shape = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One box of the diagram.

    Args:
        kind: What it is; key of its name in the words.
        section: Where it stands.
        facts: Numbers and choices by name, as texts.
        tensors: Name in the model -> shape; `{i}` stands for the layer, `{e}` for the expert.
        repeats: How often it is there, in layers or layers x experts.
        formula: What it computes, as a line of text.
        file: Where that is implemented.
    """

    kind: str
    section: Section
    facts: Mapping[str, str]
    tensors: Mapping[str, Shape] = field(default_factory=dict)
    repeats: int = 1
    formula: str = ""
    file: str = ""

    @property
    def n_parameters(self) -> int:
        """Numbers in all its copies."""
        return self.repeats * sum(math.prod(shape) for shape in self.tensors.values())


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """A model as boxes.

    Args:
        name: Of the model.
        config: What it was read from.
        parts: In the order of the forward pass.
        layers: Sections that repeat, and the types of their layers.
        count: Its parameters.
    """

    name: str
    config: AnyConfig
    parts: tuple[Part, ...]
    layers: Mapping[Section, tuple[str, ...]]
    count: ParameterCount

    def part(self, kind: str) -> Part | None:
        """The first box of that kind."""
        return next((part for part in self.parts if part.kind == kind), None)


def describe_architecture(name: str, config: AnyConfig) -> Architecture:
    """Read the parts of a model from its configuration; nothing is allocated.

    Args:
        name: What to call it.
        config: A decoder or an encoder-decoder.
    """
    if isinstance(config, EncoderDecoderConfig):
        return _describe_two_stacks(name, config)
    parts = (*_bottom(config), *_block(config, "block", "blocks"), *_top(config))
    return Architecture(
        name=name,
        config=config,
        parts=parts,
        layers={"block": config.layer_types},
        count=count_parameters(config),
    )


def _describe_two_stacks(name: str, config: EncoderDecoderConfig) -> Architecture:
    encoder, decoder = config.encoder, config.decoder
    width = encoder.d_model
    embeddings = {"source_embed.weight": (encoder.vocab_size, width)}
    if not config.shared_embedding:
        embeddings["target_embed.weight"] = (decoder.vocab_size, width)
    facts = {"vocab_size": f"{encoder.vocab_size:,}", "d_model": f"{width:,}"}
    shared = {"shared": "yes" if config.shared_embedding else "no"}
    parts = (
        _part("embedding", "bottom", {**facts, **shared}, embeddings),
        _part("sinusoidal", "bottom", {}),
        *_block(encoder, "encoder", "encoder_blocks"),
        *_block(decoder, "block", "decoder_blocks", reads_memory=True),
        *_head(decoder),
    )
    return Architecture(
        name=name,
        config=config,
        parts=parts,
        layers={"encoder": encoder.layer_types, "block": decoder.layer_types},
        count=count_encoder_decoder(config),
    )


def _part(
    kind: str,
    section: Section,
    facts: Mapping[str, str],
    tensors: Mapping[str, Shape] | None = None,
    *,
    repeats: int = 1,
    formula: str | None = None,
) -> Part:
    return Part(
        kind=kind,
        section=section,
        facts=facts,
        tensors=tensors or {},
        repeats=repeats,
        formula=FORMULAS[formula or kind],
        file=source_of_part(kind),
    )


# ------------------------------------------------------------------------------ below and above
def _bottom(config: ModelConfig) -> Iterator[Part]:
    width, vocab = config.d_model, config.vocab_size
    facts = {"vocab_size": f"{vocab:,}", "d_model": f"{width:,}"}
    scaled = config.embedding_scale != 1.0
    if scaled:
        facts["embedding_scale"] = f"{config.embedding_scale:g}"
    tensors = {"embed.weight": (vocab, width)}
    formula = "embedding_scaled" if scaled else "embedding"
    yield _part("embedding", "bottom", facts, tensors, formula=formula)
    if config.positions == "learned":
        facts = {"context_length": f"{config.context_length:,}"}
        tensors = {"position_embed.weight": (config.context_length, width)}
        yield _part("learned", "bottom", facts, tensors)
    if config.positions == "sinusoidal":
        yield _part("sinusoidal", "bottom", {})


def _top(config: ModelConfig) -> Iterator[Part]:
    yield from _norm(config, "final_norm", "top", "final_norm", repeats=1)
    yield from _head(config)


def _head(config: ModelConfig) -> Iterator[Part]:
    tensors = {} if config.tied_head else {"head.weight": (config.vocab_size, config.d_model)}
    facts = {
        "tied_head": "yes" if config.tied_head else "no",
        "vocab_size": f"{config.vocab_size:,}",
    }
    if config.logit_cap is not None:
        facts["logit_cap"] = f"{config.logit_cap:g}"
    formula = "head_tied" if config.tied_head else "head"
    yield _part("head", "top", facts, tensors, formula=formula)


# ------------------------------------------------------------------------------------ one block
def _block(
    config: ModelConfig, section: Section, prefix: str, *, reads_memory: bool = False
) -> Iterator[Part]:
    """The parts of a block, in the order of `models/block.py`."""
    sublayers: list[tuple[str, Callable[[], Iterator[Part]]]] = [
        ("attn", lambda: _attention(config, section, prefix))
    ]
    if reads_memory:
        sublayers.append(("cross_attn", lambda: _cross_attention(config, section, prefix)))
    sublayers.append(("ffn", lambda: _feed_forward(config, section, prefix)))
    for name, parts in sublayers:
        yield from _around(config, section, prefix, name, parts)


def _around(
    config: ModelConfig,
    section: Section,
    prefix: str,
    name: str,
    parts: Callable[[], Iterator[Part]],
) -> Iterator[Part]:
    """A sublayer with its norms, and what happens to the stream."""
    place = config.norm_position
    norm = f"{prefix}.{{i}}.{name}_norm"
    repeats = config.n_layers
    if place in {"pre", "sandwich"}:
        yield from _norm(config, f"{name}_norm", section, norm, repeats=repeats)
    yield from parts()
    if place == "post_sublayer":
        yield from _norm(config, f"{name}_norm", section, norm, repeats=repeats)
    if place == "sandwich":
        after = f"{prefix}.{{i}}.{name}_post_norm"
        yield from _norm(config, f"{name}_post_norm", section, after, repeats=repeats)
    kind = "add" if config.residual else "replace"
    yield _part(kind, section, {}, repeats=repeats)
    if place == "post_residual":
        yield from _norm(config, f"{name}_norm", section, norm, repeats=repeats)


def _norm(
    config: ModelConfig, kind: str, section: Section, name: str, *, repeats: int
) -> Iterator[Part]:
    norm = config.norm
    if norm.kind == "none":
        return
    shape = (config.d_model,)
    tensors = {f"{name}.weight": shape}
    if norm.kind == "layernorm":
        tensors[f"{name}.bias"] = shape
    facts = {"norm": norm.kind, "eps": f"{norm.eps:g}"}
    if norm.unit_offset:
        facts["unit_offset"] = "yes"
    formula = "unit_offset" if norm.unit_offset else norm.kind
    yield _part(kind, section, facts, tensors, repeats=repeats, formula=formula)


def _matrices(prefix: str, shapes: Mapping[str, Shape], biased: Sequence[str]) -> dict[str, Shape]:
    """Weights, and a bias of as many numbers as rows for those in `biased`."""
    tensors: dict[str, Shape] = {}
    for name, shape in shapes.items():
        tensors[f"{prefix}.{name}.weight"] = shape
        if name in biased:
            tensors[f"{prefix}.{name}.bias"] = shape[:1]
    return tensors


def _attention_biases(config: ModelConfig) -> list[str]:
    heads = config.attention
    projections = ["q_proj", "k_proj", "v_proj"] if heads.qkv_bias else []
    return projections + (["o_proj"] if heads.out_bias else [])


def _attention(config: ModelConfig, section: Section, prefix: str) -> Iterator[Part]:
    if config.mla is not None:
        yield _latent_attention(config, section, prefix)
    else:
        yield _plain_attention(config, section, prefix)
        yield from _qk_norm(config, section, prefix)
    for layer_type, rope in config.rope.items():
        if layer_type not in config.layer_types:
            continue
        scaling = "none" if rope.scaling is None else type(rope.scaling).__name__
        facts = {"layer_type": layer_type, "theta": f"{rope.theta:,.0f}", "scaling": scaling}
        if rope.scaling is not None:
            facts["factor"] = f"{rope.scaling.factor:g}"
        repeats = config.layer_types.count(layer_type)
        yield _part("rope", section, facts, repeats=repeats)


def _plain_attention(config: ModelConfig, section: Section, prefix: str) -> Part:
    heads, width = config.attention, config.d_model
    q_width, kv_width = heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head
    shapes = {
        "q_proj": (q_width, width),
        "k_proj": (kv_width, width),
        "v_proj": (kv_width, width),
        "o_proj": (width, q_width),
    }
    tensors = _matrices(f"{prefix}.{{i}}.attn", shapes, _attention_biases(config))
    facts = _attention_facts(config)
    formula = "attention" if heads.causal and section != "encoder" else "attention_open"
    return _part("attention", section, facts, tensors, repeats=config.n_layers, formula=formula)


def _attention_facts(config: ModelConfig) -> dict[str, str]:
    heads = config.attention
    kinds = {heads.n_heads: "MHA", 1: "MQA"}
    facts = {
        "heads": kinds.get(heads.n_kv_heads, "GQA"),
        "n_heads": str(heads.n_heads),
        "n_kv_heads": str(heads.n_kv_heads),
        "d_head": str(heads.d_head),
        "qkv_bias": "yes" if heads.qkv_bias else "no",
    }
    if WINDOW in config.layer_types:
        windows = config.layer_types.count(WINDOW)
        facts["window"] = f"{heads.window:,}"
        facts["window_layers"] = f"{windows} : {config.layer_types.count(FULL)}"
    if heads.scale is not None:
        facts["scale"] = f"{heads.scale:g}"
    if heads.score_cap is not None:
        facts["score_cap"] = f"{heads.score_cap:g}"
    return facts


def _qk_norm(config: ModelConfig, section: Section, prefix: str) -> Iterator[Part]:
    heads = config.attention
    if heads.qk_norm == "none":
        return
    full = heads.qk_norm == "full"
    widths = {
        "q_norm": heads.n_heads * heads.d_head if full else heads.d_head,
        "k_norm": heads.n_kv_heads * heads.d_head if full else heads.d_head,
    }
    tensors = {f"{prefix}.{{i}}.attn.{n}.weight": (width,) for n, width in widths.items()}
    if config.norm.kind == "layernorm":
        tensors |= {f"{prefix}.{{i}}.attn.{n}.bias": (width,) for n, width in widths.items()}
    facts = {"qk_norm": heads.qk_norm}
    formula = "unit_offset" if config.norm.unit_offset else config.norm.kind
    yield _part("qk_norm", section, facts, tensors, repeats=config.n_layers, formula=formula)


def _latent_attention(config: ModelConfig, section: Section, prefix: str) -> Part:
    mla, heads, width = config.mla, config.attention, config.d_model
    assert mla is not None, "asked for only where there is one"
    latent, value = mla.latent_width(width), heads.n_heads * (mla.v_head_dim or heads.d_head)
    q_width = heads.n_heads * heads.d_head
    shapes: dict[str, Shape] = {"q_proj": (q_width, mla.q_lora_rank or width)}
    biased = [name for name in _attention_biases(config) if name == "o_proj"]
    into = ["latent_proj", "k_rotary_proj", "q_latent_proj"]
    into += ["q_proj"] if mla.q_lora_rank is None else []
    if mla.q_lora_rank is not None:
        shapes["q_latent_proj"] = (mla.q_lora_rank, width)
    shapes["latent_proj"] = (latent, width)
    if mla.qk_rope_head_dim:
        shapes["k_rotary_proj"] = (mla.qk_rope_head_dim, width)
    shapes["k_proj"] = (heads.n_heads * (heads.d_head - mla.qk_rope_head_dim), latent)
    shapes["v_proj"] = (value, latent)
    shapes["o_proj"] = (width, value)
    biased += into if heads.qkv_bias else []
    tensors = _matrices(f"{prefix}.{{i}}.attn", shapes, biased)
    if mla.latent_norm:
        tensors[f"{prefix}.{{i}}.attn.latent_norm.weight"] = (latent,)
        if mla.q_lora_rank is not None:
            tensors[f"{prefix}.{{i}}.attn.q_latent_norm.weight"] = (mla.q_lora_rank,)
    facts = {**_attention_facts(config), "heads": "MLA", "latent": str(latent)}
    return _part(
        "attention", section, facts, tensors, repeats=config.n_layers, formula="attention_latent"
    )


def _cross_attention(config: ModelConfig, section: Section, prefix: str) -> Iterator[Part]:
    heads, width = config.attention, config.d_model
    q_width, kv_width = heads.n_heads * heads.d_head, heads.n_kv_heads * heads.d_head
    shapes = {
        "q_proj": (q_width, width),
        "k_proj": (kv_width, width),
        "v_proj": (kv_width, width),
        "o_proj": (width, q_width),
    }
    tensors = _matrices(f"{prefix}.{{i}}.cross_attn", shapes, _attention_biases(config))
    facts = {"n_heads": str(heads.n_heads), "d_head": str(heads.d_head)}
    yield _part("cross_attention", section, facts, tensors, repeats=config.n_layers)


def _feed_forward(config: ModelConfig, section: Section, prefix: str) -> Iterator[Part]:
    ffn, moe, width = config.ffn, config.moe, config.d_model
    formula = "ffn_gated" if ffn.gated else "ffn"
    facts = {"activation": ffn.activation, "gated": "yes" if ffn.gated else "no"}
    d_ff = ffn.d_ff if moe is None else moe.d_ff
    names = ["gate_proj", "up_proj"] if ffn.gated else ["up_proj"]
    shapes: dict[str, Shape] = {name: (d_ff, width) for name in names}
    shapes["down_proj"] = (width, d_ff)
    biased = list(shapes) if ffn.bias else []
    facts["d_ff"] = f"{d_ff:,}"
    if moe is None:
        tensors = _matrices(f"{prefix}.{{i}}.ffn", shapes, biased)
        yield _part("ffn", section, facts, tensors, repeats=config.n_layers, formula=formula)
        return
    counts = {"n_experts": str(moe.n_experts), "n_active": str(moe.n_active)}
    router = {f"{prefix}.{{i}}.ffn.router.weight": (moe.n_experts, width)}
    yield _part("router", section, counts, router, repeats=config.n_layers)
    tensors = _matrices(f"{prefix}.{{i}}.ffn.experts.{{e}}", shapes, biased)
    repeats = config.n_layers * moe.n_experts
    yield _part("experts", section, {**facts, **counts}, tensors, repeats=repeats, formula=formula)
