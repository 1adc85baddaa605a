"""What a model costs, from its configuration: parameters, operations, bytes, memory of training.

Training with AdamW keeps, for each parameter, the weight, its gradient and two moments in float32
(16 bytes; Rajbhandari et al. 2020, arXiv 1910.02054, section 3.1, without the copy that mixed
precision adds). Beside them stand the activations that the backward pass reads again. Counted here
are, for each token and layer, the inputs of every product and nonlinearity, in numbers:

    norms             2 D each, its input and what goes on          attention   (H + 2 K) d + H d
    feed-forward      F (plain: before and after the activation 2 F; gated: 4 F)
    stream            2 D                                           head        D + 2 V

without scores, which the fused kernel does not keep. It is an estimate, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from models.config import ModelConfig
from models.costs import (
    attention_matrices,
    count_cache_bytes,
    count_int8_bytes,
    count_operations,
    count_training_bytes,
    count_weight_bytes,
    list_matrices,
)
from models.counting import count_parameters
from models.encoder_decoder_config import EncoderDecoderConfig, count_encoder_decoder

FORMATS = ("float32", "bfloat16", "int8")
ADAMW_BYTES = 8  # two moments of float32
FLOAT32_BYTES, BFLOAT16_BYTES = 4, 2


@dataclass(frozen=True, kw_only=True)
class ArchitectureCosts:
    """What one configuration costs.

    Args:
        parameters: Numbers that are stored.
        with_copies: The same with a tied head as a matrix of its own.
        active_operations: Of one token through all matrices; of two stacks, one in each.
        attention_operations: Of one token that sees `n_tokens`.
        weight_bytes: Number format -> bytes.
        cache_bytes_per_token: Keys and values of one more token in bfloat16, windows not yet full.
        cache_bytes: Of `n_tokens`.
        gradient_bytes: Weights and gradients in float32.
        optimiser_bytes: Two moments.
        activation_bytes: Estimate, for the batch.
        kept_bytes: Weights and gradients with a mask and RoPE tables kept in every layer, as some
            teaching code does; what today's code needs is `gradient_bytes`.
    """

    parameters: int
    with_copies: int
    active_operations: int
    attention_operations: int
    weight_bytes: dict[str, int]
    cache_bytes_per_token: int
    cache_bytes: int
    gradient_bytes: int
    optimiser_bytes: int
    activation_bytes: int
    kept_bytes: int

    @property
    def training_bytes(self) -> int:
        """Weights, gradients, moments and activations."""
        return self.gradient_bytes + self.optimiser_bytes + self.activation_bytes


def compute_costs(config: ModelConfig, n_tokens: int, batch: int) -> ArchitectureCosts:
    """Count what a configuration costs; nothing is allocated.

    Args:
        config: The model.
        n_tokens: Length of a text.
        batch: Texts at once in training.
    """
    count = count_parameters(config)
    operations = count_operations(config, n_tokens)
    cache = count_cache_bytes(config, n_tokens, "bfloat16")
    return ArchitectureCosts(
        parameters=count.unique,
        with_copies=count.total,
        active_operations=operations.matrices,
        attention_operations=operations.attention,
        weight_bytes={name: count_weight_bytes(config, name) for name in FORMATS},
        cache_bytes_per_token=sum(cache.per_token.values()),
        cache_bytes=cache.total,
        gradient_bytes=count_training_bytes(config, "float32"),
        optimiser_bytes=count.unique * ADAMW_BYTES,
        activation_bytes=batch * n_tokens * count_activations(config) * FLOAT32_BYTES,
        kept_bytes=count_training_bytes(
            config, "float32", rope_tables="every layer", stores_masks=True
        ),
    )


def compute_any_costs(
    config: ModelConfig | EncoderDecoderConfig, n_tokens: int, batch: int
) -> ArchitectureCosts:
    """Count what a decoder or an encoder-decoder costs; see the two below.

    Args:
        config: The model.
        n_tokens: Length of a text.
        batch: Texts at once in training.
    """
    if isinstance(config, EncoderDecoderConfig):
        return compute_both_costs(config, n_tokens, batch)
    return compute_costs(config, n_tokens, batch)


def compute_both_costs(
    config: EncoderDecoderConfig, n_tokens: int, batch: int
) -> ArchitectureCosts:
    """Count what two stacks cost, for a source and a target of equal length.

    A token stands for one of each: one of the source goes through the encoder and is made into keys
    and values for every block of the decoder, one of the target goes through the decoder.

    Args:
        config: Both stacks.
        n_tokens: Length of the source, and of the target.
        batch: Pairs at once in training.
    """
    encoder, decoder = config.encoder, config.decoder
    count, unique = count_encoder_decoder(config), count_encoder_decoder(config).unique
    reads = count_operations(encoder, n_tokens)
    writes = count_operations(decoder, n_tokens)
    cross = list(attention_matrices(decoder)) * decoder.n_layers
    head = 2 * encoder.vocab_size * encoder.d_model  # which the encoder has not
    cache = count_cache_bytes(decoder, n_tokens, "bfloat16")
    matrices = [*_without_embedding(config), *list_matrices(decoder), *cross]
    numbers = count_activations(encoder) - encoder.d_model - 2 * encoder.vocab_size
    numbers += count_activations(decoder)
    numbers += decoder.n_layers * (2 * decoder.d_model + _attention(decoder))
    masks = decoder.n_layers * decoder.context_length**2
    return ArchitectureCosts(
        parameters=unique,
        with_copies=count.total,
        active_operations=reads.matrices - head + writes.matrices + 2 * _numbers_of(cross),
        attention_operations=reads.attention + 2 * writes.attention,  # itself, and the source
        weight_bytes={
            "float32": unique * FLOAT32_BYTES,
            "bfloat16": unique * BFLOAT16_BYTES,
            "int8": count_int8_bytes(unique, matrices),
        },
        cache_bytes_per_token=sum(cache.per_token.values()),
        cache_bytes=2 * cache.total,  # of the target, and those that the source is read by
        gradient_bytes=2 * unique * FLOAT32_BYTES,
        optimiser_bytes=unique * ADAMW_BYTES,
        activation_bytes=batch * n_tokens * numbers * FLOAT32_BYTES,
        kept_bytes=(2 * unique + masks) * FLOAT32_BYTES,
    )


def _without_embedding(config: EncoderDecoderConfig) -> list[tuple[int, int]]:
    """Matrices of the encoder that the decoder does not share."""
    embedding, *others = list_matrices(replace(config.encoder, tied_head=True))
    return others if config.shared_embedding else [embedding, *others]


def _numbers_of(matrices: list[tuple[int, int]]) -> int:
    return sum(rows * columns for rows, columns in matrices)


def count_activations(config: ModelConfig) -> int:
    """Numbers that a token leaves for the backward pass, by the rule above."""
    width = config.d_model
    n_norms = {"pre": 2, "post_sublayer": 2, "sandwich": 4, "post_residual": 2}
    norms = 0 if config.norm.kind == "none" else 2 * width * n_norms[config.norm_position]
    in_block = norms + 2 * width + _attention(config) + _feed_forward(config)
    return config.n_layers * in_block + width + 2 * config.vocab_size


def _attention(config: ModelConfig) -> int:
    heads = config.attention
    return (2 * heads.n_heads + 2 * heads.n_kv_heads) * heads.d_head


def _feed_forward(config: ModelConfig) -> int:
    times = 4 if config.ffn.gated else 2
    if config.moe is None:
        return times * config.ffn.d_ff
    return times * config.moe.d_ff * config.moe.n_active + config.moe.n_experts
