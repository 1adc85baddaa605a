"""The panel "KV cache": prefill against decode, pass by pass, and both ways measured."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.pickers import build_picker
from components.kit.plotly_panel import build_plotly_panel, figure_message
from components.kit.seen import build_seen
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import Shown, fill_drawer
from components.tabs.attention.figures import make_lines
from components.tabs.attention.reading import Reader, index_of, within, work_id
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.kv_cache import (
    Decoding,
    GenerationTimes,
    measure_generation,
    trace_decoding,
)
from explorer.attention_lab.snippets import make_decoding_snippet

EXAMPLE_KEYS = tuple(f"attention.cache.example_{name}" for name in ("short", "story", "count"))
EXAMPLES = ("The cat sat on", "Once upon a time there was a little", "1, 2, 3, 4, 5,")
N_NEW = 8
FORMULA = r"""
$$\text{decode: } q_t K_{\le t}^{\top} \in \mathbb{R}^{1 \times t} \qquad
\text{bytes} = 2 \cdot L \cdot K \cdot d \cdot t \cdot \text{bytes per number}$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
KILOBYTE, MILLISECONDS, MILLION = 1_000, 1_000, 10**6


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    examples: gr.HTML
    layer: gr.HTML
    head: gr.HTML
    stepper: gr.HTML
    said: gr.HTML
    map: gr.HTML
    keys: gr.HTML
    working: Working
    start: gr.Button
    stop: gr.Button
    speed: gr.HTML
    times: gr.HTML
    memory: gr.HTML
    kept: gr.State
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `CacheHandlers.read` and `.step` fill."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        views = [self.stepper, self.said, self.map, self.keys]
        return [self.layer, self.head, *views, *drawer, self.kept]


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
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Read the prompt, continue it, and show the first pass."""
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
                turn=self._ctx.slots.turn,
            )
        kept = self._ctx.results.put(found)
        python = make_decoding_snippet(source, text, at["index"], of["index"], N_NEW)
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
        with armed as switch, opened as (_, loaded):
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            for times in measure_generation(loaded, text, turn=turn, stopped=switch.is_set):
                if len(times.cached_s) % 4 == 0:
                    yield self._times(times, request)

    def stop(self, request: gr.Request) -> None:
        """Stop measuring."""
        self._ctx.stops.stop(work_id(request, "cache"))

    def example(self, event: gr.EventData) -> str:
        """Type an example."""
        return EXAMPLES[int(event._data["index"])]

    def attention_cache(
        self, text: str, layer: int, head: int, request: gr.Request
    ) -> dict[str, Any]:
        """Read a prompt and continue it with the page's first model, pass by pass."""
        with self._reader.open(None, None, request) as (_, loaded):
            found = trace_decoding(
                loaded, text, layer=layer, head=head, n_new=N_NEW, turn=self._ctx.slots.turn
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
        matrix = self._ctx.routes.publish(shown, row_labels=labels, column_labels=labels)
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
        key_rows = [
            row.tolist() if i in step.kept else [None] * len(row)
            for i, row in enumerate(found.keys[: step.last])
        ]
        return (
            {"index": index, "count": len(found.steps)},
            said,
            gr.update(
                value={
                    "matrix": matrix,
                    "rows": labels,
                    "causal": True,
                    "title": say(locale, "attention.cache.map", layer=found.layer, head=found.head),
                    "max": 1,
                },
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


def _build_measured(ctx: AppContext) -> tuple[Any, ...]:
    words, t = ctx.words, ctx.words.t
    gr.HTML(t("attention.cache.measure_title"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["button-row"]):
        start = gr.Button(t("attention.cache.start"), variant="primary", elem_id="lab-cache-start")
        stop = gr.Button(t("attention.lab_stop"), elem_id="lab-cache-stop")
    speed = build_line(words, elem_id="lab-cache-speed", look="heading")
    with gr.Row(elem_classes=["lab-pair"]):
        times, memory = (
            build_plotly_panel(
                words,
                elem_id=f"lab-cache-{name}",
                label_key=f"attention.cache.label_{name}",
                height=280,
            )
            for name in ("times", "memory")
        )
    return start, stop, speed, times, memory


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-cache-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            text = gr.Textbox(
                EXAMPLES[0], label=t("attention.text"), lines=2, elem_id="lab-cache-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-cache-examples")
            layer = build_picker(words, "layer", elem_id="lab-cache-layer")
            head = build_picker(words, "head", elem_id="lab-cache-head")
            stepper = build_stepper(words, elem_id="lab-cache-stepper")
            said = build_line(words, elem_id="lab-cache-said", look="text")
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Row(elem_classes=["lab-pair"]):
                with gr.Column(min_width=0):
                    big = build_heatmap(words, elem_id="lab-cache-map")
                with gr.Column(min_width=0):
                    gr.HTML(t("attention.cache.keys"), elem_classes=["lab-heading"])
                    keys = build_number_matrix(words, elem_id="lab-cache-keys")
            working = build_working(
                words, elem_id="lab-cache-working", formula=FORMULA, png="lab-cache-map"
            )
    start, stop, speed, times, memory = _build_measured(ctx)
    build_note(words, "attention.look_for_cache", elem_id="lab-cache-note")
    return Parts(
        text=text,
        examples=examples,
        layer=layer,
        head=head,
        stepper=stepper,
        said=said,
        map=big,
        keys=keys,
        working=working,
        start=start,
        stop=stop,
        speed=speed,
        times=times,
        memory=memory,
        kept=gr.State(""),
        seen=seen,
    )


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = CacheHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    model, outputs = [ctx.model_id, ctx.owner], parts.outputs()
    inputs = [parts.text, parts.layer, parts.head, *model]
    for event in (parts.seen.seen, parts.text.change, parts.layer.pick, parts.head.pick):
        wire(event, on.read, inputs, outputs, trigger_mode="always_last", **options)
    step = [parts.kept, parts.stepper]
    wire(parts.stepper.step, on.step, step, outputs, trigger_mode="always_last", **options)
    wire(parts.examples.example, on.example, [], [parts.text], queue=False, **options)
    measured = [parts.speed, parts.times, parts.memory]
    wire(parts.start.click, on.measure, [parts.text, *model], measured, **options)
    wire(parts.stop.click, on.stop, [], [], queue=False, **options)
    expose(on.attention_cache, "attention_cache")
    expose(on.attention_cache_speed, "attention_cache_speed")
    ctx.address.register("attention", "prompt", parts.text)
