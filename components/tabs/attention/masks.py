"""The panel "masks": a mask of any kind, or painted by hand, applied to the loaded model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
import numpy as np

from components.address import parse_choice, parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.mask_painter import build_mask_painter
from components.kit.number_matrix import build_number_matrix
from components.kit.pickers import build_picker
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import draw_map, fill_next_drawer
from components.tabs.attention.reading import (
    FIRST_TEXT,
    Reader,
    index_of,
    make_probability_bars,
    within,
)
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.masks import (
    MASK_KINDS,
    MOST_TOKENS,
    KeptBytes,
    MaskedRun,
    MaskSettings,
    build_mask,
    compute_reach,
    count_kept,
    count_kept_bytes,
    masks_of_layers,
    parse_mask,
    read_masked_text,
    run_masked,
    write_mask,
)
from explorer.attention_lab.snippets import make_mask_snippet

EXAMPLE_KEYS = tuple(f"attention.mask.example_{name}" for name in ("window", "sinks", "mixed"))
EXAMPLES = (
    MaskSettings(kind="window", width=4),
    MaskSettings(kind="sinks", width=4, count=1),
    MaskSettings(kind="mixed", width=4, ratio=5),
)
VIEWS = ("masked", "own", "change")  # which weights the map shows
FORMULA = r"""
$$A = \mathrm{softmax}\bigl(S + M\bigr), \qquad
M_{ij} = \begin{cases} 0 & \text{may attend} \\ -\infty & \text{otherwise} \end{cases}$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_masks.py"


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    examples: gr.HTML
    form: Form
    layer: gr.HTML
    head: gr.HTML
    painter: gr.HTML
    view: gr.Radio
    map: gr.HTML
    bars: gr.HTML
    said: gr.HTML
    reach: gr.HTML
    working: Working
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `MaskHandlers.show` fills."""
        views = [self.painter, self.map, self.bars, self.said, self.reach]
        kind = self.form.controls["kind"]
        return [self.layer, self.head, *views, *self.working.outputs, kind]


class MaskHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._reader = Reader(ctx)

    def show(
        self,
        text: str,
        layer: dict[str, int] | None,
        head: dict[str, int] | None,
        painted: dict[str, Any] | None,
        view: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
        settings: MaskSettings,
    ) -> tuple[Any, ...]:
        """Build the mask, read the text with it and without, show what changed."""
        locale = locale_of(request)
        with self._reader.open(model_id, owner, request) as (source, loaded):
            read = read_masked_text(loaded, text)
            n = len(read.ids)
            kept = _painted(settings, painted, n)
            mask = build_mask(settings, n, read.ends) if kept is None else kept
            n_layers, n_heads = loaded.config.n_layers, loaded.config.attention.n_heads
            at = within(index_of(layer) if layer else n_layers // 2, n_layers)
            of = within(index_of(head), n_heads)
            masks = masks_of_layers(settings, mask, n_layers)
            found = run_masked(
                loaded,
                read.ids,
                read.labels,
                masks,
                layer=at["index"],
                head=of["index"],
                turn=self._ctx.slots.turn,
            )
            held = count_kept_bytes(loaded, masks)
        snippet = make_mask_snippet(
            source, text, settings, write_mask(mask), at["index"], of["index"]
        )
        words = self._ctx.words
        return (
            at,
            of,
            {"labels": list(found.labels), "rows": write_mask(mask)},
            self._map(found, view, at["index"], of["index"], locale),
            make_probability_bars(found, words, locale),
            self._said(found, held, read.n_left_out, locale),
            self._reach(masks, held, locale),
            *fill_next_drawer(
                self._ctx,
                found,
                locale,
                function=run_masked,
                test=TEST_FILE,
                python=snippet,
                png="lab-mask-map",
            ),
            gr.skip(),
        )

    def paint(
        self,
        text: str,
        layer: dict[str, int] | None,
        head: dict[str, int] | None,
        painted: dict[str, Any] | None,
        view: str,
        model_id: str | None,
        owner: str | None,
        event: gr.EventData,
        request: gr.Request,
        settings: MaskSettings,
    ) -> tuple[Any, ...]:
        """Apply what was painted, whatever kind was chosen before."""
        rows = {"rows": list(event._data["rows"])}
        values = self.show(
            text, layer, head, rows, view, model_id, owner, request,
            replace(settings, kind="painted"),
        )  # fmt: skip
        return (*values[:-1], "painted")

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Choose the settings of an example."""
        return tuple(vars(EXAMPLES[int(event._data["index"])]).values())

    def attention_mask(
        self, text: str, layer: int, head: int, request: gr.Request, *, settings: MaskSettings
    ) -> dict[str, Any]:
        """Read a text with the page's first model under a mask: weights and next tokens."""
        with self._reader.open(None, None, request) as (_, loaded):
            read = read_masked_text(loaded, text)
            mask = build_mask(settings, len(read.ids), read.ends)
            masks = masks_of_layers(settings, mask, loaded.config.n_layers)
            held = count_kept_bytes(loaded, masks)
            found = run_masked(
                loaded, read.ids, read.labels, masks,
                layer=layer, head=head, turn=self._ctx.slots.turn,
            )  # fmt: skip
        return {
            "labels": list(found.labels),
            "mask": write_mask(mask),
            "weights": found.pattern.tolist(),
            "tokens": list(found.tokens),
            "before": list(found.before),
            "after": list(found.after),
            "divergence_nats": found.divergence_nats,
            "reach": list(compute_reach(masks)),
            "kept": list(count_kept(masks)),
            "kept_bytes": list(held.layers),
        }

    def _reach(self, masks: Sequence[np.ndarray], held: KeptBytes, locale: str) -> dict[str, Any]:
        say, rows = self._ctx.words.say, (compute_reach(masks), count_kept(masks), held.layers)
        return {
            "rows": [say(locale, f"attention.mask.{key}") for key in ("reach", "kept", "bytes")],
            "cols": [f"L{i}" for i in range(len(masks))],
            "cells": [list(row) for row in rows],
            "digits": 0,
        }

    def _map(
        self, found: MaskedRun, view: str, layer: int, head: int, locale: str
    ) -> dict[str, Any]:
        change = found.pattern - found.pattern_before
        cells = {"own": found.pattern_before, "change": change}.get(view, found.pattern)
        key = f"attention.mask.map_{view if view in VIEWS else VIEWS[0]}"
        title = self._ctx.words.say(locale, key, layer=layer, head=head)
        return draw_map(self._ctx, cells, found.labels, title, signed=view == "change")

    def _said(self, found: MaskedRun, held: KeptBytes, n_left_out: int, locale: str) -> str:
        say = self._ctx.words.say
        parts = [
            say(
                locale,
                "attention.mask.said",
                divergence=f"{found.divergence_nats:.4f}",
                bytes=f"{sum(held.layers):,}",
                all=f"{held.own:,}",
                share=f"{100 * sum(held.layers) / held.own:.0f}",
            )
        ]
        if found.blind:
            named = ", ".join(str(i) for i in found.blind[:8])
            parts.append(say(locale, "attention.mask.blind", tokens=named))
        if n_left_out:
            parts.append(say(locale, "attention.mask.cut", most=MOST_TOKENS, left=n_left_out))
        return " ".join(parts)


