"""Masks of every usual kind, and what a loaded model does under them.

    causal      k <= q
    window      k <= q and the last w keys (whether w counts the query itself is a choice: Hugging
                Face's `sliding_window` counts it, some papers count the keys besides it)
    mixed       n layers with the window, then one without, and so on (5 : 1 in Gemma 3,
                arXiv 2503.19786; 3 : 1 in Olmo 3)
    sinks       the window and the first s tokens (Xiao et al. 2023, arXiv 2309.17453)
    prefix      the first p tokens see each other both ways, the rest is causal
    documents   causal, but not across the ends of documents that were packed into one row
    padding     causal, and p padded tokens in front that nobody sees but themselves

True = may attend, as in `models/masks.py`. A query that may attend to nothing reads nothing: its
row of weights is 0. The mask takes the place of the model's own in every layer, through the tap
`blocks.L.attn.mask`; the weights stay as they were trained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from explorer.attention_lab.ablation import encode
from explorer.attention_maps import check_index, check_read
from explorer.errors import ConfigError
from explorer.tokens import labels_of_units, units_of

if TYPE_CHECKING:
    import torch

    from models.loading import LoadedModel

MaskKind = Literal[
    "causal", "window", "mixed", "sinks", "prefix", "documents", "padding", "painted"
]
MASK_KINDS = ("causal", "window", "mixed", "sinks", "prefix", "documents", "padding", "painted")
MOST_TOKENS = 48  # more cells could not be hit with a mouse
N_TOP = 8

Mask = NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class MaskSettings:
    """Which mask.

    Args:
        kind: One of `MASK_KINDS`.
        width: Keys that a query of a window sees.
        counts_query: Whether the query is one of them.
        ratio: Layers with a window for each one without, where kinds of layers are mixed.
        count: Sinks, tokens of the prefix, or padded tokens.
    """

    kind: MaskKind = field(default="causal", metadata={"choices": MASK_KINDS})
    width: int = field(default=4, metadata={"least": 1, "most": MOST_TOKENS, "step": 1})
    counts_query: bool = True
    ratio: int = field(default=5, metadata={"least": 1, "most": 7, "step": 1})
    count: int = field(default=1, metadata={"least": 1, "most": MOST_TOKENS, "step": 1})


@dataclass(frozen=True, kw_only=True)
class MaskedRun:
    """What a model says with its own mask, and with another.

    Args:
        labels: One for each token.
        pattern: (T, T), weights of the chosen head with the mask.
        pattern_before: The same with the model's own.
        tokens: The likeliest next tokens of both, together.
        before: Their probabilities with the model's own mask.
        after: With the other.
        divergence_nats: Kullback-Leibler divergence of the new distribution from the old one.
        blind: Tokens that may attend to nothing.
    """

    labels: tuple[str, ...]
    pattern: NDArray[np.float32]
    pattern_before: NDArray[np.float32]
    tokens: tuple[str, ...]
    before: tuple[float, ...]
    after: tuple[float, ...]
    divergence_nats: float
    blind: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class KeptBytes:
    """Cache of a text under masks.

    Args:
        layers: Bytes in each layer.
        own: Bytes in all layers with the model's own mask.
    """

    layers: tuple[int, ...]
    own: int


@dataclass(frozen=True, kw_only=True)
class MaskText:
    """A text to put masks on.

    Args:
        ids: Its tokens, at most `MOST_TOKENS`.
        labels: One for each.
        ends: Position of the last token of each line: lines are documents packed into one row.
        n_left_out: Tokens that were left out at the end.
    """

    ids: tuple[int, ...]
    labels: tuple[str, ...]
    ends: tuple[int, ...]
    n_left_out: int


def read_masked_text(loaded: LoadedModel, text: str) -> MaskText:
    """Cut a text into tokens, and into documents at its line ends.

    Raises:
        ConfigError: There is no text.
    """
    ids = encode(loaded, text, None)
    read = ids[:MOST_TOKENS]
    return MaskText(
        ids=tuple(read),
        labels=labels_of_units(units_of(loaded.tokenizer, read)),
        ends=find_document_ends(loaded, read),
        n_left_out=len(ids) - len(read),
    )


def find_document_ends(loaded: LoadedModel, ids: Sequence[int]) -> tuple[int, ...]:
    """Positions of tokens with a line end in them, and of the last token."""
    said = [loaded.tokenizer.decode([i]) for i in ids]
    ends = [i for i, piece in enumerate(said) if "\n" in piece]
    return tuple(dict.fromkeys([*ends, len(ids) - 1]))


def build_mask(settings: MaskSettings, n_tokens: int, ends: Sequence[int] = ()) -> Mask:
    """The mask of a layer (of one with a window, where kinds of layers are mixed), (T, T).

    Args:
        settings: Which.
        n_tokens: T.
        ends: Positions of the last token of each document, for `documents`.

    Raises:
        ConfigError: An unknown kind, or a painted one, which nobody but its painter knows.
    """
    query, key = np.arange(n_tokens)[:, None], np.arange(n_tokens)[None]
    causal = key <= query
    seen = settings.width if settings.counts_query else settings.width + 1
    window = causal & (key > query - seen)
    if settings.kind == "causal":
        return causal
    if settings.kind in ("window", "mixed"):
        return window
    if settings.kind == "sinks":
        return window | (causal & (key < settings.count))
    if settings.kind == "prefix":
        return causal | ((query < settings.count) & (key < settings.count))
    if settings.kind == "documents":
        number = np.searchsorted(np.asarray(sorted(ends)), np.arange(n_tokens))
        return causal & (number[:, None] == number[None])
    if settings.kind == "padding":
        return (causal & (key >= settings.count)) | (query == key)
    raise ConfigError(
        f"there is no mask {settings.kind!r} to build; choose {', '.join(MASK_KINDS[:-1])}",
        code="lab-mask-unknown",
        found=settings.kind,
    )


def masks_of_layers(settings: MaskSettings, mask: Mask, n_layers: int) -> tuple[Mask, ...]:
    """One mask a layer: the same in all, or every so often a causal one without a window."""
    if settings.kind != "mixed":
        return (mask,) * n_layers
    n, causal = settings.ratio + 1, np.tril(np.ones_like(mask))
    return tuple(causal if (layer + 1) % n == 0 else mask for layer in range(n_layers))


def parse_mask(rows: Sequence[str]) -> Mask:
    """Read a painted mask: one text a query, `1` where it may attend.

    Raises:
        ConfigError: It is not square, too large, or holds something else.
    """
    n = len(rows)
    fits = 0 < n <= MOST_TOKENS and all(len(row) == n and set(row) <= {"0", "1"} for row in rows)
    if not fits:
        raise ConfigError(
            f"a mask is 1 to {MOST_TOKENS} rows of as many 0 and 1, not {n} rows; read the text "
            "again and paint over the mask that is shown",
            code="lab-mask-shape",
            rows=n,
            most=MOST_TOKENS,
        )
    return np.array([[cell == "1" for cell in row] for row in rows])


def write_mask(mask: Mask) -> list[str]:
    """The mask as texts, for the page."""
    return ["".join("1" if cell else "0" for cell in row) for row in mask]


def compute_reach(masks: Sequence[Mask]) -> tuple[int, ...]:
    """After each layer, how many tokens the last one has heard of, through any path."""
    heard = np.eye(len(masks[0]), dtype=bool)
    counts = []
    for mask in masks:
        heard = (mask.astype(np.int64) @ heard.astype(np.int64)) > 0
        heard |= np.eye(len(mask), dtype=bool)  # the residual stream keeps what was there
        counts.append(int(heard[-1].sum()))
    return tuple(counts)


def count_kept(masks: Sequence[Mask]) -> tuple[int, ...]:
    """In each layer, how many keys a cache keeps after the last token: those that it sees."""
    return tuple(int(mask[-1].sum()) for mask in masks)


def count_kept_bytes(loaded: LoadedModel, masks: Sequence[Mask]) -> KeptBytes:
    """Bytes of those keys and their values, in the number format of the model."""
    from models.costs import count_cache_bytes

    dtype = str(loaded.model.dtype).removeprefix("torch.")
    of_token = count_cache_bytes(loaded.config, 1, dtype).total // loaded.config.n_layers
    return KeptBytes(
        layers=tuple(of_token * kept for kept in count_kept(masks)),
        own=count_cache_bytes(loaded.config, len(masks[0]), dtype).total,
    )


def run_masked(
    loaded: LoadedModel,
    ids: Sequence[int],
    labels: Sequence[str],
    masks: Sequence[Mask],
    *,
    layer: int,
    head: int,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> MaskedRun:
    """Read a text twice: with the model's own mask, and with these.

    Args:
        loaded: Any decoder.
        ids: The text, T tokens.
        labels: One for each.
        masks: One (T, T) for each layer.
        layer: The layer whose weights are wanted.
        head: Their head.
        turn: Entered for each forward pass.

    Raises:
        ConfigError: No such layer or head.
        WeightError: The model computes NaN; says in which layer first.
    """
    import torch

    from models.trace import Trace

    check_index("layer", layer, loaded.config.n_layers)
    check_index("head", head, loaded.config.attention.n_heads)
    wanted = f"blocks.{layer}.attn.pattern"
    row = torch.tensor([list(ids)], device=loaded.model.device)

    def read(trace: Trace) -> tuple[torch.Tensor, NDArray[np.float32]]:
        with turn(), torch.inference_mode():
            logits = loaded.model(row, trace=trace, last_only=True)[0, -1].float()
        return logits.log_softmax(-1).cpu(), trace[wanted][0, head].float().cpu().numpy()

    before, pattern_before = read(Trace(record=(wanted,)))
    check_read(loaded, ids, before, turn=turn)
    after, pattern = read(Trace(record=(wanted,), edits=_mask_edits(masks)))
    best = torch.cat([x.topk(min(N_TOP, len(x))).indices for x in (before, after)])
    top = list(dict.fromkeys(best.tolist()))
    blind = sorted({int(i) for mask in masks for i in np.flatnonzero(~mask.any(axis=1))})
    return MaskedRun(
        labels=tuple(labels),
        pattern=pattern,
        pattern_before=pattern_before,
        tokens=tuple(loaded.tokenizer.decode([i]) for i in top),
        before=tuple(before[top].exp().tolist()),
        after=tuple(after[top].exp().tolist()),
        divergence_nats=float((before.exp() * (before - after)).sum()),
        blind=tuple(blind),
    )


def _mask_edits(masks: Sequence[Mask]) -> dict[str, Callable[[torch.Tensor], torch.Tensor]]:
    import torch

    def put(mask: Mask) -> Callable[[torch.Tensor], torch.Tensor]:
        painted = torch.from_numpy(np.ascontiguousarray(mask))
        return lambda own: painted.to(own.device).expand_as(own).clone()

    return {f"blocks.{layer}.attn.mask": put(mask) for layer, mask in enumerate(masks)}
