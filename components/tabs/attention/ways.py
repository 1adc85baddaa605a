"""The panel "nine ways": the same attention computed in nine ways, measured here."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.cards import build_note
from components.kit.code_block import make_code_block
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel, figure_message
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import NO_DRAWER, Shown, fill_drawer
from components.tabs.attention.figures import make_spread_bars
from components.tabs.attention.reading import work_id
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.snippets import make_ways_snippet
from explorer.attention_lab.ways_timing import (
    WAY_NAMES,
    WayResult,
    WaySettings,
    WaysResult,
    measure_ways,
    read_way_source,
)
from explorer.errors import Stopped

EXAMPLE_KEYS = tuple(f"attention.ways.example_{name}" for name in ("small", "long", "heads"))
EXAMPLES = (
    WaySettings(d_model=96, n_heads=6, n_tokens=64, batch=4),
    WaySettings(d_model=192, n_heads=6, n_tokens=512, batch=1),
    WaySettings(d_model=256, n_heads=32, n_tokens=128, batch=2),
)
FORMULA = r"""
$$\mathrm{MHA}(X) = \mathrm{concat}_h\!\left[\mathrm{softmax}\!\left(
\frac{X W_q^h (X W_k^h)^{\top}}{\sqrt{d}} + M\right) X W_v^h\right] W_o + b$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_ways.py"
MILLISECONDS = 1_000


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    form: Form
    examples: gr.HTML
    start: gr.Button
    stop: gr.Button
    said: gr.HTML
    plot: gr.HTML
    table: gr.HTML
    way: gr.Dropdown
    source: gr.Markdown
    working: Working

    def outputs(self) -> list[Any]:
        """What `WayHandlers.measure` fills."""
        return [self.said, self.plot, self.table, *self.working.outputs]


class WayHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def measure(self, request: gr.Request, settings: WaySettings) -> Iterator[tuple[Any, ...]]:
        """Measure round by round; Stop leaves what is known, and is said."""
        locale, say = locale_of(request), self._ctx.words.say
        rest = (gr.skip(),) * 5
        with self._ctx.stops.armed(work_id(request, "ways")) as switch:
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            try:
                for result in measure_ways(settings, turn=turn, stopped=switch.is_set):
                    if result.measuring is None:
                        yield self._view(result, settings, locale)
                    else:
                        yield self._progress(result, settings, locale), *rest
            except Stopped:
                if switch.superseded:  # a newer measurement writes into the same line
                    raise
                yield say(locale, "attention.ways.stopped"), *rest

    def stop(self, request: gr.Request) -> Any:
        """Stop measuring; the page says so at once."""
        if self._ctx.stops.stop(work_id(request, "ways")):
            return self._ctx.words.say(locale_of(request), "attention.ways.stopped")
        return gr.skip()

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Choose the sizes of an example."""
        return tuple(vars(EXAMPLES[int(event._data["index"])]).values())

    def source(self, way: str) -> str:
        """The class of a way."""
        return make_code_block(read_way_source(way), "python")

    def attention_ways(self, *, settings: WaySettings) -> list[dict[str, Any]]:
        """Measure nine ways to compute the same attention, forward and backward, in seconds."""
        *_, last = measure_ways(settings, turn=self._ctx.slots.turn)
        return [vars(way) for way in last.ways]

    def _progress(self, result: WaysResult, settings: WaySettings, locale: str) -> str:
        say = self._ctx.words.say
        return say(
            locale,
            "attention.ways.measuring",
            way=say(locale, f"attention.ways.name.{result.measuring}"),
            done=result.rounds,
            rounds=settings.rounds,
        )

    def _view(self, result: WaysResult, settings: WaySettings, locale: str) -> tuple[Any, ...]:
        say = self._ctx.words.say
        names = [say(locale, f"attention.ways.name.{way.name}") for way in result.ways]
        columns = [
            say(locale, f"attention.ways.{key}")
            for key in ("forward", "backward", "parameters", "difference")
        ]
        figure = make_spread_bars(
            names,
            {
                columns[0]: [_in_ms(way.forward_s) for way in result.ways],
                columns[1]: [_in_ms(way.backward_s) for way in result.ways],
            },
            x_title=say(locale, "attention.ways.axis"),
        )
        drawer = NO_DRAWER
        if result.rounds == settings.rounds:
            drawer = fill_drawer(
                self._ctx,
                Shown(
                    tensor="(batch, n_tokens, d_model)",
                    cells=np.array([_row(way) for way in result.ways]),
                    rows=names,
                    columns=columns,
                    function=measure_ways,
                    test=TEST_FILE,
                    python=make_ways_snippet(settings),
                    png="lab-ways-plot",
                ),
            )
        shape = f"({settings.batch}, {settings.n_tokens}, {settings.d_model})"
        said = say(
            locale,
            "attention.ways.said",
            round=result.rounds,
            rounds=settings.rounds,
            shape=shape,
            heads=settings.n_heads,
        )
        table = {
            "rows": names,
            "cols": columns,
            "cells": [_say_row(way) for way in result.ways],
        }
        return said, figure_message(figure), table, *drawer


def _in_ms(seconds: tuple[float, float, float] | None) -> tuple[float, float, float] | None:
    if seconds is None:
        return None
    low, middle, high = (MILLISECONDS * part for part in seconds)
    return low, middle, high


def _row(way: WayResult) -> list[float]:
    backward = np.nan if way.backward_s is None else MILLISECONDS * way.backward_s[1]
    return [
        MILLISECONDS * way.forward_s[1],
        backward,
        way.n_parameters,
        way.largest_difference,
    ]


def _say_row(way: WayResult) -> list[str]:
    forward, backward, n_parameters, difference = _row(way)
    return [
        f"{forward:.2f}",
        "–" if np.isnan(backward) else f"{backward:.2f}",
        f"{int(n_parameters):,}",
        f"{difference:.1e}",
    ]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-ways-examples")
            form = build_form(words, WaySettings, prefix="attention.ways", elem_id="lab-ways")
            with gr.Row(elem_classes=["button-row"]):
                start = gr.Button(
                    t("attention.ways.start"), variant="primary", elem_id="lab-ways-start"
                )
                stop = gr.Button(t("attention.lab_stop"), elem_id="lab-ways-stop")
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="lab-ways-said", look="heading")
            plot = build_plotly_panel(
                words, elem_id="lab-ways-plot", label_key="attention.ways.label", height=420
            )
            table = build_number_matrix(words, elem_id="lab-ways-table")
            names = [(t(f"attention.ways.name.{name}"), name) for name in WAY_NAMES]
            way = gr.Dropdown(
                names, value=WAY_NAMES[0], label=t("attention.ways.way"), elem_id="lab-ways-way"
            )
            source = gr.Markdown(
                make_code_block(read_way_source(WAY_NAMES[0]), "python"), elem_id="lab-ways-source"
            )
            working = build_working(
                words, elem_id="lab-ways-working", formula=FORMULA, png="lab-ways-plot"
            )
    build_note(words, "attention.look_for_ways", elem_id="lab-ways-note")
    return Parts(form, examples, start, stop, said, plot, table, way, source, working)


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = WayHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    form = parts.form.inputs
    measure = with_form(on.measure, WaySettings)
    nothing = ("", None, None, *NO_DRAWER)
    wire(parts.start.click, measure, form, parts.outputs(), nothing=nothing, **options)
    wire(parts.stop.click, on.stop, [], [parts.said], queue=False, **options)
    wire(parts.examples.example, on.example, [], form, queue=False, **options)
    wire(parts.way.input, on.source, [parts.way], [parts.source], **options)
    expose(with_form(on.attention_ways, WaySettings), "attention_ways")
