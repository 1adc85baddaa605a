"""The part "one pair" of the panel "heads": what a token reads, its vectors, what flows on."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.errors import wire
from components.kit.arcs import build_arcs
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.numbers import Number
from components.kit.working import Working, build_exports, build_working
from components.tabs.attention.drawer import Shown as Numbers
from components.tabs.attention.drawer import draw_map, fill_drawer
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.overview_views import make_row_arcs
from components.tabs.attention.views import Shown
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.head_kinds import compute_pair, compute_rollout
from explorer.attention_lab.snippets import make_pair_snippet, make_rollout_snippet

PAIR_FORMULA = r"""
$$s_{ts} = \frac{q_t \cdot k_s}{\sqrt d} \qquad
A_{ts} = \frac{e^{s_{ts}}}{\sum_{u \le t} e^{s_{tu}}} \qquad z_t = \sum_s A_{ts}\, v_s$$
"""
ROLLOUT_FORMULA = r"""
$$R_\ell = \tfrac12\bigl(\bar A_\ell + I\bigr) R_{\ell - 1}, \qquad R_{-1} = I$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_head_kinds.py"
COLUMNS = ("q", "k", "q · k", "v")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the part."""

    arcs: gr.HTML
    key: gr.Number
    said: gr.HTML
    vectors: gr.HTML
    pair: Working
    start: gr.Button
    map: gr.HTML
    rollout: Working

    def pair_outputs(self) -> list[Any]:
        """What `PairHandlers.pair` fills."""
        return [self.arcs, self.said, self.vectors, *self.pair.outputs]


class PairHandlers:
    """Handlers of the part's events.

    Args:
        ctx: The page's context.
        heads: Those of the panel, which keep what was read.
    """

    def __init__(self, ctx: AppContext, heads: HeadsHandlers) -> None:
        self._ctx = ctx
        self._heads = heads

    def pair(
        self, shown: Shown, key: float | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """What the chosen token reads, as arcs, and its vectors beside those of a key."""
        if not shown.text or shown.layer < 0:
            return (None, *(gr.skip(),) * 5)
        maps = self._heads.maps(shown, owner, request)
        position = min(max(int(key or 0), 0), len(maps.ids) - 1)
        found = compute_pair(maps, shown.layer, shown.head, shown.query, position)
        said = self._ctx.words.say(
            locale_of(request),
            "attention.pair_said",
            query=maps.labels[shown.query],
            key=maps.labels[position],
            sum=f"{found.products.sum():.4f}",
            scale=f"{found.scale:.4f}",
            score=f"{found.score:.4f}",
            weight=f"{found.weight:.4f}",
        )
        if found.capped != found.score:
            capped = self._ctx.words.say(
                locale_of(request), "attention.pair_capped", capped=f"{found.capped:.4f}"
            )
            said = f"{said} {capped}"
        parts = (found.query, found.key, found.products, found.value)
        cells = np.full((max(len(part) for part in parts), len(parts)), np.nan, np.float32)
        for column, part in enumerate(parts):  # a value may be narrower than a key
            cells[: len(part), column] = part
        rows = [f"d{i}" for i in range(len(cells))]
        drawer = Numbers(
            tensor=f"blocks.{shown.layer}.attn.q, .k, .v",
            cells=cells,
            rows=rows,
            columns=COLUMNS,
            function=compute_pair,
            test=TEST_FILE,
            python=make_pair_snippet(
                _reading(shown), shown.layer, shown.head, shown.query, position
            ),
        )
        table = {
            "rows": rows,
            "cols": list(COLUMNS),
            "cells": [[None if np.isnan(x) else x for x in row] for row in cells.tolist()],
            "digits": 4,
        }
        return (make_row_arcs(shown, maps), said, table, *fill_drawer(self._ctx, drawer))

    def key(self, event: gr.EventData) -> int:
        """The key of the cell that was clicked in the map."""
        return int(event._data["column"])

    def rollout(self, shown: Shown, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """What flows into each token by the end of the layer that is shown."""
        if not shown.text:
            return (gr.skip(),) * 4
        maps = self._heads.maps(shown, owner, request)
        flow = compute_rollout(maps, shown.layer)
        title = self._ctx.words.say(
            locale_of(request), "attention.rollout_title", layer=shown.layer
        )
        drawer = Numbers(
            tensor="blocks.*.attn.pattern",
            cells=flow,
            rows=maps.labels,
            columns=maps.labels,
            function=compute_rollout,
            test=TEST_FILE,
            python=make_rollout_snippet(_reading(shown), shown.layer),
            png="lab-rollout",
        )
        big = draw_map(self._ctx, flow, maps.labels, title, causal=maps.attention.causal)
        return (big, *fill_drawer(self._ctx, drawer))


def _reading(shown: Shown) -> tuple[str, str, int]:
    return shown.source, shown.text, shown.first


def build(ctx: AppContext) -> Parts:
    """Build the part, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["lab-pair"]):
        with gr.Column(min_width=0):
            gr.HTML(t("attention.arcs_title"), elem_classes=["lab-heading"])
            arcs = build_arcs(words, elem_id="lab-arcs")
            picture = {"csv": None, "png": "lab-arcs", "python": None}
            build_exports(words, elem_id="lab-arcs-exports", value=picture)
        with gr.Column(min_width=0):
            gr.HTML(t("attention.pair_title"), elem_classes=["lab-heading"])
            key = Number(
                0,
                precision=0,
                minimum=0,
                label=t("attention.pair_key"),
                info=t("attention.pair_key_info"),
                elem_id="lab-pair-key",
            )
            said = build_line(words, elem_id="lab-pair-said", look="text")
            vectors = build_number_matrix(words, elem_id="lab-pair")
            pair = build_working(words, elem_id="lab-pair-working", formula=PAIR_FORMULA)
    gr.HTML(t("attention.rollout"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["button-row"]):
        start = gr.Button(t("attention.rollout_start"), elem_id="lab-rollout-start")
    big = build_heatmap(words, elem_id="lab-rollout")
    rollout = build_working(
        words, elem_id="lab-rollout-working", formula=ROLLOUT_FORMULA, png="lab-rollout"
    )
    return Parts(arcs, key, said, vectors, pair, start, big, rollout)


def wire_part(
    ctx: AppContext,
    head: TabHead,
    heads: HeadsHandlers,
    parts: Parts,
    shown: gr.State,
    big: gr.HTML,
    outputs: list[Any],
) -> None:
    """Connect the part's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        heads: Handlers of the panel above.
        parts: What `build` gave.
        shown: What the panel above shows.
        big: Its large map.
        outputs: What its handlers fill.
    """
    on = PairHandlers(ctx, heads)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    # whatever the panel above goes to, arcs and vectors follow
    for event in (parts.key.change, shown.change):
        wire(event, on.pair, [shown, parts.key, ctx.owner], parts.pair_outputs(), **options)
    wire(big.row_select, on.key, [], [parts.key], queue=False, **options)
    wire(parts.arcs.arc_click, heads.query, [shown, ctx.owner], outputs, **options)
    flow = [parts.map, *parts.rollout.outputs]
    wire(parts.start.click, on.rollout, [shown, ctx.owner], flow, **options)
