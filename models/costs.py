"""What a configuration costs, from its numbers alone: operations and bytes, nothing is allocated.

Operations of a forward pass, for one new token that sees S tokens, itself counted (Hoffmann et al.
2022, arXiv 2203.15556, appendix F, without the cheap parts: norms, softmax, activations):

    matrices      2 a weight (one product, one sum): projections, feed-forward, head; of experts
                  the active ones and the router; a row of an embedding is only looked up
    attention     2 S H d for the scores, 2 S H v for the weighted values, in each layer;
                  a window layer sees at most its window (v is the width of a value, else d)

Bytes that one token leaves in the cache, in each layer: 2 K d numbers (a key and a value of each
key/value head), or with latent attention its latent and one rotated key. A window layer keeps its
window, so its share stops growing there.

Bytes of weights: 4, 2 or 1 a number; in 8 bits each row of a matrix has a scale of 4 bytes besides,
and norms, biases and routers stay float32 (see `models/quantize.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from models.config import WINDOW, LayerType, ModelConfig
from models.counting import count_parameters
from models.errors import ConfigError

BYTES_PER_NUMBER: Mapping[str, int] = {"float32": 4, "bfloat16": 2, "float16": 2, "int8": 1}
SCALE_BYTES = 4
RopeTables = Literal["none", "once", "every layer"]


@dataclass(frozen=True)
class TokenOperations:
    """Floating-point operations of the forward pass of one token.

    Args:
        matrices: Products with weights, whatever the length of the text.
        attention: Scores and weighted values, by the tokens seen.
    """

    matrices: int
    attention: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.matrices + self.attention


@dataclass(frozen=True)
class CacheBytes:
    """Bytes of keys and values of a text.

    Args:
        per_token: Layer type -> bytes that one more token takes in all layers of that type; a
            window layer takes them until its window is full.
        total: Bytes of the whole text.
    """

    per_token: Mapping[LayerType, int]
    total: int


def count_operations(config: ModelConfig, n_seen: int) -> TokenOperations:
    """Floating-point operations of one forward pass of one token.

    Args:
        config: The model.
        n_seen: Tokens that it attends to, itself counted.
    """
    attention = sum(
        2 * _seen(config, kind, n_seen) * _widths_per_seen_token(config)
        for kind in config.layer_types
    )
    return TokenOperations(matrices=2 * _weights_at_work(config), attention=attention)


def count_cache_bytes(config: ModelConfig, n_tokens: int, dtype: str = "float32") -> CacheBytes:
    """Bytes that the keys and values of a text take; in an int8 model they are float32.

    Args:
        config: The model.
        n_tokens: Length of the text.
        dtype: Type of the weights.

    Raises:
        ConfigError: The type is unknown.
    """
    number = BYTES_PER_NUMBER["float32" if dtype == "int8" else _known(dtype)]
    of_token = _numbers_cached(config) * number
    kinds = dict.fromkeys(config.layer_types)
    return CacheBytes(
        per_token={kind: of_token * config.layer_types.count(kind) for kind in kinds},
        total=sum(of_token * _seen(config, kind, n_tokens) for kind in config.layer_types),
    )


def count_weight_bytes(config: ModelConfig, dtype: str) -> int:
    """Bytes that the weights take in memory; a tied head is stored once.

    Raises:
        ConfigError: The type is unknown.
    """
    numbers = count_parameters(config).unique
    if _known(dtype) != "int8":
        return numbers * BYTES_PER_NUMBER[dtype]
    return count_int8_bytes(numbers, list_matrices(config))


def count_int8_bytes(numbers: int, matrices: Iterable[tuple[int, int]]) -> int:
    """Bytes of weights of which the matrices are in 8 bits, one scale a row, and the rest is not.

    Args:
        numbers: All of them.
        matrices: (rows, columns) of each that is stored.
    """
    shapes = list(matrices)
    in_8_bits = sum(rows * columns for rows, columns in shapes)
    n_scales = sum(rows for rows, _ in shapes)
    kept = (numbers - in_8_bits) * BYTES_PER_NUMBER["float32"]
    return in_8_bits * BYTES_PER_NUMBER["int8"] + n_scales * SCALE_BYTES + kept


def count_training_bytes(
    config: ModelConfig,
    dtype: str,
    *,
    copies_head: bool = False,
    rope_tables: RopeTables = "none",
    stores_masks: bool = False,
) -> int:
    """Bytes of weights and their gradients, with what a program may keep beside them.

    Published figures differ in what they include; the options are those found in course code.

    Args:
        config: The model.
        dtype: Type of all of it.
        copies_head: A tied head is kept as a matrix of its own.
        rope_tables: Cosines and sines of the whole context, (context, d_head) each: not counted,
            once for each RoPE base, or in every layer.
        stores_masks: Every layer keeps a mask (context, context) of that type.

    Raises:
        ConfigError: The type is unknown, or int8, which has no gradients.
    """
    if _known(dtype) == "int8":
        raise ConfigError("int8 weights have no gradients; choose float32, bfloat16 or float16")
    parameters = count_parameters(config)
    numbers = 2 * (parameters.total if copies_head else parameters.unique)
    n_tables = {"none": 0, "once": len(config.rope), "every layer": config.n_layers}[rope_tables]
    numbers += n_tables * 2 * config.context_length * config.rotary_width
    numbers += config.n_layers * config.context_length**2 if stores_masks else 0
    return numbers * BYTES_PER_NUMBER[dtype]


def _known(dtype: str) -> str:
    if dtype not in BYTES_PER_NUMBER:
        raise ConfigError(f"dtype {dtype!r} is unknown; choose {', '.join(BYTES_PER_NUMBER)}")
    return dtype


def _seen(config: ModelConfig, kind: LayerType, n_tokens: int) -> int:
    """Tokens that a layer of that kind attends to, of the last `n_tokens`."""
    window = config.attention.window
    return n_tokens if kind != WINDOW or window is None else min(n_tokens, window)


def _value_width(config: ModelConfig) -> int:
    own = None if config.mla is None else config.mla.v_head_dim
    return config.attention.d_head if own is None else own


def _widths_per_seen_token(config: ModelConfig) -> int:
    """Numbers of a key and a value that all query heads of a layer work on."""
    heads = config.attention
    return heads.n_heads * (heads.d_head + _value_width(config))


def _numbers_cached(config: ModelConfig) -> int:
    """Numbers that a token leaves in one layer."""
    if config.mla is not None:
        return config.mla.latent_width(config.d_model) + config.mla.qk_rope_head_dim
    return 2 * config.attention.n_kv_heads * config.attention.d_head


def _weights_at_work(config: ModelConfig) -> int:
    """Weights of the matrices that one token is multiplied with."""
    shapes = [*attention_matrices(config), *_feed_forward_matrices(config, active_only=True)]
    in_block = sum(rows * columns for rows, columns in shapes)
    router = 0 if config.moe is None else config.moe.n_experts * config.d_model
    head = config.vocab_size * config.d_model
    return config.n_layers * (in_block + router) + head


def list_matrices(config: ModelConfig) -> Iterator[tuple[int, int]]:
    """(rows, columns) of every matrix that is stored, the embedding first; without routers."""
    yield config.vocab_size, config.d_model
    if config.positions == "learned":
        yield config.context_length, config.d_model
    for _ in config.layer_types:
        yield from attention_matrices(config)
        yield from _feed_forward_matrices(config, active_only=False)
    if not config.tied_head:
        yield config.vocab_size, config.d_model


def attention_matrices(config: ModelConfig) -> Iterator[tuple[int, int]]:
    """(rows, columns) of the matrices of one attention layer."""
    width, heads = config.d_model, config.attention
    q_width = heads.n_heads * heads.d_head
    if config.mla is None:
        kv_width = heads.n_kv_heads * heads.d_head
        yield from ((q_width, width), (kv_width, width), (kv_width, width), (width, q_width))
        return
    mla, latent = config.mla, config.mla.latent_width(width)
    if mla.q_lora_rank is None:
        yield q_width, width
    else:
        yield from ((mla.q_lora_rank, width), (q_width, mla.q_lora_rank))
    yield latent + mla.qk_rope_head_dim, width
    content = heads.d_head - mla.qk_rope_head_dim
    yield heads.n_heads * (content + _value_width(config)), latent
    yield width, heads.n_heads * _value_width(config)


def _feed_forward_matrices(config: ModelConfig, *, active_only: bool) -> Iterator[tuple[int, int]]:
    width, moe = config.d_model, config.moe
    d_ff = config.ffn.d_ff if moe is None else moe.d_ff
    times = 1 if moe is None else (moe.n_active if active_only else moe.n_experts)
    for _ in range(times):
        yield from [(d_ff, width)] * (2 if config.ffn.gated else 1)
        yield width, d_ff
