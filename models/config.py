"""The configuration of a decoder: frozen values from which every part is chosen.

A model is described by *values*, never by the name of its family: "RMSNorm", "GQA with 3 key/value
heads", "RoPE with base 100,000". What cannot work together is refused when the configuration is
made, with both numbers in the message, long before a tensor exists.

    ModelConfig
    ├── AttentionConfig   how many heads, how wide, with which biases
    ├── MlaConfig         keys and values from a latent; or None
    ├── MoeConfig         how many experts, how many of them at work; or None
    ├── FfnConfig         width, activation, gated (SwiGLU) or plain
    ├── NormConfig        LayerNorm or RMSNorm, epsilon
    ├── RopeConfig        one per layer type, or None with learned positions
    └── DropoutConfig     three rates: embedding, attention weights, residual

No torch here: a page can list and count models without loading it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from models.errors import ConfigError
from models.mla_config import MlaConfig
from models.rope_config import FrozenTable, RopeConfig

NormKind = Literal["layernorm", "rmsnorm", "none"]
Activation = Literal["silu", "gelu", "gelu_tanh", "relu"]
Positions = Literal["learned", "rope", "sinusoidal"]
NormPosition = Literal["pre", "post_sublayer", "sandwich", "post_residual"]
QkNorm = Literal["none", "head", "full"]
LayerType = Literal["full", "window"]
FULL: LayerType = "full"  # every token sees all tokens before it
WINDOW: LayerType = "window"  # every token sees the last `AttentionConfig.window`, itself included
Initialisation = Literal[
    "torch_default", "normal_scaled", "fan_in", "truncated_normal", "unit_normal"
]


def _require_positive(owner: str, **values: int) -> None:
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"{owner}: {name}={value!r} must be a whole number of at least 1")


def _require_choice(owner: str, name: str, value: object, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ConfigError(f"{owner}: {name}={value!r} is unknown; choose {', '.join(choices)}")


def _divisors(number: int) -> str:
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    found = [str(d) for d in sorted({*small, *(number // d for d in small)})]
    return ", ".join(found[:-1]) + " or " + found[-1] if len(found) > 1 else found[0]


@dataclass(frozen=True, kw_only=True)
class NormConfig:
    """Which normalisation.

    Args:
        kind: `layernorm` (Ba et al. 2016, arXiv 1607.06450) subtracts the mean, divides by the
            standard deviation, and has a weight and a bias; `rmsnorm` (Zhang & Sennrich 2019,
            arXiv 1910.07467) only divides by the root mean square, and has a weight; `none` leaves
            the stream as it is: what training is like without, not part of any published model.
        eps: Added to the variance or mean square before the root.
        unit_offset: The weight is stored as its distance from 1, as in Gemma: y = norm(x) (1 + w).
    """

    kind: NormKind
    eps: float = 1e-5
    unit_offset: bool = False

    def __post_init__(self) -> None:
        _require_choice("NormConfig", "kind", self.kind, get_args(NormKind))
        if not 0 < self.eps < 1:
            raise ConfigError(f"NormConfig: eps={self.eps!r} must lie between 0 and 1; try 1e-5")
        if self.unit_offset and self.kind != "rmsnorm":
            raise ConfigError("NormConfig: unit_offset goes with kind='rmsnorm' only; leave it off")


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Heads of self-attention.

    Equal head counts are multi-head attention (Vaswani et al. 2017), one key/value head is
    multi-query (Shazeer 2019), anything between is grouped-query (Ainslie et al. 2023).

    Args:
        n_heads: Query heads.
        n_kv_heads: Key/value heads; each serves n_heads / n_kv_heads query heads.
        d_head: Width of a head. Free: Qwen3-0.6B has 16 heads of 128 at d_model 1,024.
        qkv_bias: Biases on the query, key and value projections.
        out_bias: A bias on the output projection.
        scale: Factor on the scores; None is 1 / sqrt(d_head).
        window: In layers of type `window`, how many keys a query sees, itself counted.
        score_cap: Scores are squeezed to cap * tanh(scores / cap) (Gemma 2, arXiv 2408.00118,
            section 2); None leaves them.
        qk_norm: RMSNorm on queries and keys before they are rotated: over each `head` (Qwen3,
            Gemma 3) or over the `full` projection, before it is cut into heads (Olmo 2 and 3).
        causal: Whether a token sees only itself and those before it. Without, it sees all tokens of
            its pass, also those it is to foresee; with a cache, of all passes so far.
    """

    n_heads: int
    n_kv_heads: int
    d_head: int
    qkv_bias: bool = False
    out_bias: bool = False
    scale: float | None = None
    window: int | None = None
    score_cap: float | None = None
    qk_norm: QkNorm = "none"
    causal: bool = True

    def __post_init__(self) -> None:
        _require_choice("AttentionConfig", "qk_norm", self.qk_norm, get_args(QkNorm))
        if self.window is not None:
            _require_positive("AttentionConfig", window=self.window)
        if self.score_cap is not None and not self.score_cap > 0:
            raise ConfigError(f"AttentionConfig: score_cap={self.score_cap!r} must be above 0")
        _require_positive(
            "AttentionConfig", n_heads=self.n_heads, n_kv_heads=self.n_kv_heads, d_head=self.d_head
        )
        if self.n_heads % self.n_kv_heads:
            raise ConfigError(
                f"n_heads={self.n_heads} is not a multiple of n_kv_heads={self.n_kv_heads}; "
                f"choose {_divisors(self.n_heads)}"
            )
        if self.scale is not None and not self.scale > 0:
            raise ConfigError(f"AttentionConfig: scale={self.scale!r} must be above 0, or None")

    @property
    def group_size(self) -> int:
        """Query heads per key/value head."""
        return self.n_heads // self.n_kv_heads

    @property
    def score_scale(self) -> float:
        """Factor that the scores are multiplied by."""
        return self.d_head**-0.5 if self.scale is None else self.scale


