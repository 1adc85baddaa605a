"""The lower part of the panel "heads": all heads by what they do, and one pair of tokens."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from components.address import parse_choice
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.arcs import build_arcs
from components.kit.bars import build_bar_list
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import Shown as Numbers
from components.tabs.attention.drawer import fill_drawer
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.overview_views import make_head_bars, make_row_arcs
from components.tabs.attention.reading import Reader
from components.tabs.attention.views import Shown
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.head_kinds import (
    KINDS,
    SHARES,
    compute_head_kinds,
    compute_pair,
    compute_random_maps,
    compute_rollout,
    rank_heads,
)
from explorer.attention_lab.snippets import make_kinds_snippet
from explorer.attention_maps import AttentionMaps, compute_attention

MOST_RANKED = 15
READINGS = ("text", "random")
FORMULA = r"""
$$\text{induction} = \operatorname{mean}_t \sum_{s < t - 1,\; x_s = x_t} A_{t,\,s+1} \qquad
\text{entropy} = -\operatorname{mean}_t \sum_s A_{ts} \ln A_{ts}$$
$$\text{rollout: } R_\ell = \tfrac12\bigl(\bar A_\ell + I\bigr) R_{\ell - 1}$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_head_kinds.py"


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the part."""

    kind: gr.Dropdown
    reading: gr.Radio
    least: gr.Slider
    other_text: gr.Textbox
    other_model: gr.Textbox
    said: gr.HTML
    map: gr.HTML
    bars: gr.HTML
    working: Working
    arcs: gr.HTML
    key: gr.Number
    pair_said: gr.HTML
    pair: gr.HTML
    roll: gr.Button
    rollout: gr.HTML
    places: gr.State
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `OverviewHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [self.said, self.map, self.bars, *drawer, self.places]


class OverviewHandlers:
    """Handlers of the part's events.

    Args:
        ctx: The page's context.
        heads: Those of the panel, which keep what was read.
    """

    def __init__(self, ctx: AppContext, heads: HeadsHandlers) -> None:
        self._ctx = ctx
        self._heads = heads
        self._reader = Reader(ctx)

    def show(
        self,
        shown: Shown,
        kind: str,
        reading: str,
        least: float,
        other_text: str,
        other_model: str,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Score every head, or the difference from another text or model."""
        if not shown.text:
            return (gr.skip(),) * 7
        locale, say = locale_of(request), self._ctx.words.say
        scores = self._scores(shown.source, shown.text, kind, reading, owner, request)
        compared = bool(other_text.strip() or other_model.strip())
        if compared:
            source, text = other_model.strip() or shown.source, other_text.strip() or shown.text
            other = self._scores(source, text, kind, reading, owner, request)
            scores = _difference(scores, other)
        ranked = rank_heads(np.abs(scores), MOST_RANKED, least or None)
        most = 1.0 if kind in SHARES and not compared else _largest(scores)
        rows = [f"L{i}" for i in range(scores.shape[0])]
        columns = [f"h{i}" for i in range(scores.shape[1])]
        cells = np.abs(np.nan_to_num(scores))
        matrix = self._ctx.routes.publish(
            cells, row_labels=rows, column_labels=columns, high=max(most, 1e-9)
        )
        name = say(locale, f"attention.kind.{kind}")
        title = say(locale, "attention.kind_difference", kind=name) if compared else name
        drawer = Numbers(
            tensor="blocks.*.attn.pattern",
            cells=scores,
            rows=rows,
            columns=columns,
            function=compute_head_kinds,
            test=TEST_FILE,
            python=make_kinds_snippet(shown.source, shown.text, kind, reading == "random"),
            png="lab-overview-map",
        )
        return (
            say(locale, f"attention.kind_info.{kind}"),
            {
                "matrix": matrix,
                "rows": rows,
                "cols": columns,
                "causal": False,
                "title": title,
                "max": most,
            },
            {"bars": make_head_bars(ranked, scores), "max": most, "digits": 4},
            *fill_drawer(self._ctx, drawer),
            tuple((h.layer, h.head) for h in ranked),
        )

    def ranked(
        self,
        places: tuple[tuple[int, int], ...],
        shown: Shown,
        owner: str | None,
        event: gr.EventData,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Enlarge a head of the ranking."""
        layer, head = places[int(event._data["index"])]
        return self._heads.place(shown, owner, layer, head, request)

    def cell(
        self, shown: Shown, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Enlarge the head that was clicked in the overview."""
        layer, head = int(event._data["index"]), int(event._data["column"])
        return self._heads.place(shown, owner, layer, head, request)

    def pair(
        self, shown: Shown, key: float | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """What the chosen token reads, as arcs, and its vectors beside those of a key."""
        if not shown.text or shown.layer < 0:
            return None, gr.skip(), gr.skip()
        locale, say = locale_of(request), self._ctx.words.say
        maps = self._heads.maps(shown, owner, request)
        position = min(max(int(key or 0), 0), len(maps.ids) - 1)
        found = compute_pair(maps, shown.layer, shown.head, shown.query, position)
        said = say(
            locale,
            "attention.pair_said",
            query=maps.labels[shown.query],
            key=maps.labels[position],
            sum=f"{found.products.sum():.4f}",
            scale=f"{found.scale:.4f}",
            score=f"{found.score:.4f}",
            weight=f"{found.weight:.4f}",
        )
        n = len(found.query)
        value = [*found.value.tolist()[:n], *[None] * max(0, n - len(found.value))]
        columns = zip(
            found.query.tolist(), found.key.tolist(), found.products.tolist(), value, strict=True
        )
        return (
            make_row_arcs(shown, maps),
            said,
            {
                "rows": [f"d{i}" for i in range(n)],
                "cols": ["q", "k", "q · k", "v"],
                "cells": [list(row) for row in columns],
                "digits": 4,
            },
        )

    def rollout(self, shown: Shown, owner: str | None, request: gr.Request) -> Any:
        """What flows into each token by the end of the layer that is shown."""
        if not shown.text:
            return gr.skip()
        maps = self._heads.maps(shown, owner, request)
        flow = compute_rollout(maps, shown.layer)
        matrix = self._ctx.routes.publish(flow, row_labels=maps.labels, column_labels=maps.labels)
        title = self._ctx.words.say(
            locale_of(request), "attention.rollout_title", layer=shown.layer
        )
        return {
            "matrix": matrix,
            "rows": list(maps.labels),
            "causal": maps.attention.causal,
            "title": title,
            "max": 1,
        }

    def attention_heads(
        self, text: str, kind: str, random: bool, request: gr.Request
    ) -> dict[str, Any]:
        """Score every head of the page's first model by what it does, (layers, heads)."""
        reading = "random" if random else "text"
        source = self._ctx.source_of(None)
        scores = self._scores(source, text, kind, reading, None, request)
        return {"scores": [[None if np.isnan(x) else x for x in row] for row in scores.tolist()]}

    def _scores(
        self,
        source: str,
        text: str,
        kind: str,
        reading: str,
        owner: str | None,
        request: gr.Request,
    ) -> NDArray[np.float64]:
        """Scores of all kinds are kept with the text: changing the kind reads nothing again."""
        kind = kind if kind in KINDS else KINDS[0]
        with self._reader.open(source, owner, request) as (_, loaded):
            turn = self._ctx.slots.turn
            maps: AttentionMaps
            if reading == "random":
                maps = compute_random_maps(loaded, turn=turn)
            else:
                maps = compute_attention(loaded, text, turn=turn)
        return compute_head_kinds(maps).scores[kind]


def _difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the layers and heads that both models have."""
    rows, columns = (min(a, b) for a, b in zip(first.shape, second.shape, strict=True))
    return first[:rows, :columns] - second[:rows, :columns]


def _largest(scores: NDArray[np.float64]) -> float:
    return max(float(np.nan_to_num(np.abs(scores)).max()), 1e-9)


def build(ctx: AppContext) -> Parts:
    """Build the part, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-overview-seen")
    gr.HTML(t("attention.overview_title"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            kind, reading, least, other_text, other_model = _build_controls(ctx)
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="lab-overview-said", look="text")
            with gr.Row(elem_classes=["lab-pair"]):
                with gr.Column(min_width=0):
                    big = build_heatmap(words, elem_id="lab-overview-map")
                with gr.Column(min_width=0):
                    bars = build_bar_list(words, elem_id="lab-overview-bars", clickable=True)
            working = build_working(
                words, elem_id="lab-overview-working", formula=FORMULA, png="lab-overview-map"
            )
    arcs, key, pair_said, pair, roll, rollout, places = _build_pair(ctx)
    return Parts(
        kind,
        reading,
        least,
        other_text,
        other_model,
        said,
        big,
        bars,
        working,
        arcs,
        key,
        pair_said,
        pair,
        roll,
        rollout,
        places,
        seen,
    )


def _build_controls(ctx: AppContext) -> tuple[Any, ...]:
    t = ctx.words.t
    kinds = [(t(f"attention.kind.{kind}"), kind) for kind in KINDS]
    kind = gr.Dropdown(
        kinds, value="induction", label=t("attention.kind_label"), elem_id="lab-kind"
    )
    readings = [(t(f"attention.reading.{name}"), name) for name in READINGS]
    reading = gr.Radio(
        readings, value="text", label=t("attention.reading_label"), elem_id="lab-reading"
    )
    least = gr.Slider(0, 1, value=0, step=0.05, label=t("attention.least"), elem_id="lab-least")
    other_text, other_model = (
        gr.Textbox(
            "",
            label=t(f"attention.other_{name}"),
            info=t(f"attention.other_{name}_info"),
            elem_id=f"lab-other-{name}",
        )
        for name in ("text", "model")
    )
    return kind, reading, least, other_text, other_model


def _build_pair(ctx: AppContext) -> tuple[Any, ...]:
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["lab-pair"]):
        with gr.Column(min_width=0):
            gr.HTML(t("attention.arcs_title"), elem_classes=["lab-heading"])
            arcs = build_arcs(words, elem_id="lab-arcs")
        with gr.Column(min_width=0):
            gr.HTML(t("attention.pair_title"), elem_classes=["lab-heading"])
            key = gr.Number(
                0, precision=0, minimum=0, label=t("attention.pair_key"), elem_id="lab-pair-key"
            )
            pair_said = build_line(words, elem_id="lab-pair-said", look="text")
            pair = build_number_matrix(words, elem_id="lab-pair")
        with gr.Column(min_width=0):
            gr.HTML(t("attention.rollout"), elem_classes=["lab-heading"])
            roll = gr.Button(t("attention.rollout_start"), elem_id="lab-rollout-start")
            rollout = build_heatmap(words, elem_id="lab-rollout")
    return arcs, key, pair_said, pair, roll, rollout, gr.State(())


def wire_part(
    ctx: AppContext,
    head: TabHead,
    heads: HeadsHandlers,
    parts: Parts,
    shown: gr.State,
    outputs: list[Any],
) -> None:
    """Connect the part's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        heads: Handlers of the panel above.
        parts: What `build` gave.
        shown: What the panel above shows.
        outputs: What its handlers fill.
    """
    on = OverviewHandlers(ctx, heads)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    compared = [parts.other_text, parts.other_model]
    inputs = [shown, parts.kind, parts.reading, parts.least, *compared, ctx.owner]
    moves = [parts.seen.seen, parts.kind.input, parts.reading.input, parts.least.release]
    for event in (*moves, parts.other_text.submit, parts.other_model.submit):
        wire(event, on.show, inputs, parts.outputs(), **options)
    places = [parts.places, shown, ctx.owner]
    wire(parts.bars.bar_click, on.ranked, places, outputs, **options)
    wire(parts.map.row_select, on.cell, [shown, ctx.owner], outputs, **options)
    pair = [shown, parts.key, ctx.owner]
    # whatever the panel above goes to, arcs and vectors follow
    for event in (parts.key.input, shown.change):
        wire(event, on.pair, pair, [parts.arcs, parts.pair_said, parts.pair], **options)
    wire(parts.arcs.arc_click, heads.query, [shown, ctx.owner], outputs, **options)
    wire(parts.roll.click, on.rollout, [shown, ctx.owner], [parts.rollout], **options)
    expose(on.attention_heads, "attention_heads")
    ctx.address.register("attention", "kind", parts.kind, parse_choice(KINDS))
