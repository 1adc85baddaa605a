"""The panel "conversation": talk with the model, and see how sure it was of every token."""

from functools import partial
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import build_checkbox, build_form, with_form
from components.kit.cards import build_card, build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.page_style import build_page_style
from components.kit.working import build_working
from components.tabs.chat.answer_view import NO_CHIPS
from components.tabs.chat.answering import Parts
from components.tabs.chat.controls import build_conversation, build_status
from components.tabs.chat.handlers import EXAMPLE_KEYS, Handlers
from components.tabs.chat.talk import Talk
from components.tabs.tab import TabHead
from explorer.conversation import AnswerSettings

PREFIX, FORM_ID = "chat.settings", "chat-settings"
FORMULA = r"""
$$p_t = \operatorname{softmax}(z)_t = \frac{e^{z_t}}{\sum_v e^{z_v}}, \qquad z = \text{logits}$$
"""


def build(ctx: AppContext, head: TabHead) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
    """
    t = ctx.words.t
    build_page_style("chat")
    with head.actions:
        fresh = gr.Button(t("chat.new"), elem_id="chat-new", min_width=0)
    with gr.Row(elem_classes=["chat-bench"]):
        with gr.Column(elem_classes=["chat-side"], min_width=0):
            talking = _build_talking(ctx)
        with gr.Column(elem_classes=["figure", "chat-answer"], min_width=0):
            gr.Markdown(f"## {t('chat.answer_title')}")
            chips = build_token_chips(
                ctx.words,
                elem_id="chat-chips",
                mode="probability",
                readout="popover",
                value=NO_CHIPS,
            )
            build_note(ctx.words, "chat.look_for", elem_id="chat-note")
            working = build_working(ctx.words, elem_id="chat-working", formula=FORMULA)
    examples = talking.pop("examples")
    parts = Parts(**talking, chips=chips, working=working, talk=gr.State(Talk()), card=head.card)
    _wire(ctx, head, parts, fresh, examples)
    _register(ctx, parts)


def _build_talking(ctx: AppContext) -> dict[str, Any]:
    """Build the left side: conversation, composer, examples, settings."""
    t = ctx.words.t
    view = build_conversation(ctx.words, elem_id="chat-conversation")
    status = build_status(ctx.words, elem_id="chat-status")
    hint = build_card(ctx.words, elem_id="chat-hint")
    with gr.Row(elem_classes=["composer"]):
        message = gr.Textbox(
            "",
            label=t("chat.message"),
            show_label=False,
            container=False,
            placeholder=t("chat.placeholder"),
            lines=1,
            max_lines=8,
            scale=1,
            min_width=0,
            elem_id="chat-message",
        )
        send = gr.Button(
            t("chat.send"), variant="primary", scale=0, min_width=0, elem_id="chat-send"
        )
        stop = gr.Button(t("chat.stop"), scale=0, min_width=0, visible=False, elem_id="chat-stop")
    chat_format = build_line(ctx.words, elem_id="chat-format", look="help")
    thinking = build_checkbox(
        ctx.words, AnswerSettings, "thinking", prefix=PREFIX, elem_id=FORM_ID, visible=False
    )
    examples = build_examples(ctx.words, EXAMPLE_KEYS, elem_id="chat-examples")
    with gr.Accordion(t("chat.settings_title"), open=False, elem_id="chat-settings"):
        system = gr.Textbox(
            "",
            label=t("chat.system"),
            info=t("chat.system_info"),
            lines=2,
            max_lines=6,
            elem_id="chat-system",
        )
        with gr.Column(elem_classes=["chat-form"]):
            form = build_form(
                ctx.words,
                AnswerSettings,
                prefix=PREFIX,
                elem_id=FORM_ID,
                built={"thinking": thinking},
            )
    return {
        "view": view,
        "status": status,
        "hint": hint,
        "message": message,
        "send": send,
        "stop": stop,
        "examples": examples,
        "system": system,
        "form": form,
        "format": chat_format,
    }


def _wire(
    ctx: AppContext, head: TabHead, parts: Parts, fresh: gr.Button, examples: gr.HTML
) -> None:
    on = Handlers(ctx, parts)
    answering = partial(with_form, kind=AnswerSettings)
    how = [parts.talk, ctx.model_id, ctx.owner, parts.system, *parts.form.inputs]
    shown = _everything(parts)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}

    ask = partial(gr.on, [parts.send.click, parts.message.submit])
    wire(ask, answering(on.send), [parts.message, *how], shown, api_name="chat_send", **options)
    again, view = {**options, "api_name": "chat_regenerate"}, parts.view
    wire(view.regenerate, answering(on.regenerate), how, shown, **again)
    wire(view.another, answering(on.another), how, shown, api_name="chat_another", **options)
    wire(view.reword, answering(on.reword), how, shown, **options)
    wire(examples.example, answering(on.example), how, shown, **options)

    # For programs alone: an event of the page carries its data in another way.
    index, text = (
        gr.Number(0, visible=False, label="index"),
        gr.Textbox(visible=False, label="text"),
    )
    edit = gr.Button(visible=False)
    wire(
        edit.click, answering(on.edit), [index, text, *how], shown, api_name="chat_edit", **options
    )

    wire(parts.stop.click, on.stop, [], [], queue=False, api_name="chat_stop", **options)
    wire(view.halt, on.stop, [], [], queue=False, **options)
    wire(fresh.click, on.clear, [], shown, api_name="chat_clear", **options)
    model = [ctx.model_id, ctx.owner]
    about_model = [parts.hint, parts.format, parts.form.controls["thinking"]]
    wire(ctx.model_id.change, on.model, model, about_model, **options)
    expose(answering(on.chat), "chat")


def _everything(parts: Parts) -> list[Any]:
    """What an answer changes on the page, in the order of the API's results."""
    working = parts.working
    return [
        parts.view,
        parts.status,
        parts.chips,
        working.facts,
        working.table,
        working.exports,
        parts.message,
        parts.hint,
        parts.form.controls["seed"],
        parts.send,
        parts.stop,
        parts.talk,
    ]


def _register(ctx: AppContext, parts: Parts) -> None:
    """Let an address name the message, the system prompt and the temperature."""
    ctx.address.register("chat", "text", parts.message)
    ctx.address.register("chat", "system", parts.system)
    ctx.address.register(
        "chat", "temperature", parts.form.controls["temperature"], _parse_temperature
    )


def _parse_temperature(text: str) -> float:
    """Take a number; the form moves it into its range when it is used."""
    return min(max(float(text), 0.0), 2.0)
