"""The panel "side by side": one prompt, two models or checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr

from components.address import parse_text
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.working import Working, build_working
from components.tabs.chat.answer_view import NO_CHIPS
from components.tabs.chat.controls import build_status
from components.tabs.chat.side_handlers import EXAMPLE_KEYS, OPEN_MODEL, SideHandlers
from components.tabs.tab import TabHead
from explorer.side_by_side import SideSettings

FORMULA = r"""
$$\text{surprise} = -\frac{1}{n}\sum_{t=1}^{n} \ln p_\theta(x_t \mid \text{prompt}, x_{<t}),
\qquad \text{perplexity} = e^{\text{surprise}}$$
"""


@dataclass(frozen=True, eq=False)
class SideParts:
    """Components of the panel.

    Args:
        message: What both are asked.
        sources: The two models.
        form: Controls of `SideSettings`.
        send: Asks both.
        stop: Stops both.
        chips: The two answers, token by token.
        status: The line under each.
        summary: What is the same, and how sure each was.
        working: The drawer.
    """

    message: gr.Textbox
    sources: tuple[gr.Dropdown, gr.Dropdown]
    form: Form
    send: gr.Button
    stop: gr.Button
    chips: tuple[gr.HTML, gr.HTML]
    status: tuple[gr.HTML, gr.HTML]
    summary: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What an answer fills, in the order of the API's results."""
        drawer = self.working
        shown = [*self.chips, *self.status, self.summary]
        return [*shown, drawer.table, drawer.exports, drawer.facts, self.send, self.stop]


def build(ctx: AppContext, head: TabHead) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["composer", "side-composer"]):
        message = gr.Textbox(
            "",
            label=t("chat.side_message"),
            placeholder=t("chat.placeholder"),
            show_label=False,
            container=False,
            lines=1,
            max_lines=6,
            scale=1,
            min_width=0,
            elem_id="side-message",
        )
        send = gr.Button(
            t("chat.side_send"), variant="primary", scale=0, min_width=0, elem_id="side-send"
        )
        stop = gr.Button(t("chat.stop"), scale=0, min_width=0, visible=False, elem_id="side-stop")
    examples = build_examples(words, EXAMPLE_KEYS, elem_id="side-examples")
    with (
        gr.Accordion(t("chat.side_settings"), open=False, elem_id="side-settings"),
        gr.Column(elem_classes=["chat-form"]),
    ):
        form = build_form(words, SideSettings, prefix="chat.settings", elem_id="side-settings-form")
    sources, chips, status = _build_columns(ctx)
    summary = build_line(words, elem_id="side-summary", look="heading")
    build_note(words, "chat.look_for_side", elem_id="side-note")
    working = build_working(words, elem_id="side-working", formula=FORMULA)
    parts = SideParts(message, sources, form, send, stop, chips, status, summary, working)
    _wire(ctx, head, parts, examples)


def _build_columns(ctx: AppContext) -> tuple[Any, Any, Any]:
    """Build the two columns, each with its model, its answer and its line."""
    t, words = ctx.words.t, ctx.words
    here = [(e.name, e.id) for e in ctx.store.catalogue() if e.presence == "here"]
    choices = [(t("chat.side_open_model"), OPEN_MODEL), *here]  # and his runs: `offer`
    firsts = (OPEN_MODEL, here[-1][1] if here else OPEN_MODEL)
    sources, chips, status = [], [], []
    with gr.Row(elem_classes=["chat-sides"]):
        for side, first in zip(("left", "right"), firsts, strict=True):
            with gr.Column(elem_classes=["figure", "chat-answer"], min_width=0):
                sources.append(
                    gr.Dropdown(
                        choices,
                        value=first,
                        allow_custom_value=True,
                        label=t(f"chat.side_{side}"),
                        info=t("chat.side_source_info"),
                        elem_id=f"side-source-{side}",
                    )
                )
                chips.append(
                    build_token_chips(
                        words,
                        elem_id=f"side-chips-{side}",
                        mode="probability",
                        readout="popover",
                        value=NO_CHIPS,
                    )
                )
                status.append(build_status(words, elem_id=f"side-status-{side}"))
    return tuple(sources), tuple(chips), tuple(status)


def _wire(ctx: AppContext, head: TabHead, parts: SideParts, examples: gr.HTML) -> None:
    on = SideHandlers(ctx, parts)
    asking = partial(with_form, kind=SideSettings)
    how = [*parts.sources, ctx.model_id, ctx.owner, *parts.form.inputs]
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    ask = partial(gr.on, [parts.send.click, parts.message.submit])
    named = {**options, "api_name": "chat_side"}
    wire(ask, asking(on.send), [parts.message, *how], parts.outputs(), **named)
    tried = [parts.message, *parts.outputs()]
    wire(examples.example, asking(on.example), how, tried, **options)
    wire(ctx.owner.change, on.offer, [ctx.owner], list(parts.sources), **options)
    wire(parts.stop.click, on.stop, [], [], queue=False, api_name="chat_side_stop", **options)
    expose(asking(on.compare), "chat_side_by_side")
    ctx.address.register("chat", "prompt", parts.message)
    for side, source in zip(("left", "right"), parts.sources, strict=True):
        ctx.address.register("chat", side, source, parse_text)