@dataclass(frozen=True, kw_only=True)
class FfnConfig:
    """The feed-forward layer.

    Args:
        d_ff: Its inner width.
        activation: Nonlinearity; `gelu_tanh` is the approximation that GPT-2 was trained with.
        gated: True is down(act(gate(x)) * up(x)), SwiGLU when the activation is silu
            (Shazeer 2020, arXiv 2002.05202); False is down(act(up(x))).
        bias: Biases on all its projections.
    """

    d_ff: int
    activation: Activation
    gated: bool
    bias: bool = False

    def __post_init__(self) -> None:
        _require_positive("FfnConfig", d_ff=self.d_ff)
        _require_choice("FfnConfig", "activation", self.activation, get_args(Activation))


@dataclass(frozen=True, kw_only=True)
class MoeConfig:
    """Experts in the place of the feed-forward; see `models/moe.py`.

    Args:
        n_experts: Experts in each block.
        n_active: How many of them each token uses.
        d_ff: Inner width of an expert.
        normalise_weights: Whether the weights of the chosen are divided by their sum.
    """

    n_experts: int
    n_active: int
    d_ff: int
    normalise_weights: bool

    def __post_init__(self) -> None:
        _require_positive(
            "MoeConfig", n_experts=self.n_experts, n_active=self.n_active, d_ff=self.d_ff
        )
        if self.n_active > self.n_experts:
            raise ConfigError(
                f"MoeConfig: n_active={self.n_active} is more than n_experts={self.n_experts}; "
                f"choose 1 to {self.n_experts}"
            )


