"""The Transformer as it was first built: an encoder reads, a decoder writes.

    source ─► embed · √D + sinusoids ─► encoder block ─► ... ─► memory ────┐
                 sees all tokens                                           │ cross-attention
    target ─► embed · √D + sinusoids ─► decoder block ─► ... ─► head ─► logits
                 sees the tokens before it

Vaswani et al. 2017 (arXiv 1706.03762), section 3 and figure 1. Both stacks are made of the blocks
of `models/block.py` with the norm after each addition; the decoder's have cross-attention as a
third sublayer. As in the paper, and unlike in `torch.nn.Transformer`, no norm follows the stacks.

The decoder learns to say the next token, so the target goes in shifted by one: with a start token
in front, and without its last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from models.beam import BeamConfig, BeamResult, search
from models.block import Block
from models.cache import KVCache
from models.config import ModelConfig
from models.dropout import dropout
from models.encoder_decoder_config import EncoderDecoderConfig
from models.errors import ConfigError
from models.forward_pass import ForwardPass, Memory, start_pass
from models.positions import sinusoidal_positions
from models.trace import Trace, tap


class EncoderDecoder(nn.Module):
    """Two stacks; like `Decoder`, it holds weights and nothing of a run."""

    def __init__(self, config: EncoderDecoderConfig) -> None:
        super().__init__()
        self.config = config
        encoder, decoder = config.encoder, config.decoder
        self.source_embed = nn.Embedding(encoder.vocab_size, encoder.d_model)
        if not config.shared_embedding:
            self.target_embed = nn.Embedding(decoder.vocab_size, decoder.d_model)
        self.encoder_blocks = nn.ModuleList(
            Block(encoder, layer=i) for i in range(encoder.n_layers)
        )
        self.decoder_blocks = nn.ModuleList(
            Block(decoder, layer=i, reads_memory=True) for i in range(decoder.n_layers)
        )
        if not decoder.tied_head:
            self.head = nn.Linear(decoder.d_model, decoder.vocab_size, bias=False)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        weight: Tensor = self.source_embed.weight
        return weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Type of the weights."""
        weight: Tensor = self.source_embed.weight
        return weight.dtype

    def forward(
        self,
        source: Int[Tensor, "B S"],
        target: Int[Tensor, "rows T"],
        source_valid: Bool[Tensor, "B S"] | None = None,
        target_valid: Bool[Tensor, "rows T"] | None = None,
        trace: Trace | None = None,
        *,
        generator: torch.Generator | None = None,
    ) -> Float[Tensor, "rows T V"]:
        """Logits of the token after each token of the target.

        Args:
            source: What is read.
            target: What is written so far, beginning with a start token.
            source_valid: False marks padding, on either side.
            target_valid: The same of the target.
            trace: What to record and edit; names begin with `encoder.` or `decoder.`.
            generator: Draws dropout; None (evaluation) drops nothing.

        Raises:
            ConfigError: No tokens, or not two axes, or unequal numbers of rows.
            TraceError: The trace names what this model does not have.
        """
        if source.shape[0] != target.shape[0]:
            raise ConfigError(
                f"{source.shape[0]} sources and {target.shape[0]} targets were given; "
                "give one target for each source"
            )
        memory = self._encode(source, source_valid, trace, generator)
        logits = self._decode(target, memory, target_valid, None, trace, generator)
        if trace is not None:
            trace.check()
        return logits

    def encode(
        self,
        source: Int[Tensor, "B S"],
        valid: Bool[Tensor, "B S"] | None = None,
        trace: Trace | None = None,
    ) -> Memory:
        """Read the source once, for many calls of `decode`.

        Raises:
            ConfigError: No tokens, or not two axes.
            TraceError: The trace names what the encoder does not have.
        """
        memory = self._encode(source, valid, trace, None)
        if trace is not None:
            trace.check()
        keys_values = tuple(
            cast(Block, block).cross_attn.keys_and_values(memory.states)
            for block in self.decoder_blocks
        )
        return replace(memory, keys_values=keys_values)

    def decode(
        self,
        target: Int[Tensor, "B T"],
        memory: Memory,
        valid: Bool[Tensor, "B T"] | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
    ) -> Float[Tensor, "B T V"]:
        """Logits after each token of the target; with a cache (of config.decoder), the new ones.

        Raises:
            ConfigError: No tokens, or not two axes.
            ContextError: The cache is full.
            TraceError: The trace names what the decoder does not have.
        """
        logits = self._decode(target, memory, valid, cache, trace, None)
        if trace is not None:
            trace.check()
        return logits

    def _encode(
        self,
        source: Tensor,
        valid: Tensor | None,
        trace: Trace | None,
        generator: torch.Generator | None,
    ) -> Memory:
        config = self.config.encoder
        _check_ids("source", source)
        run = start_pass(config, source, valid=valid, cache=None, trace=trace, generator=generator)
        run = replace(run, prefix="encoder.", is_causal=False)
        x = self._embed(self.source_embed, source, config, run)
        for block in self.encoder_blocks:
            x = block(x, run)
        return Memory(states=x, valid=valid)

    def _decode(
        self,
        target: Tensor,
        memory: Memory,
        valid: Tensor | None,
        cache: KVCache | None,
        trace: Trace | None,
        generator: torch.Generator | None,
    ) -> Tensor:
        config = self.config.decoder
        _check_ids("target", target)
        run = start_pass(config, target, valid=valid, cache=cache, trace=trace, generator=generator)
        run = replace(run, prefix="decoder.", memory=memory)
        embed = self.source_embed if self.config.shared_embedding else self.target_embed
        x = self._embed(embed, target, config, run)
        for block in self.decoder_blocks:
            x = block(x, run)
        weight = embed.weight if config.tied_head else self.head.weight
        return tap(trace, "logits", functional.linear(x, weight))

    def _embed(
        self, embed: nn.Embedding, ids: Tensor, config: ModelConfig, run: ForwardPass
    ) -> Tensor:
        x = embed(ids) * config.embedding_scale
        x = x + sinusoidal_positions(run.positions, config.d_model).to(x.dtype)
        x = dropout(x, config.dropout.embedding, run.generator)
        return tap(run.trace, f"{run.prefix}embed", x)


