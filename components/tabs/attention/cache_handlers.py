"""Handlers of the panel "KV cache": pass by pass, and both ways measured."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.plotly_panel import figure_message
from components.kit.views import update_view
from components.tabs.attention.drawer import Shown, draw_map, fill_drawer
from components.tabs.attention.figures import make_lines
from components.tabs.attention.reading import Reader, index_of, within, work_id
from components.text import locale_of
from explorer.attention_lab.kv_cache import (
    Decoding,
    GenerationTimes,
    measure_generation,
    trace_decoding,
)
from explorer.attention_lab.snippets import make_decoding_snippet, make_generation_snippet

EXAMPLES = (  # a prompt and a window
    ("The cat sat on", 0),
    ("Once upon a time there was a little", 0),
    ("The cat sat on the warm mat", 4),
)
N_NEW = 8
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
KILOBYTE, MILLISECONDS, MILLION = 1_000, 1_000, 10**6


class CacheHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._reader = Reader(ctx)

    def read(
        self,
        text: str,
        layer: dict[str, int] | None,
        head: dict[str, int] | None,
        window: float | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Read the prompt, continue it, and show the first pass."""
        wide = int(window or 0)
        with self._reader.open(model_id, owner, request) as (source, loaded):
            at = within(
                index_of(layer) if layer else loaded.config.n_layers // 2, loaded.config.n_layers
            )
            of = within(index_of(head), loaded.config.attention.n_heads)
            found = trace_decoding(
                loaded,
                text,
                layer=at["index"],
                head=of["index"],
                n_new=N_NEW,
                window=wide,
                turn=self._ctx.slots.turn,
            )
        kept = self._ctx.results.put(found)
        python = make_decoding_snippet(source, text, at["index"], of["index"], N_NEW, wide)
        return (at, of, *self._view(found, 0, request), *self._drawer(found, python, request), kept)

    def step(self, kept: str, at: dict[str, int] | None, request: gr.Request) -> tuple[Any, ...]:
        """Show another pass."""
        found = self._ctx.results.get(kept)
        if not isinstance(found, Decoding):
            return (gr.skip(),) * 10
        same = (gr.skip(),) * 3
        view = self._view(found, index_of(at), request)
        return (gr.skip(), gr.skip(), *view, *same, gr.skip())

    def measure(
        self, text: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> Iterator[tuple[Any, ...]]:
        """Write with and without a cache, in turn; Stop leaves what is known."""
        armed = self._ctx.stops.armed(work_id(request, "cache"))
        opened = self._reader.open(model_id, owner, request)
        with armed as switch, opened as (source, loaded):
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            for times in measure_generation(loaded, text, turn=turn, stopped=switch.is_set):
                if len(times.cached_s) % 4 == 0:
                    yield (*self._times(times, request), *(gr.skip(),) * 3)
        yield (*self._times(times, request), *self._times_drawer(times, source, text, request))

    def stop(self, request: gr.Request) -> None:
        """Stop measuring."""
        self._ctx.stops.stop(work_id(request, "cache"))

    def example(self, event: gr.EventData) -> tuple[str, int]:
        """Type an example."""
        return EXAMPLES[int(event._data["index"])]

    def attention_cache(
        self, text: str, layer: int, head: int, request: gr.Request, window: int = 0
    ) -> dict[str, Any]:
        """Read a prompt and continue it with the page's first model, pass by pass.

        With a window every query sees and keeps only so many keys; 0 leaves the model as it is.
        """
        with self._reader.open(None, None, request) as (_, loaded):
            found = trace_decoding(
                loaded,
                text,
                layer=layer,
                head=head,
                n_new=N_NEW,
                window=window,
                turn=self._ctx.slots.turn,
            )
        return {
            "labels": list(found.labels),
            "steps": [{**vars(step), "kept": list(step.kept)} for step in found.steps],
            "largest_difference": found.largest_difference,
        }

    def attention_cache_speed(self, text: str, request: gr.Request) -> dict[str, float]:
        """Tokens a second of the page's first model, with and without a cache."""
        with self._reader.open(None, None, request) as (_, loaded):
            *_, times = measure_generation(loaded, text, turn=self._ctx.slots.turn)
        return {"cached_per_s": times.cached_per_s, "uncached_per_s": times.uncached_per_s}

    def _view(self, found: Decoding, index: int, request: gr.Request) -> tuple[Any, ...]:
        locale, say = locale_of(request), self._ctx.words.say
        index = min(max(index, 0), len(found.steps) - 1)
        step = found.steps[index]
        labels = [f"{i} {label}" for i, label in enumerate(found.labels)]
        shown = found.pattern.copy()
        shown[step.last :] = 0
        title = say(locale, "attention.cache.map", layer=found.layer, head=found.head)
        said = say(
            locale,
            "attention.cache.prefill" if index == 0 else "attention.cache.decode",
            rows=step.last - step.first,
            keys=step.n_keys,
            token=step.token,
            cached=f"{step.cached_operations / MILLION:,.1f}",
            uncached=f"{step.uncached_operations / MILLION:,.1f}",
            bytes=f"{step.cache_bytes / KILOBYTE:,.1f}",
            kept=len(step.kept),
        )
        dropped = step.last - len(step.kept)
        if dropped:
            said = f"{said} {say(locale, 'attention.cache.evicted', count=dropped)}"
        key_rows = [
            row.tolist() if i in step.kept else [None] * len(row)
            for i, row in enumerate(found.keys[: step.last])
        ]
        return (
            {"index": index, "count": len(found.steps)},
            said,
            update_view(
                value=draw_map(self._ctx, shown, labels, title, causal=True),
                selected=step.last - 1,
            ),
            {
                "corner": say(locale, "attention.cache.slots"),
                "rows": labels[: step.last],
                "cols": [f"k{i}" for i in range(found.keys.shape[1])],
                "cells": key_rows,
                "digits": 3,
                "selected_row": step.last - 1,
            },
        )

    def _drawer(self, found: Decoding, python: str, request: gr.Request) -> tuple[Any, ...]:
        locale, say = locale_of(request), self._ctx.words.say
        columns = ("tokens", "cached", "uncached", "bytes")
        cells = [
            [s.last, s.cached_operations / MILLION, s.uncached_operations / MILLION, s.cache_bytes]
            for s in found.steps
        ]
        return fill_drawer(
            self._ctx,
            Shown(
                tensor=f"blocks.{found.layer}.attn.k, .v",
                cells=np.array(cells, dtype=np.float64),
                rows=[f"{s.first}–{s.last - 1}" for s in found.steps],
                columns=[say(locale, f"attention.cache.column.{name}") for name in columns],
                function=trace_decoding,
                test=TEST_FILE,
                python=python,
                png="lab-cache-map",
                digits=2,
            ),
        )

    def _times(self, times: GenerationTimes, request: gr.Request) -> tuple[Any, ...]:
        locale, say = locale_of(request), self._ctx.words.say
        places = [times.n_prompt + i + 1 for i in range(len(times.cached_s))]
        names = [say(locale, f"attention.cache.{name}") for name in ("with", "without")]
        seconds = (times.cached_s, times.uncached_s)
        speed = make_lines(
            places,
            {
                name: [MILLISECONDS * s for s in list_]
                for name, list_ in zip(names, seconds, strict=True)
            },
            x_title=say(locale, "attention.cache.position"),
            y_title=say(locale, "attention.cache.axis_time"),
        )
        memory = make_lines(
            places,
            {say(locale, "attention.cache.memory"): [b / KILOBYTE for b in times.cache_bytes]},
            x_title=say(locale, "attention.cache.position"),
            y_title=say(locale, "attention.cache.axis_memory"),
        )
        said = say(
            locale,
            "attention.cache.measured",
            cached=f"{times.cached_per_s:.1f}",
            uncached=f"{times.uncached_per_s:.1f}",
            ratio=f"{times.cached_per_s / times.uncached_per_s:.1f}",
            tokens=len(times.cached_s),
        )
        return said, figure_message(speed), figure_message(memory)

    def _times_drawer(
        self, times: GenerationTimes, source: str, text: str, request: gr.Request
    ) -> tuple[Any, ...]:
        locale, say = locale_of(request), self._ctx.words.say
        cells = [
            [MILLISECONDS * cached, MILLISECONDS * uncached, held]
            for cached, uncached, held in zip(
                times.cached_s, times.uncached_s, times.cache_bytes, strict=True
            )
        ]
        names = [say(locale, f"attention.cache.{name}") for name in ("with", "without")]
        drawer = Shown(
            tensor="logits",
            cells=np.array(cells),
            rows=[str(times.n_prompt + i + 1) for i in range(len(cells))],
            columns=[
                *(f"{name}, ms" for name in names),
                say(locale, "attention.cache.column.bytes"),
            ],
            function=measure_generation,
            test=TEST_FILE,
            python=make_generation_snippet(source, text),
            png="lab-cache-times",
            digits=2,
        )
        return fill_drawer(self._ctx, drawer)