@dataclass(frozen=True, kw_only=True)
class DropoutConfig:
    """Share of values set to zero in training (Srivastava et al. 2014).

    Args:
        embedding: After token and position embeddings are added.
        attention: On the attention weights, after softmax.
        residual: On what attention and feed-forward add to the stream.
    """

    embedding: float = 0.0
    attention: float = 0.0
    residual: float = 0.0

    def __post_init__(self) -> None:
        for name in ("embedding", "attention", "residual"):
            rate = getattr(self, name)
            if not 0 <= rate < 1:
                raise ConfigError(f"DropoutConfig: {name}={rate!r} must be at least 0 and below 1")


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A decoder-only transformer.

    Args:
        vocab_size: Rows of the embedding.
        context_length: Positions that the model was made for.
        d_model: Width of the residual stream.
        layer_types: One entry per block; its length is the number of blocks.
        attention: Heads.
        mla: Multi-head latent attention in the place of keys and values of their own, or None.
        ffn: Feed-forward; with `moe`, the kind of each expert.
        moe: Experts in the place of one feed-forward, or None.
        norm: Normalisation of the stream and, where there is one, of queries and keys.
        norm_position: `pre`: in front of each sublayer; `post_sublayer`: on what it adds (Olmo 2);
            `sandwich`: both (Gemma); `post_residual`: after the addition (the 2017 Transformer).
        residual: Whether a sublayer adds to the stream; False puts its output in the stream's
            place, as in networks before residual connections (He et al. 2016, arXiv 1512.03385).
        positions: `learned` adds a trained vector per position, `sinusoidal` a fixed one, `rope`
            rotates queries and keys.
        rope: Layer type -> its rotation; empty with other positions.
        embedding_scale: Factor on token embeddings; sqrt(d_model) in Gemma.
        logit_cap: Logits are squeezed to cap * tanh(logits / cap) (Gemma 2); None leaves them.
        tied_head: The output layer is the embedding matrix itself (Press & Wolf 2017).
        dropout: Rates, used only when a generator is passed to the forward pass.
        initialisation: How fresh weights are drawn; see `models/initialise.py`.
    """

    vocab_size: int
    context_length: int
    d_model: int
    layer_types: tuple[LayerType, ...]
    attention: AttentionConfig
    ffn: FfnConfig
    norm: NormConfig
    positions: Positions
    rope: Mapping[LayerType, RopeConfig] = field(default_factory=dict, hash=False)
    mla: MlaConfig | None = None
    moe: MoeConfig | None = None
    norm_position: NormPosition = "pre"
    residual: bool = True
    embedding_scale: float = 1.0
    logit_cap: float | None = None
    tied_head: bool = False
    dropout: DropoutConfig = DropoutConfig()
    initialisation: Initialisation = "normal_scaled"

    def __post_init__(self) -> None:
        # what a caller may go on changing is copied: a configuration stays as it was checked
        object.__setattr__(self, "layer_types", tuple(self.layer_types))
        object.__setattr__(self, "rope", FrozenTable(self.rope))
        _require_positive(
            "ModelConfig",
            vocab_size=self.vocab_size,
            context_length=self.context_length,
            d_model=self.d_model,
            n_layers=self.n_layers,
        )
        _require_choice("ModelConfig", "norm_position", self.norm_position, get_args(NormPosition))
        _require_choice("ModelConfig", "positions", self.positions, get_args(Positions))
        _require_choice(
            "ModelConfig", "initialisation", self.initialisation, get_args(Initialisation)
        )
        for layer_type in self.layer_types:
            _require_choice("ModelConfig", "layer_types", layer_type, get_args(LayerType))
        if WINDOW in self.layer_types and self.attention.window is None:
            raise ConfigError(
                "layer_types has window layers and AttentionConfig.window is None; give its width"
            )
        if WINDOW in self.layer_types and not self.attention.causal:
            raise ConfigError(
                "a window is the last tokens before a query, causal=False sees those after it; "
                "choose causal=True or 'full' layers"
            )
        if self.mla is not None:
            self._check_mla(self.mla)
        self._check_positions()

    def _check_mla(self, mla: MlaConfig) -> None:
        heads = self.attention
        if heads.n_kv_heads != heads.n_heads:
            raise ConfigError(
                f"mla gives every query head keys of its own, n_kv_heads={heads.n_kv_heads} is not "
                f"n_heads={heads.n_heads}; choose n_kv_heads={heads.n_heads}"
            )
        if heads.qk_norm != "none":
            raise ConfigError(
                f"mla does not go with qk_norm={heads.qk_norm!r}; choose 'none', and "
                "latent_norm=True in MlaConfig to normalise the latents"
            )
        if mla.qk_rope_head_dim >= heads.d_head:
            raise ConfigError(
                f"mla: qk_rope_head_dim={mla.qk_rope_head_dim} leaves nothing of "
                f"d_head={heads.d_head} for content; choose less, half is usual"
            )
        if (mla.qk_rope_head_dim > 0) != (self.positions == "rope"):
            raise ConfigError(
                f"mla with qk_rope_head_dim={mla.qk_rope_head_dim} does not go with "
                f"positions={self.positions!r}; choose an even number above 0 with 'rope', "
                "0 with 'learned' or 'sinusoidal'"
            )

    def _check_positions(self) -> None:
        used = set(self.layer_types)
        if self.positions != "rope" and self.rope:
            raise ConfigError(
                f"positions={self.positions!r} does not go with rope; empty rope or use "
                "positions='rope'"
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ConfigError(
                f"sinusoidal positions are pairs of sine and cosine, d_model={self.d_model} is "
                f"odd; choose {self.d_model + 1}"
            )
        if self.positions == "rope" and used - set(self.rope):
            raise ConfigError(
                f"positions='rope' needs a RopeConfig for layer types {sorted(used)}, "
                f"found {sorted(self.rope)}; add the missing ones to rope"
            )
        if self.positions == "rope" and self.rotary_width % 2:
            raise ConfigError(
                f"rope turns pairs of numbers, d_head={self.rotary_width} is odd; "
                f"choose {self.rotary_width + 1}"
            )

    @property
    def n_layers(self) -> int:
        """Number of blocks."""
        return len(self.layer_types)

    @property
    def rotary_width(self) -> int:
        """Numbers of each query and key that `rope` rotates."""
        return self.attention.d_head if self.mla is None else self.mla.qk_rope_head_dim
