"""The panel "heads": all heads of a layer as small maps, one large, one row over the text."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.head_grid import build_head_grid
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.numbers import Number
from components.kit.pickers import build_picker
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention import overview, pair
from components.tabs.attention.handlers import FIRST_TEXT, HeadsHandlers, empty_views, parse_place
from components.tabs.attention.views import Shown
from components.tabs.tab import TabHead

EXAMPLE_KEYS = ("attention.example_drink", "attention.example_repeat", "attention.example_code")
FORMULA = r"""
$$A = \mathrm{softmax}\!\left(\frac{q\,k^{\top}}{\sqrt{d_{\text{head}}}} + \text{mask}\right)$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    counts: gr.HTML
    first: gr.Number
    examples: gr.HTML
    layer: gr.HTML
    heading: gr.HTML
    chips: gr.HTML
    grid: gr.HTML
    map: gr.HTML
    stepper: gr.HTML
    working: Working
    asked: gr.Textbox
    place: gr.Textbox
    shown: gr.State

    def outputs(self) -> list[Any]:
        """What every handler fills, in the order of `HeadsHandlers._view`."""
        views = [self.layer, self.heading, self.chips, self.grid, self.map, self.stepper]
        return [self.counts, *views, *self.working.outputs, self.place, self.shown]


def _build_text(ctx: AppContext) -> tuple[gr.Textbox, gr.HTML, gr.Number]:
    t = ctx.words.t
    text = gr.Textbox(
        FIRST_TEXT, label=t("attention.text"), lines=4, max_lines=10, elem_id="attention-text"
    )
    counts = build_line(ctx.words, elem_id="attention-counts", look="help")
    first = Number(
        0,
        precision=0,
        minimum=0,
        label=t("attention.first"),
        info=t("attention.first_info"),
        elem_id="attention-first",
    )
    return text, counts, first


def build(ctx: AppContext, head: TabHead) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls"], min_width=0):
            text, counts, first = _build_text(ctx)
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="attention-examples")
            layer = build_picker(words, "layer", elem_id="attention-layer")
            gr.HTML(t("attention.tokens"), elem_look="heading")
            stepper = build_stepper(words, elem_id="attention-stepper")
            chips = build_token_chips(
                words, elem_id="attention-chips", mode="weight", readout="popover"
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Row(elem_classes=["grid-and-map"]):
                with gr.Column(elem_classes=["grid"], min_width=0):
                    heading = build_line(words, elem_id="attention-heading", look="heading")
                    grid = build_head_grid(words, elem_id="attention-grid")
                with gr.Column(elem_classes=["map"], min_width=0):
                    big = build_heatmap(words, elem_id="attention-map")
            working = build_working(
                words, elem_id="attention-working", formula=FORMULA, png="attention-map"
            )
    build_note(words, "attention.look_for", elem_id="attention-note")
    lower = overview.build(ctx)
    below = pair.build(ctx)
    # layer.head.token that the address asks for, and the one that is shown
    asked, place = (gr.Textbox("", visible=False) for _ in range(2))
    parts = Parts(
        text=text,
        counts=counts,
        first=first,
        examples=examples,
        layer=layer,
        heading=heading,
        chips=chips,
        grid=grid,
        map=big,
        stepper=stepper,
        working=working,
        asked=asked,
        place=place,
        shown=gr.State(Shown()),
    )
    on = _wire(ctx, head, parts)
    overview.wire_part(ctx, head, on, lower, parts.shown, parts.outputs())
    pair.wire_part(ctx, head, on, below, parts.shown, parts.map, parts.outputs())
    ctx.address.register("attention", "text", text)
    ctx.address.register("attention", "at", asked, parse_place, shared=place)


def _wire(ctx: AppContext, head: TabHead, parts: Parts) -> HeadsHandlers:
    on = HeadsHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    outputs = parts.outputs()
    inputs = [parts.shown, parts.asked, parts.text, ctx.model_id, ctx.owner]
    for event in (parts.text.change, parts.asked.change, ctx.model_id.change):
        # while the model still reads one version of the text, only the newest next one is kept
        latest = {**options, "trigger_mode": "always_last", "nothing": empty_views(gr.skip())}
        wire(event, on.text, inputs, outputs, **latest)
    moves = (
        (parts.layer.pick, on.layer),
        (parts.grid.head_select, on.head),
        (parts.map.row_select, on.query),
        (parts.stepper.step, on.query),
        (parts.chips.token_click, on.unit),
    )
    for event, handler in moves:
        inputs = [parts.shown, ctx.owner]
        wire(event, handler, inputs, outputs, trigger_mode="always_last", **options)
    window = [parts.shown, parts.first, ctx.owner]
    wire(parts.first.submit, on.window, window, outputs, trigger_mode="always_last", **options)
    wire(parts.examples.example, on.example, [], [parts.text], queue=False, **options)
    expose(on.attention, "attention")
    return on
