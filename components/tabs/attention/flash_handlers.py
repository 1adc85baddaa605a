"""Handlers of the panel "flash": tile by tile, and bytes counted and measured."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.matrices import MatrixItem, matrices_value
from components.kit.plotly_panel import figure_message
from components.tabs.attention.drawer import Shown, fill_drawer
from components.tabs.attention.figures import make_lines
from components.tabs.attention.reading import index_of, work_id
from components.text import locale_of
from explorer.attention_lab.by_hand import WORDS, HandSettings, compute_by_hand
from explorer.attention_lab.flash import (
    TiledSoftmax,
    compute_tiled_softmax,
    count_traffic,
    measure_peaks,
)
from explorer.attention_lab.snippets import (
    make_flash_snippet,
    make_peaks_snippet,
    make_traffic_snippet,
)

EXAMPLES = ((1, 1.0), (2, 1.0), (3, 60.0))  # keys a tile, factor on the scores
LENGTHS = tuple(2**n for n in range(7, 18))
D_HEAD, TILE = 64, 128
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
MEGABYTE = 10**6


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

    def counts(self, request: gr.Request) -> tuple[Any, ...]:
        """Bytes stored and moved by count, over the length."""
        locale, say = locale_of(request), self._ctx.words.say
        traffic = [count_traffic(n, D_HEAD, TILE) for n in LENGTHS]
        names = ("plain_stored", "tiled_stored", "plain_moved", "tiled_moved")
        said = [say(locale, f"attention.flash.{name}") for name in names]
        cells = np.array([[getattr(t, name) for name in names] for t in traffic], np.float64)
        figure = make_lines(
            LENGTHS,
            dict(zip(said, (cells.T / MEGABYTE).tolist(), strict=True)),
            x_title=say(locale, "attention.flash.axis_tokens"),
            y_title=say(locale, "attention.flash.axis_bytes"),
            log_x=True,
            log_y=True,
        )
        drawer = self._bytes_drawer(LENGTHS, said, cells, locale)
        python = make_traffic_snippet(LENGTHS, D_HEAD, TILE)
        shown = replace(drawer, function=count_traffic, python=python, png="lab-flash-counted")
        return figure_message(figure), *fill_drawer(self._ctx, shown)

    def measure(self, request: gr.Request) -> Iterator[tuple[Any, ...]]:
        """Measure the peak of both ways, length by length."""
        locale, say = locale_of(request), self._ctx.words.say
        with self._ctx.stops.armed(work_id(request, "flash")) as switch:
            turn = partial(self._ctx.slots.turn, cancelled=switch.is_set)
            for found in measure_peaks(turn=turn, stopped=switch.is_set):
                names = [say(locale, f"attention.flash.{name}") for name in ("eager", "fused")]
                lengths = [peak.n_tokens for peak in found]
                cells = np.array([[p.eager_bytes, p.fused_bytes] for p in found], np.float64)
                figure = make_lines(
                    lengths,
                    dict(zip(names, (cells.T / MEGABYTE).tolist(), strict=True)),
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
                drawer = self._bytes_drawer(lengths, names, cells, locale)
                yield said, figure_message(figure), *fill_drawer(self._ctx, drawer)

    def _bytes_drawer(
        self, lengths: Sequence[int], names: Sequence[str], cells: np.ndarray, locale: str
    ) -> Shown:
        unit = self._ctx.words.say(locale, "attention.flash.bytes")
        return Shown(
            tensor="q kᵀ, softmax",
            cells=cells,
            rows=[f"{n:,}" for n in lengths],
            columns=[f"{name}, {unit}" for name in names],
            function=measure_peaks,
            test=TEST_FILE,
            python=make_peaks_snippet(),
            png="lab-flash-measured",
            digits=0,
        )

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
