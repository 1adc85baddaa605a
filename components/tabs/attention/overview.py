"""The part "all heads" of the panel "heads": what each head of the model does, measured."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_choice
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.bars import build_bar_list
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.numbers import Slider
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.overview_handlers import (
    ORDERS,
    READINGS,
    Measured,
    OverviewHandlers,
)
from components.tabs.tab import TabHead
from explorer.attention_lab.head_kinds import KINDS

FORMULA = r"""
$$\text{induction} = \operatorname{mean}_t \sum_{s < t - 1,\; x_s = x_t} A_{t,\,s+1} \qquad
\text{entropy} = -\operatorname{mean}_t \sum_s A_{ts} \ln A_{ts}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the part."""

    kind: gr.Dropdown
    reading: gr.Radio
    order: gr.Radio
    least: gr.Slider
    other_text: gr.Textbox
    other_model: gr.Dropdown
    said: gr.HTML
    map: gr.HTML
    bars: gr.HTML
    working: Working
    measured: gr.State
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `OverviewHandlers.show` fills."""
        return [self.said, self.map, self.bars, *self.working.outputs, self.measured]

    def controls(self) -> list[Any]:
        """What a `Question` is made of."""
        compared = [self.other_text, self.other_model]
        return [self.kind, self.reading, self.order, self.least, *compared]


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
            kind, reading, order, least, other_text, other_model = _build_controls(ctx)
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
    return Parts(
        kind=kind,
        reading=reading,
        order=order,
        least=least,
        other_text=other_text,
        other_model=other_model,
        said=said,
        map=big,
        bars=bars,
        working=working,
        measured=gr.State(Measured()),
        seen=seen,
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
    orders = [(t(f"attention.order.{name}"), name) for name in ORDERS]
    order = gr.Radio(orders, value=ORDERS[0], label=t("attention.order_label"), elem_id="lab-order")
    least = Slider(0, 1, value=0, step=0.05, label=t("attention.least"), elem_id="lab-least")
    other_text = gr.Textbox(
        "",
        label=t("attention.other_text"),
        info=t("attention.other_text_info"),
        elem_id="lab-other-text",
    )
    other_model = gr.Dropdown(
        [],
        value="",
        allow_custom_value=True,
        label=t("attention.other_model"),
        info=t("attention.other_model_info"),
        elem_id="lab-other-model",
    )
    return kind, reading, order, least, other_text, other_model


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
    # a newer measurement ends the one before it, so none has to wait
    options: dict[str, Any] = {"card": head.card, "words": ctx.words, "trigger_mode": "multiple"}
    inputs = [shown, parts.measured, ctx.owner, *parts.controls()]
    chosen = [parts.kind.input, parts.reading.input, parts.order.input, parts.least.release]
    compared = [parts.other_text.submit, parts.other_model.input]
    for event in (parts.seen.seen, *chosen, *compared):
        wire(event, on.show, inputs, parts.outputs(), **options)
    wire(shown.change, on.follow, inputs, parts.outputs(), **options)
    wire(parts.seen.seen, on.offer, [shown, ctx.owner], [parts.other_model], **options)
    options["trigger_mode"] = "always_last"
    places = [parts.measured, shown, ctx.owner]
    wire(parts.bars.bar_click, on.ranked, places, outputs, **options)
    wire(parts.map.row_select, on.cell, [shown, ctx.owner], outputs, **options)
    expose(on.attention_heads, "attention_heads")
    address = ctx.address
    address.register("attention", "kind", parts.kind, parse_choice(KINDS))
    address.register("attention", "measured", parts.reading, parse_choice(READINGS))
    address.register("attention", "against_text", parts.other_text)
    address.register("attention", "against_model", parts.other_model)
