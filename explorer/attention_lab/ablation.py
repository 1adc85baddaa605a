"""Heads and layers switched off or scaled: what changes, and which heads matter most.

    loss        mean of -ln p(token t+1 | tokens to t) over the text, in nats
    effect      loss with the head off - loss of the model as it is

The scan switches off one head after the other (Michel et al. 2019, arXiv 1905.10650, section 3.2).
What happens below the layer of a head does not change, so the pass begins there, and all heads of a
layer are one batch: 270 heads of SmolLM2 at 64 tokens cost as much as 135 passes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.attention_maps import check_read
from explorer.errors import ConfigError, Stopped

if TYPE_CHECKING:
    import torch

    from models.interventions import Intervention, Interventions
    from models.loading import LoadedModel
    from models.trace import Trace

Turn = Callable[[], AbstractContextManager[object]]

MOST_TOKENS = 256
SCAN_TOKENS = 64
N_TOP = 8
NEW_TOKENS = 24
LARGEST_FACTOR = 10.0
_SEPARATORS = re.compile("[,;\n\uff0c\uff1b\u3001\u3000]")


@dataclass(frozen=True, kw_only=True)
class ChangeSpec:
    """One part that is scaled, as a page or a program names it.

    Args:
        layer: From 0.
        part: `attn`, `ffn`, or the number of a head.
        factor: 0 switches it off.
    """

    layer: int
    part: str
    factor: float


@dataclass(frozen=True, kw_only=True)
class AblationResult:
    """A text with the model as it is, and with parts changed.

    Args:
        loss: Mean over the text's tokens, in nats; NaN for a single token.
        loss_changed: The same with the changes.
        tokens: The likeliest next tokens of both, together.
        before: Their probabilities.
        after: With the changes.
        divergence_nats: Kullback-Leibler divergence of the changed distribution from the other.
        written: What the model writes next, greedily.
        written_changed: With the changes.
        token_losses: (2, T - 1), for each token but the first: as it is, with the changes.
        labels: Of those tokens.
    """

    loss: float
    loss_changed: float
    tokens: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    divergence_nats: float
    written: str
    written_changed: str
    token_losses: NDArray[np.float64]
    labels: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class HeadScan:
    """Effect of every head that was tried so far.

    Args:
        effects: (layers, heads), in nats; NaN where not tried yet.
        loss: Of the model as it is.
        done: Heads that were tried.
    """

    effects: NDArray[np.float64]
    loss: float
    done: int

    @property
    def total(self) -> int:
        """Heads of the model."""
        return int(self.effects.size)


def parse_changes(text: str) -> tuple[ChangeSpec, ...]:
    """Read changes as they are typed: `3.1` switches head 1 of layer 3 off, `5.ffn x 0.5` halves.

    A part is the number of a head, `attn` or `ffn`; without a factor it is 0.

    Raises:
        ConfigError: An entry that cannot be read, or a factor beyond its range.
    """
    return tuple(_parse_change(entry) for entry in split_changes(text))


def split_changes(text: str) -> list[str]:
    """The entries of a list of changes.

    Between them stand commas, semicolons, line ends, and what a Chinese keyboard gives for those:
    the wide space is one, unless it stands before or after an x.
    """
    with_factors = re.sub(r"[ \u3000]+([x\u00d7])[ \u3000]+", r" \1 ", text)
    return [entry.strip() for entry in _SEPARATORS.split(with_factors) if entry.strip()]


def _parse_change(entry: str) -> ChangeSpec:
    place, _, factor = entry.replace("\u00d7", "x").partition(" x ")
    layer, _, part = place.strip().lower().removeprefix("l").partition(".")
    part = part.strip().removeprefix("h")
    try:
        change = ChangeSpec(
            layer=int(layer), part=part, factor=float(factor) if factor.strip() else 0.0
        )
        if part not in ("attn", "ffn"):
            int(part)
    except ValueError:
        raise ConfigError(
            f"{entry[:40]!r} is no change; write 3.1 for head 1 of layer 3, 3.attn or 3.ffn for a "
            "sublayer, and after it x 0.5 to halve it",
            code="lab-change-text",
            found=entry[:40],
        ) from None
    if not abs(change.factor) <= LARGEST_FACTOR:
        raise ConfigError(
            f"a factor of {change.factor} is not possible; choose -{LARGEST_FACTOR:g} to "
            f"{LARGEST_FACTOR:g}",
            code="lab-change-factor",
            found=change.factor,
            most=LARGEST_FACTOR,
        )
    return change


def build_interventions(changes: Sequence[ChangeSpec]) -> Interventions:
    """Turn named changes into those of a forward pass."""
    from models.interventions import HeadScale, Interventions, SublayerScale

    def build(change: ChangeSpec) -> Intervention:
        if change.part == "attn":
            return SublayerScale(layer=change.layer, sublayer="attn", factor=change.factor)
        if change.part == "ffn":
            return SublayerScale(layer=change.layer, sublayer="ffn", factor=change.factor)
        return HeadScale(layer=change.layer, head=int(change.part), factor=change.factor)

    return Interventions(changes=tuple(build(change) for change in changes))


def compute_ablation(
    loaded: LoadedModel,
    text: str,
    changes: Sequence[ChangeSpec],
    *,
    n_new: int = NEW_TOKENS,
    turn: Turn = nullcontext,
) -> AblationResult:
    """Read and continue a text with and without changes.

    Args:
        loaded: Any decoder with its tokenizer.
        text: What to read; longer than `MOST_TOKENS` is refused.
        changes: Parts that are scaled.
        n_new: Tokens to write after it, greedily; 0 writes none.
        turn: Entered for each forward pass.

    Raises:
        ConfigError: No text, or a layer or head that the model has not.
        ContextError: The text is too long.
        WeightError: The model computes NaN; says in which layer first.
    """
    import torch

    from models.interventions import Interventions
    from models.trace import Trace

    ids = encode(loaded, text, MOST_TOKENS)
    chosen = build_interventions(changes)
    chosen.check(loaded.config)
    row = torch.tensor([ids], device=loaded.model.device)
    with turn(), torch.inference_mode():
        plain = loaded.model(row)[0].float().log_softmax(-1)
    check_read(loaded, ids, plain, turn=turn)
    with turn(), torch.inference_mode():
        edited = loaded.model(row, trace=Trace(edits=chosen.edits()))[0].float().log_softmax(-1)
    losses = np.stack([_token_losses(x, ids) for x in (plain, edited)])
    top = _top_of_both(plain[-1], edited[-1])
    before, after = plain[-1], edited[-1]
    return AblationResult(
        loss=_mean(losses[0]),
        loss_changed=_mean(losses[1]),
        tokens=tuple(loaded.tokenizer.decode([i]) for i in top),
        before=tuple(before[top].exp().tolist()),
        after=tuple(after[top].exp().tolist()),
        divergence_nats=float((before.exp() * (before - after)).sum()),
        written=_write(loaded, ids, n_new, turn, Interventions()),
        written_changed=_write(loaded, ids, n_new, turn, chosen),
        token_losses=losses,
        labels=tuple(loaded.tokenizer.decode([i]) for i in ids[1:]),
    )


def scan_heads(
    loaded: LoadedModel,
    text: str,
    *,
    most_tokens: int = SCAN_TOKENS,
    turn: Turn = nullcontext,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[HeadScan]:
    """Switch off one head after the other; yields after each layer, and once before the first.

    Args:
        loaded: Any decoder with its tokenizer.
        text: At least two tokens; what is beyond `most_tokens` is not read.
        most_tokens: Tokens to read.
        turn: Entered for each forward pass.
        stopped: Asked before each layer.

    Yields:
        All effects so far.

    Raises:
        ConfigError: Fewer than two tokens.
        WeightError: The model computes NaN; says in which layer first.
        Stopped: `stopped()` became true.
    """
    import torch

    from models.trace import Trace

    ids = encode(loaded, text, None)[:most_tokens]
    if len(ids) < 2:
        raise ConfigError(
            "one token has no next one whose loss could change; type a longer text",
            code="lab-text-short",
        )
    n_layers, n_heads = loaded.config.n_layers, loaded.config.attention.n_heads
    trace = Trace(record=("blocks.*.resid_pre",))
    row = torch.tensor([ids], device=loaded.model.device)
    with turn(), torch.inference_mode():
        plain = loaded.model(row, trace=trace)[0].float().log_softmax(-1)
    check_read(loaded, ids, plain, turn=turn)
    loss = _mean(_token_losses(plain, ids))
    effects = np.full((n_layers, n_heads), np.nan)
    yield HeadScan(effects=effects.copy(), loss=loss, done=0)
    for layer in range(n_layers):
        if stopped():
            raise Stopped("the scan was stopped")
        with turn(), torch.inference_mode():
            losses = _losses_without_each_head(loaded, layer, trace, ids)
        effects[layer] = losses - loss
        yield HeadScan(effects=effects.copy(), loss=loss, done=(layer + 1) * n_heads)


def _losses_without_each_head(
    loaded: LoadedModel, layer: int, trace: Trace, ids: Sequence[int]
) -> NDArray[np.float64]:
    """Row h of the batch is the text with head h of the layer off."""
    from models.trace import Trace

    n_heads = loaded.config.attention.n_heads

    def switch_off(z: torch.Tensor) -> torch.Tensor:
        for head in range(n_heads):
            z[head, head] = 0
        return z

    stream = trace[f"blocks.{layer}.resid_pre"].expand(n_heads, -1, -1).contiguous()
    edits = Trace(edits={f"blocks.{layer}.attn.z": switch_off})
    logits = loaded.model.continue_from(layer, stream, trace=edits).float()
    return np.array([_mean(_token_losses(row.log_softmax(-1), ids)) for row in logits])


def encode(loaded: LoadedModel, text: str, most_tokens: int | None) -> list[int]:
    """Tokens of a text, with the model's own token in front where it was trained with one.

    Raises:
        ConfigError: There is no text.
        ContextError: It has more tokens than asked for.
    """
    from explorer.errors import ContextError

    tokenizer = loaded.tokenizer
    ids = list(tokenizer.encode(text, special=False))
    if not ids:
        raise ConfigError("there is no text; type some", code="text-empty")
    if tokenizer.adds_bos and tokenizer.bos_id is not None:
        ids = [tokenizer.bos_id, *ids]
    limit = loaded.config.context_length
    if most_tokens is not None and len(ids) > min(most_tokens, limit):
        raise ContextError(
            f"the text has {len(ids)} tokens, and {min(most_tokens, limit)} are read here; take a "
            "part of it",
            code="lab-text-long",
            asked=len(ids),
            limit=min(most_tokens, limit),
        )
    return ids[:limit]


def _token_losses(log_probabilities: torch.Tensor, ids: Sequence[int]) -> NDArray[np.float64]:
    """Loss of each token but the first, in nats."""
    import torch

    targets = torch.tensor(ids[1:], device=log_probabilities.device)
    found = log_probabilities[:-1].gather(1, targets[:, None])[:, 0]
    return -found.double().cpu().numpy()


def _mean(losses: NDArray[np.float64]) -> float:
    return float(losses.mean()) if len(losses) else math.nan


def _top_of_both(first: torch.Tensor, second: torch.Tensor) -> list[int]:
    n = min(N_TOP, first.shape[-1])
    ids = [*first.topk(n).indices.tolist(), *second.topk(n).indices.tolist()]
    return list(dict.fromkeys(ids))


def _write(
    loaded: LoadedModel, ids: Sequence[int], n_new: int, turn: Turn, changes: Interventions
) -> str:
    from models.generation import generate
    from models.sampling import SamplingConfig

    if n_new < 1 or len(ids) >= loaded.config.context_length:
        return ""
    stream = generate(
        loaded.model,
        ids,
        max_new_tokens=n_new,
        sampling=SamplingConfig(temperature=0.0),
        turn=turn,
        changes=changes,
        n_alternatives=1,
    )
    return loaded.tokenizer.decode([token.id for token in stream])
