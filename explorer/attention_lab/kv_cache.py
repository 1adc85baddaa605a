"""Prefill against decode: what each step computes, what the cache keeps, how long it takes.

    prefill     all tokens of the prompt in one pass: T queries against T keys
    decode      one token a pass: 1 query against all keys kept so far

Without a cache each new token would read the whole text again. The work of a pass counts products
with weights and with keys and values (`models/costs.py`); how much faster it is here is measured,
since reading the weights takes its time with one token as with many.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from explorer.attention_lab.ablation import encode
from explorer.attention_maps import check_index, check_read
from explorer.errors import Stopped

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from models.decoder import Decoder
    from models.loading import LoadedModel
    from models.trace import Trace

Turn = Callable[[], AbstractContextManager[object]]

MOST_PROMPT = 24
MOST_NEW = 16
MEASURED_NEW = 48
SHOWN_WIDTH = 8  # numbers of a key that are shown


@dataclass(frozen=True, kw_only=True)
class DecodeStep:
    """One pass.

    Args:
        first: Position of its first new token.
        last: The position after its last one.
        token: What came out of it, as text.
        n_keys: Keys that its newest token could see in a layer without a window.
        kept: Positions that are still kept in the chosen layer after it.
        cached_operations: Floating-point operations of the pass.
        uncached_operations: Of reading the whole text again instead.
        cache_bytes: Held in all layers after it.
    """

    first: int
    last: int
    token: str
    n_keys: int
    kept: tuple[int, ...]
    cached_operations: int
    uncached_operations: int
    cache_bytes: int


@dataclass(frozen=True, kw_only=True)
class Decoding:
    """A prompt and some tokens after it, pass by pass.

    Args:
        labels: Of all tokens that were read.
        steps: The prefill, then one a token.
        pattern: (T, T), weights of the chosen head: rows of a pass stand together.
        keys: (T, n), the first numbers of each token's key in the chosen head.
        layer: The chosen layer.
        head: The chosen query head.
        window: Keys that a query of the layer sees, or None.
        largest_difference: Between the logits with the cache and those of one pass without it.
    """

    labels: tuple[str, ...]
    steps: tuple[DecodeStep, ...]
    pattern: NDArray[np.float32]
    keys: NDArray[np.float32]
    layer: int
    head: int
    window: int | None
    largest_difference: float


@dataclass(frozen=True, kw_only=True)
class GenerationTimes:
    """Seconds of each new token, with and without a cache.

    Args:
        n_prompt: Tokens before the first one.
        prefill_s: Seconds of reading the prompt.
        cached_s: For each token.
        uncached_s: For each token, reading the whole text again.
        cache_bytes: Held after each token.
    """

    n_prompt: int
    prefill_s: float
    cached_s: tuple[float, ...]
    uncached_s: tuple[float, ...]
    cache_bytes: tuple[int, ...]

    @property
    def cached_per_s(self) -> float:
        """Tokens a second with a cache."""
        return len(self.cached_s) / sum(self.cached_s)

    @property
    def uncached_per_s(self) -> float:
        """Tokens a second without."""
        return len(self.uncached_s) / sum(self.uncached_s)


def trace_decoding(
    loaded: LoadedModel,
    text: str,
    *,
    layer: int,
    head: int,
    n_new: int = 8,
    window: int = 0,
    turn: Turn = nullcontext,
) -> Decoding:
    """Read a prompt, then continue it greedily, and keep what every pass computed.

    Args:
        loaded: Any decoder with its tokenizer.
        text: The prompt.
        layer: Whose weights and keys are wanted.
        head: Query head.
        n_new: Tokens to add.
        window: Keys that a query sees, itself counted, in all layers, or in those that have a
            window already; 0 leaves the model as it is.
        turn: Entered for each pass.

    Raises:
        ConfigError: No text, or no such layer or head.
        ContextError: The prompt is too long.
        WeightError: The model computes NaN; says in which layer first.
    """
    check_index("layer", layer, loaded.config.n_layers)
    check_index("head", head, loaded.config.attention.n_heads)
    loaded = with_window(loaded, window) if window else loaded
    model, ids = loaded.model, encode(loaded, text, MOST_PROMPT)
    total = min(len(ids) + n_new, loaded.config.context_length)
    names = (f"blocks.{layer}.attn.pattern", f"blocks.{layer}.attn.k")
    pattern, keys = np.zeros((total, total), np.float32), []
    steps, logits_seen, after = [], [], 0
    shared = head // loaded.config.attention.group_size
    for logits, trace in _read_stepwise(model, ids, total, names, turn):
        before, after = after, len(ids)
        rows = _as_array(trace[names[0]][0, head])
        pattern[before:after, : rows.shape[1]] = rows
        keys.append(_as_array(trace[names[1]][0, shared, :, :SHOWN_WIDTH]))
        check_read(loaded, ids, logits, turn=turn)
        logits_seen.append(logits)
        ids = [*ids, int(logits.argmax())]
        steps.append(_describe(loaded, layer, before, after, ids[-1]))
    read = ids[:-1]  # the last one was foreseen, and not read
    return Decoding(
        labels=tuple(loaded.tokenizer.decode([i]) for i in read),
        steps=tuple(steps),
        pattern=pattern,
        keys=np.concatenate(keys),
        layer=layer,
        head=head,
        window=_window_of(loaded, layer),
        largest_difference=_compare(loaded, read, logits_seen, turn),
    )


def _read_stepwise(
    model: Decoder, ids: Sequence[int], total: int, record: tuple[str, ...], turn: Turn
) -> Iterator[tuple[Tensor, Trace]]:
    """The prompt in one pass, then each likeliest token, to `total`: last logits, what was seen."""
    import torch

    from models.cache import KVCache
    from models.trace import Trace

    cache = KVCache(model.config, 1, total, dtype=model.dtype, device=model.device)
    for _ in range(total - len(ids) + 1):
        trace = Trace(record=record)
        with turn(), torch.inference_mode():
            row = torch.tensor([list(ids)], device=model.device)
            logits = model(row, cache=cache, trace=trace)[0, -1].float()
        yield logits, trace
        ids = [int(logits.argmax())]


def with_window(loaded: LoadedModel, window: int) -> LoadedModel:
    """The same weights, none of them copied, in a model whose layers see and keep a window.

    Args:
        loaded: Any decoder.
        window: Keys that a query sees, itself counted. A model that has layers with a window keeps
            its others as they are.

    Raises:
        ConfigError: The window is not positive.
    """
    import torch

    from models.config import FULL, WINDOW
    from models.decoder import Decoder
    from models.lora import merged_copy
    from models.quantize import replace_with_int8

    own = loaded.config
    config = replace(own, attention=replace(own.attention, window=window))
    if WINDOW not in own.layer_types:
        turned = {WINDOW: own.rope[FULL]} if own.rope else {}
        config = replace(config, layer_types=(WINDOW,) * own.n_layers, rope=turned)
    with torch.device("meta"):
        model = Decoder(config)
    if loaded.info.dtype == "int8":
        replace_with_int8(model)
    model.load_state_dict(merged_copy(loaded.model).state_dict(), assign=True)
    return replace(loaded, model=model.eval().requires_grad_(False), config=config)


def _as_array(tensor: torch.Tensor) -> NDArray[np.float32]:
    return tensor.float().cpu().numpy()


def _describe(loaded: LoadedModel, layer: int, before: int, after: int, chosen: int) -> DecodeStep:
    from models.costs import count_cache_bytes, count_operations

    config, window = loaded.config, _window_of(loaded, layer)
    each = [count_operations(config, position + 1).total for position in range(after)]
    dtype = str(loaded.model.dtype).removeprefix("torch.")
    return DecodeStep(
        first=before,
        last=after,
        token=loaded.tokenizer.decode([chosen]),
        n_keys=after,
        kept=tuple(range(0 if window is None else max(0, after - window), after)),
        cached_operations=sum(each[before:]),
        uncached_operations=sum(each),
        cache_bytes=count_cache_bytes(config, after, dtype).total,
    )


def _window_of(loaded: LoadedModel, layer: int) -> int | None:
    is_window = loaded.config.layer_types[layer] == "window"
    return loaded.config.attention.window if is_window else None


def _compare(
    loaded: LoadedModel, ids: Sequence[int], cached: Sequence[torch.Tensor], turn: Turn
) -> float:
    """One pass over all of it, without a cache."""
    import torch

    with turn(), torch.inference_mode():
        whole = loaded.model(torch.tensor([ids], device=loaded.model.device))[0].float()
    last = whole[len(whole) - len(cached) :]
    return float((torch.stack(list(cached)) - last).abs().max())


def measure_generation(
    loaded: LoadedModel,
    text: str,
    *,
    n_new: int = MEASURED_NEW,
    turn: Turn = nullcontext,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[GenerationTimes]:
    """Continue a text with and without a cache, token by token in turn; yields after each.

    Args:
        loaded: Any decoder with its tokenizer.
        text: The prompt.
        n_new: Tokens to add.
        turn: Entered for each forward pass; waiting for it is not counted.
        stopped: Asked before each token.

    Raises:
        ConfigError: There is no text.
        Stopped: `stopped()` became true.
    """
    import torch

    from models.cache import KVCache
    from models.costs import count_cache_bytes

    ids = encode(loaded, text, None)
    model, n_prompt = loaded.model, len(ids)
    n_new = max(1, min(n_new, loaded.config.context_length - n_prompt))
    cache = KVCache(model.config, 1, n_prompt + n_new, dtype=model.dtype, device=model.device)
    dtype = str(model.dtype).removeprefix("torch.")

    def timed(new: Sequence[int], with_cache: bool) -> tuple[int, float]:
        row = torch.tensor([list(new)], device=model.device)
        with turn(), torch.inference_mode():
            started_at = time.perf_counter()
            logits = model(row, cache=cache if with_cache else None, last_only=True)
            return int(logits[0, -1].argmax()), time.perf_counter() - started_at

    token, prefill_s = timed(ids, True)
    cached, uncached, held = [], [], []
    for _ in range(n_new):
        if stopped():
            raise Stopped("the measurement was stopped")
        ids.append(token)
        uncached.append(timed(ids, False)[1])
        token, seconds = timed(ids[-1:], True)
        cached.append(seconds)
        held.append(count_cache_bytes(loaded.config, len(ids), dtype).total)
        yield GenerationTimes(
            n_prompt=n_prompt,
            prefill_s=prefill_s,
            cached_s=tuple(cached),
            uncached_s=tuple(uncached),
            cache_bytes=tuple(held),
        )
