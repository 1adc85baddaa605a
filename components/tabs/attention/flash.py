"""The panel "flash": softmax in one pass over tiles, and what it saves."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.address import parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.matrices import MatrixItem, build_matrices, matrices_value
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel, figure_message
from components.kit.seen import build_seen
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import Shown, fill_drawer
from components.tabs.attention.figures import make_lines
from components.tabs.attention.reading import index_of, work_id
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.by_hand import WORDS, HandSettings, compute_by_hand
from explorer.attention_lab.flash import (
    TiledSoftmax,
    compute_tiled_softmax,
    count_traffic,
    measure_peaks,
)
from explorer.attention_lab.snippets import make_flash_snippet

EXAMPLE_KEYS = tuple(f"attention.flash.example_{name}" for name in ("one", "two", "large"))
EXAMPLES = ((1, 1.0), (2, 1.0), (3, 60.0))  # keys a tile, factor on the scores
LENGTHS = tuple(2**n for n in range(7, 18))
D_HEAD, TILE = 64, 128
FORMULA = r"""
$$m' = \max(m, \max_j s_j) \qquad \ell' = \ell\, e^{m - m'} + \sum_j e^{s_j - m'} \qquad
o' = o\, e^{m - m'} + \sum_j e^{s_j - m'} v_j \qquad z = \frac{o}{\ell}$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
MEGABYTE = 10**6


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    word: gr.Radio
    tile: gr.Slider
    gain: gr.Slider
    examples: gr.HTML
    stepper: gr.HTML
    said: gr.HTML
    matrices: gr.HTML
    state: gr.HTML
    working: Working
    counted: gr.HTML
    start: gr.Button
    stop: gr.Button
    measured_said: gr.HTML
    measured: gr.HTML
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `FlashHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [self.stepper, self.said, self.matrices, self.state, *drawer]


class FlashHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def show(
        self, at: dict[str, int] | None, word: str, tile: float, gain: float, request: gr.Request
    ) -> tuple[Any, ...]:
        """Show the state after one tile, and the whole at the end."""
        locale, say = locale_of(request), self._ctx.words.say
        scores, values = _six_words(word, gain)
        found = compute_tiled_softmax(scores, values, int(tile))
        index = min(max(index_of(at), 0), len(found.steps) - 1)
        said = say(
            locale,
            "attention.flash.said",
            first=found.steps[index].first + 1,
            last=found.steps[index].last,
            rescale=f"{found.steps[index].rescale:.4f}",
            difference=f"{found.largest_difference:.1e}",
        )
        rows, cells = _states(found)
        columns = ["m", "exp(m − m')", "ℓ", "o₁", "o₂", "o₁ / ℓ", "o₂ / ℓ"]
        drawer = Shown(
            tensor="m, l, o",
            cells=cells,
            rows=rows,
            columns=columns,
            function=compute_tiled_softmax,
            test=TEST_FILE,
            python=make_flash_snippet(scores.tolist(), values.tolist(), int(tile)),
            digits=6,
        )
        return (
            {"index": index, "count": len(found.steps)},
            said,
            matrices_value(self._items(found, scores, values, index)),
            {
                "rows": [*rows[: index + 1], say(locale, "attention.flash.plain")],
                "cols": columns,
                "cells": [
                    *cells[: index + 1].tolist(),
                    [None, None, None, None, None, *found.plain.tolist()],
                ],
                "digits": 6,
                "selected_row": index,
            },
            *fill_drawer(self._ctx, drawer),
        )

    def counts(self, request: gr.Request) -> str:
        """Bytes stored and moved by count, over the length."""
        locale, say = locale_of(request), self._ctx.words.say
        traffic = [count_traffic(n, D_HEAD, TILE) for n in LENGTHS]
        names = ("plain_stored", "tiled_stored", "plain_moved", "tiled_moved")
        figure = make_lines(
            LENGTHS,
            {
                say(locale, f"attention.flash.{name}"): [
                    getattr(t, name) / MEGABYTE for t in traffic
                ]
                for name in names
            },
            x_title=say(locale, "attention.flash.axis_tokens"),
            y_title=say(locale, "attention.flash.axis_bytes"),
            log_x=True,
            log_y=True,
        )
        return figure_message(figure)

    def measure(self, request: gr.Request) -> Iterator[tuple[str, str]]:
        """Measure the peak of both ways, length by length."""
        locale, say = locale_of(request), self._ctx.words.say
        with self._ctx.stops.armed(work_id(request, "flash")) as switch:
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            for found in measure_peaks(turn=turn, stopped=switch.is_set):
                figure = make_lines(
                    [peak.n_tokens for peak in found],
                    {
                        say(locale, "attention.flash.eager"): [
                            peak.eager_bytes / MEGABYTE for peak in found
                        ],
                        say(locale, "attention.flash.fused"): [
                            peak.fused_bytes / MEGABYTE for peak in found
                        ],
                    },
                    x_title=say(locale, "attention.flash.axis_tokens"),
                    y_title=say(locale, "attention.flash.axis_bytes"),
                    log_x=True,
                    log_y=True,
                    marks=True,
                )
                last = found[-1]
                said = say(
                    locale,
                    "attention.flash.measured",
                    tokens=f"{last.n_tokens:,}",
                    eager=f"{last.eager_bytes / MEGABYTE:,.1f}",
                    fused=f"{last.fused_bytes / MEGABYTE:,.1f}",
                )
                yield said, figure_message(figure)

    def stop(self, request: gr.Request) -> None:
        """Stop measuring."""
        self._ctx.stops.stop(work_id(request, "flash"))

    def example(self, event: gr.EventData) -> tuple[float, float]:
        """Choose the tile and the factor of an example."""
        return EXAMPLES[int(event._data["index"])]

    def attention_flash(self, word: str, tile: int, gain: float) -> dict[str, Any]:
        """Walk over the keys of one of the six words, tile by tile."""
        scores, values = _six_words(word, gain)
        found = compute_tiled_softmax(scores, values, tile)
        rows, cells = _states(found)
        return {
            "tiles": rows,
            "states": cells.tolist(),
            "output": found.output.tolist(),
            "plain": found.plain.tolist(),
        }

    def attention_flash_memory(self) -> list[dict[str, int]]:
        """Measure the largest memory of plain and fused attention, in bytes, over the length."""
        *_, found = measure_peaks(turn=self._ctx.slots.turn)
        return [vars(peak) for peak in found]

    def _items(
        self, found: TiledSoftmax, scores: np.ndarray, values: np.ndarray, index: int
    ) -> list[MatrixItem]:
        step = found.steps[index]
        inside = np.array([step.first <= i < step.last for i in range(len(WORDS))])
        exponentials = np.zeros(len(WORDS))
        for earlier in found.steps[: index + 1]:
            exponentials[earlier.first : earlier.last] = earlier.exponentials
        later = np.arange(len(WORDS)) >= step.last
        return [
            MatrixItem(
                name="scores",
                title="s",
                rows=["s"],
                columns=list(WORDS),
                cells=scores[None],
                masked=~inside[None],
            ),
            MatrixItem(
                name="powers",
                title="exp(s − m')",
                rows=["p"],
                columns=list(WORDS),
                cells=exponentials[None],
                masked=later[None],
                shade=1.0,
            ),
            MatrixItem(
                name="values",
                title="V",
                rows=list(WORDS),
                columns=["v₁", "v₂"],
                cells=values,
                masked=np.repeat(~inside[:, None], 2, axis=1),
            ),
        ]


def _six_words(word: str, gain: float) -> tuple[np.ndarray, np.ndarray]:
    """Causal scores of one of the six words, and the values of all."""
    matrices = compute_by_hand(HandSettings()).matrices
    query = WORDS.index(word) if word in WORDS else len(WORDS) - 1
    scores = matrices["masked"][query].astype(np.float64)
    return scores * gain, matrices["v"].astype(np.float64)


def _states(found: TiledSoftmax) -> tuple[list[str], np.ndarray]:
    rows = [f"{step.first + 1}–{step.last}" for step in found.steps]
    cells = [
        [step.maximum, step.rescale, step.total, *step.output, *(step.output / step.total)]
        for step in found.steps
    ]
    return rows, np.array(cells)


def _build_gain(ctx: AppContext) -> gr.Slider:
    t = ctx.words.t
    return gr.Slider(
        1,
        200,
        value=1,
        step=1,
        label=t("attention.flash.gain"),
        info=t("attention.flash.gain_info"),
        elem_id="lab-flash-gain",
    )


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-flash-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            word = gr.Radio(
                list(WORDS),
                value=WORDS[-1],
                label=t("attention.hand.word"),
                elem_id="lab-flash-word",
            )
            tile = gr.Slider(
                1, 6, value=2, step=1, label=t("attention.flash.tile"), elem_id="lab-flash-tile"
            )
            gain = _build_gain(ctx)
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-flash-examples")
        with gr.Column(elem_classes=["figure"], min_width=0):
            stepper = build_stepper(words, elem_id="lab-flash-stepper")
            said = build_line(words, elem_id="lab-flash-said", look="text")
            matrices = build_matrices(words, elem_id="lab-flash-matrices")
            gr.HTML(t("attention.flash.state"), elem_classes=["lab-heading"])
            state = build_number_matrix(words, elem_id="lab-flash-state")
            working = build_working(words, elem_id="lab-flash-working", formula=FORMULA)
    with gr.Row(elem_classes=["lab-pair"]):
        with gr.Column(min_width=0):
            gr.HTML(t("attention.flash.counted"), elem_classes=["lab-heading"])
            counted = build_plotly_panel(
                words, elem_id="lab-flash-counted", label_key="attention.flash.counted", height=320
            )
        with gr.Column(min_width=0):
            gr.HTML(t("attention.flash.measure_title"), elem_classes=["lab-heading"])
            with gr.Row(elem_classes=["button-row"]):
                start = gr.Button(
                    t("attention.flash.start"), variant="primary", elem_id="lab-flash-start"
                )
                stop = gr.Button(t("attention.lab_stop"), elem_id="lab-flash-stop")
            measured_said = build_line(words, elem_id="lab-flash-measured-said", look="heading")
            measured = build_plotly_panel(
                words,
                elem_id="lab-flash-measured",
                label_key="attention.flash.measure_title",
                height=260,
            )
    build_note(words, "attention.look_for_flash", elem_id="lab-flash-note")
    return Parts(
        word, tile, gain, examples, stepper, said, matrices, state, working, counted,
        start, stop, measured_said, measured, seen,
    )  # fmt: skip


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = FlashHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    inputs = [parts.stepper, parts.word, parts.tile, parts.gain]
    moves = [parts.seen.seen, parts.stepper.step, parts.word.input, parts.tile.change]
    for event in (*moves, parts.gain.change):
        wire(event, on.show, inputs, parts.outputs(), trigger_mode="always_last", **options)
    wire(parts.seen.seen, on.counts, [], [parts.counted], **options)
    chosen = [parts.tile, parts.gain]
    wire(parts.examples.example, on.example, [], chosen, queue=False, **options)
    measured = [parts.measured_said, parts.measured]
    wire(parts.start.click, on.measure, [], measured, **options)
    wire(parts.stop.click, on.stop, [], [], queue=False, **options)
    expose(on.attention_flash, "attention_flash")
    expose(on.attention_flash_memory, "attention_flash_memory")
    ctx.address.register("attention", "tile", parts.tile, parse_integer(1, 6))
