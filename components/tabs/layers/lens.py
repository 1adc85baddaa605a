"""The panel "lens": what the model would say if it stopped after each layer."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.kit.cards import build_note
from components.kit.lens_grid import build_lens_grid
from components.kit.line import build_line
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.layers.figures import rank_message
from components.tabs.layers.place import place_within, say_target
from components.tabs.layers.rows import join_lines, write_head, write_row
from components.text import locale_of
from explorer.inspector_snippets import make_lens_snippet
from explorer.lens_grid import MOST_TOKENS, LensGrid, LensLayer, stream_lens_grid
from explorer.prompts import read_prompt
from explorer.snippets import source_file_of

FORMULA = r"""
$$p_l = \mathrm{softmax}\big(W_U \cdot \mathrm{norm}_{\text{final}}(x_l)\big)
\qquad x_l = \text{stream after layer } l$$
"""
FIRST_S, EVERY_S = 0.3, 0.5  # an update of the page, at most so often

# What the panel shows when there is no text, or none that it can read.
NOTHING: tuple[Any, ...] = ("", "", None, None, None, dict(NO_EXPORTS))


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    stop: gr.Button
    said: gr.HTML
    grid: gr.HTML
    chart: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        return [self.said, self.grid, self.chart, drawer.facts, drawer.table, drawer.exports]


def build(asking: Asking, position: Any) -> None:
    """Build the panel and connect its events.

    Args:
        asking: The question of the tab.
        position: The control of the token that is looked at.
    """
    words = asking.ctx.words
    with gr.Row(elem_classes=["button-row"]):
        stop = gr.Button(words.t("layers.stop"), elem_id="lens-stop", min_width=0)
    said = build_line(words, elem_id="lens-said", look="help")
    grid = build_lens_grid(words, elem_id="lens-grid")
    chart = build_plotly_panel(
        words, elem_id="lens-chart", label_key="layers.lens_label", height=240
    )
    working = build_working(words, elem_id="lens-working", formula=FORMULA, png="lens-grid")
    build_note(words, "layers.look_for_lens", elem_id="lens-note")
    parts = Parts(stop, said, grid, chart, working)
    ctx, held, options = asking.ctx, asking.held["lens"], asking.options
    on = LensHandlers(asking)
    wire(held.change, on.read, [held, ctx.owner], parts.outputs(), nothing=NOTHING, **options)
    wire(stop.click, asking.stopper("lens"), [], [], queue=False, **options)
    wire(grid.cell, on.cell, [], [position], queue=False, **options)
    expose(on.layers_lens, "layers_lens")


class LensHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def cell(self, event: gr.EventData) -> int:
        """Look at the token of the clicked column."""
        return int(event._data["column"])

    def read(self, ask: Ask, owner: str | None, request: gr.Request) -> Iterator[tuple[Any, ...]]:
        """Read layer by layer, and show what is there already."""
        if not ask.text:
            yield NOTHING
            return
        ctx, locale = self._ctx, locale_of(request)
        shown_at, lens, lines = time.monotonic() - EVERY_S + FIRST_S, None, list[str]()
        with (
            self._asking.working("lens", request) as turn,
            ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded,
        ):
            ids = read_prompt(loaded, ask.text, most_tokens=MOST_TOKENS)
            for lens in stream_lens_grid(
                loaded, ids, position=place_within(ask, ids), target=ask.target, turn=turn
            ):
                head = make_head(lens, ctx.words.say(locale, "layers.layer"))
                lines.append(make_line(lens.layers[-1]))
                if time.monotonic() - shown_at >= EVERY_S:
                    shown_at = time.monotonic()
                    yield (gr.skip(), join_lines(head, lines), *[gr.skip()] * 4)
        assert lens is not None
        yield (self._say(lens, locale), join_lines(head, lines), *self._rest(ask, lens, locale))

    def layers_lens(
        self, text: str, request: gr.Request, position: int = -1, target: str = ""
    ) -> dict[str, Any]:
        """What each layer would say at one position: tokens, probabilities, rank of a word."""
        ctx = self._ctx
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            ids = read_prompt(loaded, text, most_tokens=MOST_TOKENS)
            *_, lens = stream_lens_grid(
                loaded, ids, position=position, target=target, turn=ctx.slots.turn
            )
        at = lens.position
        return {
            "stages": [layer.stage for layer in lens.layers],
            "tokens": [list(layer.top_labels[at]) for layer in lens.layers],
            "probabilities": [layer.top_probabilities[at].tolist() for layer in lens.layers],
            "entropies": [float(layer.entropies_nats[at]) for layer in lens.layers],
            "target": lens.target.label,
            "ranks": [int(layer.target_ranks[at]) + 1 for layer in lens.layers],
        }

    def _say(self, lens: LensGrid, locale: str) -> str:
        say = self._ctx.words.say
        place = {"n": len(lens.ids), "model": lens.model_name, "place": lens.position}
        said = say(locale, "layers.lens_said", token=lens.labels[lens.position], **place)
        followed = say_target(self._ctx.words, locale, lens.target)
        return f"{said} · {followed}"

    def _rest(self, ask: Ask, lens: LensGrid, locale: str) -> tuple[Any, ...]:
        at, layers = lens.position, lens.layers
        stages = [layer.stage for layer in layers]
        ranks = [int(layer.target_ranks[at]) + 1 for layer in layers]
        n_tokens = len(lens.ids)
        return (
            rank_message(self._ctx.words, locale, stages, ranks, lens.target.label),
            {
                "tensor": "blocks.*.resid_post",
                "shape": [len(stages), n_tokens],
                "file": source_file_of(stream_lens_grid),
                "test": "tests/explorer/test_inspector_layers.py",
            },
            self._table(lens, ranks, locale),
            {
                "csv": self._publish(lens),
                "png": "lens-grid",
                "python": make_lens_snippet(ask.source, ask.text, at, ask.target),
            },
        )

    def _table(self, lens: LensGrid, ranks: list[int], locale: str) -> dict[str, Any]:
        """At the chosen position: likeliest tokens of each layer, and the followed one."""
        say, at = self._ctx.words.say, lens.position
        columns: list[str] = []
        for place in (1, 2, 3):
            columns += [
                say(locale, "layers.lens_token", place=place),
                say(locale, "layers.probability"),
            ]
        columns += [say(locale, f"layers.lens_{name}") for name in ("entropy", "rank", "target")]
        cells: list[list[Any]] = []
        for layer, rank in zip(lens.layers, ranks, strict=True):
            row: list[Any] = []
            for label, share in list(
                zip(layer.top_labels[at], layer.top_probabilities[at].tolist(), strict=True)
            )[:3]:
                row += [label, share]
            row += [float(layer.entropies_nats[at]), str(rank)]
            cells.append([*row, float(layer.target_probabilities[at])])
        return {
            "corner": say(locale, "layers.layer"),
            "rows": [layer.stage for layer in lens.layers],
            "cols": columns,
            "tokens": [0, 2, 4],
            "cells": cells,
            "digits": 3,
        }

    def _publish(self, lens: LensGrid) -> str:
        """Of every layer and token: the best one's probability, entropy, the followed one's."""
        rows, names = [], []
        for layer in lens.layers:
            for i, label in enumerate(lens.labels):
                names.append(f"{layer.stage} {label} > {layer.top_labels[i][0]}")
                rows.append(
                    [
                        layer.top_probabilities[i, 0],
                        layer.entropies_nats[i],
                        layer.target_ranks[i] + 1,
                        layer.target_probabilities[i],
                    ]
                )
        columns = ("probability", "entropy_nats", "target_rank", "target_probability")
        return self._ctx.routes.publish(
            np.array(rows, dtype=np.float64), row_labels=names, column_labels=columns
        )


def make_head(lens: LensGrid, corner: str) -> str:
    """First line of the grid's value."""
    return write_head(lens.labels, corner, n_rows=lens.n_stages, at=lens.position)


def make_line(layer: LensLayer) -> str:
    """One row of the grid's value."""
    return write_row(
        layer.stage,
        [labels[0] for labels in layer.top_labels],
        layer.top_probabilities[:, 0],
        layer.target_ranks,
        layer.entropies_nats,
    )