def _check_ids(name: str, ids: Tensor) -> None:
    if ids.ndim != 2 or ids.shape[1] == 0:
        raise ConfigError(
            f"{name} of shape {tuple(ids.shape)} was given; give (batch, at least one token)",
            code="text-empty",
        )


def generate_target(
    model: EncoderDecoder,
    source: Sequence[int],
    *,
    start_id: int,
    stop_ids: Collection[int] = (),
    max_new_tokens: int = 64,
) -> Iterator[int]:
    """Write the target greedily: the most probable token, again and again.

    Args:
        model: Any encoder-decoder.
        source: What is read.
        start_id: The token that every target begins with; not yielded.
        stop_ids: Any of these ends the target; it is yielded as the last.
        max_new_tokens: At most so many.
    """
    memory, cache = _prepare(model, source, max_new_tokens)
    id_ = start_id
    for _ in range(max_new_tokens):
        with torch.inference_mode():
            row = torch.tensor([[id_]], device=model.device)
            id_ = int(model.decode(row, memory, cache=cache)[0, -1].argmax())
        yield id_
        if id_ in stop_ids:
            return


def search_target(
    model: EncoderDecoder,
    source: Sequence[int],
    config: BeamConfig | None = None,
    *,
    start_id: int,
    stop_ids: Collection[int] = (),
) -> BeamResult:
    """Search the best targets with beams; the paper used 4 and a penalty of 0.6 (section 6.1).

    Args:
        model: Any encoder-decoder.
        source: What is read.
        config: Width, length, penalty.
        start_id: The token that every target begins with; not part of the result.
        stop_ids: Any of these ends a target.
    """
    config = config or BeamConfig()
    memory, cache = _prepare(model, source, config.max_new_tokens)

    def advance(rows: Tensor, new: Tensor) -> Tensor:
        cache.select_rows(rows)
        with torch.inference_mode():
            there = memory.repeat_row(len(rows))
            return model.decode(new.to(model.device)[:, None], there, cache=cache)[:, -1]

    logits = advance(torch.zeros(1, dtype=torch.int64), torch.tensor([start_id]))
    return search(logits, advance, config, stop_ids=stop_ids, room=config.max_new_tokens)


def _prepare(
    model: EncoderDecoder, source: Sequence[int], max_new_tokens: int
) -> tuple[Memory, KVCache]:
    with torch.inference_mode():
        memory = model.encode(torch.tensor([list(source)], device=model.device))
    cache = KVCache(model.config.decoder, 1, max_new_tokens, dtype=model.dtype, device=model.device)
    return memory, cache