def _painted(
    settings: MaskSettings, painted: dict[str, Any] | None, n_tokens: int
) -> np.ndarray | None:
    """The painted mask, where one is asked for and fits; a causal one to begin with."""
    if settings.kind != "painted":
        return None
    rows = (painted or {}).get("rows") or []
    if len(rows) != n_tokens:
        return build_mask(MaskSettings(), n_tokens)
    return parse_mask(rows)


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-mask-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            text = gr.Textbox(
                FIRST_TEXT, label=t("attention.text"), lines=3, max_lines=8, elem_id="lab-mask-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-mask-examples")
            form = build_form(words, MaskSettings, prefix="attention.mask", elem_id="lab-mask")
            layer = build_picker(words, "layer", elem_id="lab-mask-layer")
            head = build_picker(words, "head", elem_id="lab-mask-head")
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Row(elem_classes=["lab-pair"]):
                with gr.Column(min_width=0):
                    gr.HTML(t("attention.mask.paint"), elem_classes=["lab-heading"])
                    painter = build_mask_painter(words, elem_id="lab-mask-painter")
                with gr.Column(min_width=0):
                    views = [(t(f"attention.mask.view.{name}"), name) for name in VIEWS]
                    view = gr.Radio(
                        views,
                        value=VIEWS[0],
                        label=t("attention.mask.view"),
                        elem_id="lab-mask-view",
                    )
                    big = build_heatmap(words, elem_id="lab-mask-map")
            said = build_line(words, elem_id="lab-mask-said", look="text")
            gr.HTML(t("attention.lab_next"), elem_classes=["lab-heading"])
            bars = build_bar_list(words, elem_id="lab-mask-bars")
            gr.HTML(t("attention.mask.layers"), elem_classes=["lab-heading"])
            reach = build_number_matrix(words, elem_id="lab-mask-reach")
            working = build_working(
                words, elem_id="lab-mask-working", formula=FORMULA, png="lab-mask-map"
            )
    build_note(words, "attention.look_for_mask", elem_id="lab-mask-note")
    return Parts(
        text=text,
        examples=examples,
        form=form,
        layer=layer,
        head=head,
        painter=painter,
        view=view,
        map=big,
        bars=bars,
        said=said,
        reach=reach,
        working=working,
        seen=seen,
    )


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = MaskHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    form = parts.form.inputs
    model = [ctx.model_id, ctx.owner]
    inputs = [parts.text, parts.layer, parts.head, parts.painter, parts.view, *model, *form]
    show, outputs = with_form(on.show, MaskSettings), parts.outputs()
    moves = [parts.seen.seen, parts.text.input, parts.layer.pick, parts.head.pick]
    moves.append(parts.view.input)
    for event in (*moves, *(control.input for control in form)):
        wire(event, show, inputs, outputs, trigger_mode="always_last", **options)
    paint = with_form(on.paint, MaskSettings)
    wire(parts.painter.paint, paint, inputs, outputs, trigger_mode="always_last", **options)
    chosen = wire(parts.examples.example, on.example, [], form, **options)
    wire(chosen.then, show, inputs, outputs, **options)
    expose(with_form(on.attention_mask, MaskSettings), "attention_mask")
    address = ctx.address
    address.register("attention", "mask_text", parts.text)
    controls = parts.form.controls
    address.register("attention", "mask", controls["kind"], parse_choice(MASK_KINDS[:-1]))
    for name, most in (("width", MOST_TOKENS), ("count", MOST_TOKENS), ("ratio", 7)):
        parse = parse_integer(1, most)
        address.register("attention", f"mask_{name}", controls[name], parse)
    address.register("attention", "mask_view", parts.view, parse_choice(VIEWS))
