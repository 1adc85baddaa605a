"""The decoder: token ids in, a score for every possible next token out.

    ids ─► embed (+ position_embed) ─► block 0 ─► ... ─► block L-1 ─► final_norm ─► head ─► logits

One class for every family; parts are chosen by the values of `ModelConfig`. The model holds weights
and nothing else: cache, trace and the generator of dropout are arguments, so that one loaded model
serves many visitors at once.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from models.attention import soft_cap
from models.block import Block
from models.cache import KVCache
from models.config import ModelConfig
from models.dropout import dropout
from models.errors import ConfigError, ContextError
from models.forward_pass import ForwardPass, start_pass
from models.norms import build_norm
from models.positions import sinusoidal_positions
from models.quantize import Int8Embedding, multiply_embedding
from models.recompute import recompute_in_backward
from models.trace import Trace, tap


class Decoder(nn.Module):
    """A decoder-only transformer."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed: nn.Embedding | Int8Embedding
        self.embed = nn.Embedding(config.vocab_size, config.d_model)
        if config.positions == "learned":
            self.position_embed = nn.Embedding(config.context_length, config.d_model)
        self.blocks = nn.ModuleList(Block(config, layer=i) for i in range(config.n_layers))
        self.final_norm = build_norm(config.norm, config.d_model)
        if not config.tied_head:
            self.head = nn.Linear(config.d_model, config.vocab_size, bias=False)

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.final_norm.weight.device

    @property
    def dtype(self) -> torch.dtype:
        """Type that it computes in: of the weights, or float32 around those in 8 bits."""
        return self.final_norm.weight.dtype

    def forward(
        self,
        ids: Int[Tensor, "B T"],
        valid: Bool[Tensor, "B T"] | None = None,
        cache: KVCache | None = None,
        trace: Trace | None = None,
        *,
        generator: torch.Generator | None = None,
        last_only: bool = False,
        recompute: bool = False,
    ) -> Float[Tensor, "B out V"]:
        """Logits of the token after each given token.

        Args:
            ids: Token ids; with a cache, only the new ones.
            valid: False marks padding, on either side. Logits at padding mean nothing.
            cache: Earlier keys and values; grows by the new tokens.
            trace: What to record and edit.
            generator: Draws dropout at the configuration's rates; None (evaluation) drops nothing.
            last_only: Only compute the logits of the last column (B, 1, V); of a long prompt that
                saves T x V numbers. With padding on the right that column is padding.
            recompute: Keep no activations inside the blocks; the backward pass computes them again.

        Raises:
            ConfigError: No tokens, not two axes, or shapes that do not go together; a cache
                together with `recompute`.
            ContextError: Learned positions end before the text does, or the cache is full.
            TraceError: The trace names what this model does not have.
        """
        check_inputs(ids, valid, cache)
        if recompute and cache is not None:
            raise ConfigError("recompute would write to the cache twice; give one or the other")
        self._check_room(ids.shape[1], valid, cache)
        run = start_pass(
            self.config, ids, valid=valid, cache=cache, trace=trace, generator=generator
        )
        try:
            x = self._run_blocks(ids, run, recompute)
            if last_only:
                x = x[:, -1:]
            logits = tap(trace, "logits", self.unembed(x))
            if trace is not None:
                trace.check()
        except BaseException:  # an edit that raised, a wrong name: the tokens were not read
            if cache is not None and run.claim is not None:
                cache.give_back(run.claim)
            raise
        return logits

    def states(
        self,
        ids: Int[Tensor, "B T"],
        valid: Bool[Tensor, "B T"] | None = None,
        trace: Trace | None = None,
        *,
        generator: torch.Generator | None = None,
        recompute: bool = False,
    ) -> Float[Tensor, "B T D"]:
        """What the head would read: the stream after the last block and the final norm.

        Args:
            ids: Token ids.
            valid: False marks padding.
            trace: What to record and edit; names are checked by whoever reads the states.
            generator: Draws dropout; None drops nothing.
            recompute: Keep no activations inside the blocks.

        Raises:
            ConfigError: No tokens, not two axes, or shapes that do not go together.
            ContextError: Learned positions end before the text does.
        """
        check_inputs(ids, valid, None)
        self._check_room(ids.shape[1], valid, None)
        run = start_pass(
            self.config, ids, valid=valid, cache=None, trace=trace, generator=generator
        )
        return self.final_norm(self._run_blocks(ids, run, recompute))

    def _run_blocks(self, ids: Tensor, run: ForwardPass, recompute: bool) -> Tensor:
        x = self._embed(ids, run)
        for block in self.blocks:
            x = recompute_in_backward(block, x, run) if recompute else block(x, run)
        return x

    def continue_from(
        self, layer: int, x: Float[Tensor, "B T D"], *, trace: Trace | None = None
    ) -> Float[Tensor, "B T V"]:
        """Logits from the stream as it enters a block: what many passes share is computed once.

        Args:
            layer: The block to begin with.
            x: `blocks.<layer>.resid_pre` of whole texts, without padding.
            trace: What to record and edit from there on.
        """
        run = start_pass(
            self.config, x[..., 0], valid=None, cache=None, trace=trace, generator=None
        )
        for block in self.blocks[layer:]:
            x = block(x, run)
        return tap(trace, "logits", self.unembed(x))

    def unembed(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T V"]:
        """Read a residual stream as logits: final norm, then head."""
        x = self.final_norm(x)
        logits = multiply_embedding(x, self.embed) if self.config.tied_head else self.head(x)
        return soft_cap(logits, self.config.logit_cap)

    def _embed(self, ids: Tensor, run: ForwardPass) -> Tensor:
        x = self.embed(ids)
        if self.config.embedding_scale != 1.0:
            # rounded to the weights' type first, as the reference does: in bf16 that shows
            x = x * torch.tensor(self.config.embedding_scale, dtype=x.dtype, device=x.device)
        if self.config.positions == "learned":
            x = x + self.position_embed(run.positions)
        elif self.config.positions == "sinusoidal":
            x = x + sinusoidal_positions(run.positions, self.config.d_model).to(x.dtype)
        x = dropout(x, self.config.dropout.embedding, run.generator)
        return tap(run.trace, "embed", x)

    def _check_room(self, n_tokens: int, valid: Tensor | None, cache: KVCache | None) -> None:
        """Learned positions have a last row; refuse before the cache is touched."""
        if self.config.positions != "learned":
            return
        new = torch.tensor([n_tokens]) if valid is None else valid.sum(dim=1).cpu()
        longest = int((new + (0 if cache is None else cache.lengths)).max())
        if longest > self.config.context_length:
            raise ContextError(
                f"the text has {longest} tokens, the model reads at most "
                f"{self.config.context_length}; shorten it or choose a model with more context",
                code="context-too-long",
                asked=longest,
                limit=self.config.context_length,
            )


def check_inputs(ids: Tensor, valid: Tensor | None, cache: KVCache | None) -> None:
    """Refuse what would only fail, or answer wrongly, further inside.

    Raises:
        ConfigError: No tokens, not two axes, or shapes that do not go together.
    """
    if ids.ndim != 2:
        raise ConfigError(f"ids have shape {tuple(ids.shape)}; give (batch, tokens)")
    if ids.shape[1] == 0:
        raise ConfigError("there are no ids; give at least one token", code="text-empty")
    if valid is not None and (valid.shape != ids.shape or valid.dtype != torch.bool):
        raise ConfigError(
            f"valid is {tuple(valid.shape)} {valid.dtype}; give bool of the shape of ids, "
            f"{tuple(ids.shape)}"
        )
    if cache is not None and len(cache.lengths) != ids.shape[0]:
        raise ConfigError(
            f"the cache has {len(cache.lengths)} rows, ids have {ids.shape[0]}; make it with "
            f"batch={ids.shape[0]}"
        )
