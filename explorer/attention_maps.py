"""Which earlier tokens each token reads from, in every head of a loaded model.

One pass through the fast kernel records queries and keys of all layers; the weights of a layer,

    pattern = softmax(q kᵀ · scale, where the mask allows)          (heads, T, T)

are computed from them when that layer is looked at, by the very functions that the model's own
eager kernel uses. All weights of SmolLM2 at 512 tokens would take 283 MB; its queries and keys
take 47.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from explorer.errors import ConfigError, WeightError
from explorer.tokens import TokenUnit, labels_of_units, units_of

if TYPE_CHECKING:
    from torch import Tensor

    from models.config import AttentionConfig, LayerType
    from models.loading import LoadedModel

MOST_TOKENS = 1024  # 1 MB of cells; a page draws them in 40 ms
THUMBNAIL_SIZE = 64  # pixels a side; longer texts are max-pooled to it

Patterns = NDArray[np.float32]


@dataclass(frozen=True)
class AttentionMaps:
    """Attention of one text in all layers of one model.

    Args:
        model_name: Which model.
        ids: The tokens that were read.
        labels: One readable label for each token.
        units: The same text in units that people see as one character or word.
        n_left_out: Tokens of the text that were not read, before or after.
        first: Place in the text of the first token that was read.
        queries: For each layer (H, T, d), after rotation.
        keys: For each layer (K, T, d), after rotation.
        values: For each layer (K, T, e).
        attention: Scale, soft cap and window of the model's attention.
        layer_types: For each layer `full` or `window`.
    """

    model_name: str
    ids: tuple[int, ...]
    labels: tuple[str, ...]
    units: tuple[TokenUnit, ...]
    n_left_out: int
    first: int
    queries: tuple[NDArray[np.float32], ...]
    keys: tuple[NDArray[np.float32], ...]
    values: tuple[NDArray[np.float32], ...]
    attention: AttentionConfig
    layer_types: tuple[LayerType, ...]

    @property
    def n_layers(self) -> int:
        """Number of layers."""
        return len(self.queries)

    @property
    def n_heads(self) -> int:
        """Query heads a layer."""
        return int(self.queries[0].shape[0])

    @property
    def n_kv_heads(self) -> int:
        """Key/value heads a layer; each is shared by n_heads / n_kv_heads query heads."""
        return int(self.keys[0].shape[0])

    def window_of(self, layer: int) -> int | None:
        """How many keys a query of this layer sees, itself counted; None sees all."""
        return self.attention.window if self.layer_types[layer] == "window" else None

    @property
    def thumbnail_side(self) -> int:
        """Cells a side of the maps' small pictures."""
        block = -(-len(self.ids) // THUMBNAIL_SIZE)
        return -(-len(self.ids) // block)

    @property
    def d_head(self) -> int:
        """Width of a head."""
        return int(self.queries[0].shape[2])


@dataclass(frozen=True)
class KeyWeight:
    """One key that a query reads.

    Args:
        position: Of the key, from 0.
        label: Its token.
        weight: Attention weight, 0 to 1.
    """

    position: int
    label: str
    weight: float


def compute_attention(
    loaded: LoadedModel,
    text: str,
    *,
    special: bool = False,
    most_tokens: int = MOST_TOKENS,
    first: int = 0,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AttentionMaps:
    """Read a text once and keep the queries and keys of every layer.

    Args:
        loaded: Any model.
        text: What to read; a model that was trained with a token in front of each text gets it.
        special: Whether special tokens typed in the text are parsed.
        most_tokens: Longer texts are cut, and `n_left_out` says by how much.
        first: Of a longer text, the token that the window begins with; moved so that it is full.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        ConfigError: The text is empty.
        TokenizerError: The model has no tokenizer.
    """
    tokenizer = loaded.tokenizer
    ids = tokenizer.encode(text, special=special)
    if not ids:
        raise ConfigError("there is no text; type some", code="text-empty")
    if tokenizer.adds_bos and tokenizer.bos_id is not None:
        ids = [tokenizer.bos_id, *ids]
    most_tokens = min(most_tokens, loaded.config.context_length)
    first = min(max(first, 0), max(0, len(ids) - most_tokens))
    read = ids[first : first + most_tokens]
    return read_ids(loaded, read, n_left_out=len(ids) - len(read), first=first, turn=turn)


def read_ids(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    n_left_out: int = 0,
    first: int = 0,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> AttentionMaps:
    """Read tokens once and keep the queries, keys and values of every layer.

    Args:
        loaded: Any model.
        ids: The tokens, as many as the model can read.
        n_left_out: Tokens of the text that were left out.
        first: Place in the text of the first of `ids`.
        turn: Entered for the forward pass; where several share a device, it makes them wait.

    Raises:
        WeightError: The model computed NaN or infinity; says which layer first.
        TokenizerError: The model has no tokenizer.
    """
    import torch

    from models.trace import Trace

    trace = Trace(record=("blocks.*.attn.q", "blocks.*.attn.k", "blocks.*.attn.v"))
    row = torch.tensor([list(ids)], device=loaded.model.device)
    with turn(), torch.inference_mode():
        loaded.model(row, trace=trace, last_only=True)
    layers = range(loaded.config.n_layers)

    def recorded(name: str) -> tuple[NDArray[np.float32], ...]:
        return tuple(trace[f"blocks.{i}.attn.{name}"][0].float().cpu().numpy() for i in layers)

    queries, keys, values = recorded("q"), recorded("k"), recorded("v")
    if not all(np.isfinite(part).all() for part in (*queries, *keys, *values)):
        find_broken_layer(loaded, ids, turn=turn)
    units = units_of(loaded.tokenizer, ids)
    return AttentionMaps(
        model_name=loaded.info.name,
        ids=tuple(ids),
        labels=labels_of_units(units),
        units=units,
        n_left_out=n_left_out,
        first=first,
        queries=queries,
        keys=keys,
        values=values,
        attention=loaded.config.attention,
        layer_types=loaded.config.layer_types,
    )


def check_read(
    loaded: LoadedModel,
    ids: Sequence[int],
    log_probabilities: Tensor,
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Refuse probabilities that are no numbers.

    Args:
        loaded: The model that gave them.
        ids: The tokens that it read.
        log_probabilities: Of any shape.
        turn: Entered for the pass that looks for the layer.

    Raises:
        WeightError: Some are NaN; says where the numbers went wrong first.
    """
    if log_probabilities.isnan().any():
        find_broken_layer(loaded, ids, turn=turn)


def find_broken_layer(
    loaded: LoadedModel,
    ids: Sequence[int],
    *,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> None:
    """Say in which layer the numbers went wrong: all later ones only follow.

    Args:
        loaded: A model whose numbers went wrong.
        ids: The tokens with which they did.
        turn: Entered for the forward pass.

    Raises:
        WeightError: Always.
    """
    import torch

    from models.trace import Trace

    parts = ("attn.q", "attn.k", "attn.v", "attn_out", "ffn_out")
    trace = Trace(record=("blocks.0.resid_pre", *(f"blocks.*.{part}" for part in parts)))
    row = torch.tensor([list(ids)], device=loaded.model.device)
    with turn(), torch.inference_mode():
        loaded.model(row, trace=trace, last_only=True)
    places = [("embedding", 0, "blocks.0.resid_pre")]
    for layer in range(loaded.config.n_layers):
        places += [("layer", layer, f"blocks.{layer}.{part}") for part in parts]
    broken = (p for p in places if not trace[p[2]].isfinite().all())
    where, layer, _ = next(broken, ("head", 0, ""))
    said = {
        "embedding": "the embedding has",
        "layer": f"layer {layer} computes",
        "head": "the last norm or the head computes",
    }
    raise WeightError(
        f"{said[where]} NaN or infinity, and all after it follow; load the model again, or take a "
        "checkpoint from before its training diverged",
        code="lab-not-finite" if where == "layer" else f"lab-not-finite-{where}",
        layer=layer,
    )


def compute_patterns(maps: AttentionMaps, layer: int) -> Patterns:
    """Attention weights of all heads of a layer, (H, T, T) float32; each row sums to 1.

    Raises:
        ConfigError: The model has no such layer.
    """
    import torch

    from models.attention import attention_pattern, attention_scores
    from models.masks import causal_mask, mutual_mask

    check_index("layer", layer, maps.n_layers)
    queries = torch.from_numpy(maps.queries[layer])[None]
    keys = torch.from_numpy(maps.keys[layer])[None]
    with torch.inference_mode():
        scores = attention_scores(queries, keys, maps.attention)
        n_tokens, device = scores.shape[-1], scores.device
        if maps.attention.causal:
            mask = causal_mask(n_tokens, None, device, maps.window_of(layer))
        else:
            mask = mutual_mask(n_tokens, None, device)
        return attention_pattern(scores, mask)[0].numpy()


def compute_scores(maps: AttentionMaps, layer: int, head: int, query: int) -> NDArray[np.float32]:
    """Scaled (and soft-capped) products of one query with the keys up to itself; (query + 1,).

    Without a causal mask, with all keys; (T,). A window is not applied: softmax leaves out the keys
    before it.

    Raises:
        ConfigError: No such layer, head or token.
    """
    import torch

    from models.attention import attention_scores

    check_index("layer", layer, maps.n_layers)
    check_index("head", head, maps.n_heads)
    check_index("token", query, len(maps.ids))
    group = maps.n_heads // maps.n_kv_heads
    n_keys = query + 1 if maps.attention.causal else len(maps.ids)
    keys = torch.from_numpy(maps.keys[layer][head // group, :n_keys])[None, None]
    queries = torch.from_numpy(maps.queries[layer][head, query])[None, None, None]
    one_head = replace(maps.attention, n_heads=1, n_kv_heads=1)
    return attention_scores(queries, keys, one_head)[0, 0, 0].numpy()


def compute_thumbnails(patterns: Patterns, size: int = THUMBNAIL_SIZE) -> NDArray[np.uint8]:
    """Small pictures of every head, (H, n, n) with n at most `size`; 255 stands for a weight of 1.

    Longer texts are pooled by the maximum, so that a single bright cell stays visible.
    """
    heads, n_tokens, _ = patterns.shape
    block = -(-n_tokens // size)
    n = -(-n_tokens // block)
    padded = np.zeros((heads, n * block, n * block), dtype=np.float32)
    padded[:, :n_tokens, :n_tokens] = patterns
    pooled = padded.reshape(heads, n, block, n, block).max(axis=(2, 4))
    return np.rint(pooled * 255).astype(np.uint8)


def find_strongest_keys(
    maps: AttentionMaps, pattern_row: NDArray[np.float32], most: int = 50
) -> tuple[KeyWeight, ...]:
    """The keys that one query reads most, strongest first.

    Args:
        maps: For the labels.
        pattern_row: Weights of one query over all tokens, (T,).
        most: At most so many.
    """
    order = np.argsort(-pattern_row, kind="stable")[:most]
    return tuple(
        KeyWeight(int(i), maps.labels[i], float(pattern_row[i]))
        for i in order
        if pattern_row[i] > 0
    )


def check_index(what: Literal["layer", "head", "token"], index: int, n: int) -> None:
    """Refuse an index outside 0 to n - 1.

    Args:
        what: Is counted; each has a sentence of its own, since "no head 6" cannot be put together
            from words in every language.
        index: Was asked for.
        n: How many there are.

    Raises:
        ConfigError: It is.
    """
    if not 0 <= index < n:
        raise ConfigError(
            f"there is no {what} {index}; choose 0 to {n - 1}",
            code=f"index-range-{what}",
            index=index,
            last=n - 1,
        )
