"""The panel "conversation": talk with the model, and see how sure it was of every token."""

from collections.abc import Callable
from dataclasses import dataclass
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
from components.tabs.chat import server_panel
from components.tabs.chat.answer_view import NO_CHIPS
from components.tabs.chat.answering import Parts
from components.tabs.chat.asking import with_asking
from components.tabs.chat.controls import (
    build_choice,
    build_conversation,
    build_saver,
    build_status,
)
from components.tabs.chat.handlers import EXAMPLE_KEYS, Handlers
from components.tabs.chat.talk_handlers import TalkHandlers
from components.tabs.chat.talk_list import NEW
from components.tabs.tab import TabHead
from explorer.conversation import AnswerSettings
from explorer.talk import Talk

PREFIX, FORM_ID = "chat.settings", "chat-settings"
FORMULA = r"""
$$p_t = \operatorname{softmax}(z)_t = \frac{e^{z_t}}{\sum_v e^{z_v}}, \qquad z = \text{logits},
\qquad H = -\sum_v p_v \ln p_v$$
"""


def build(ctx: AppContext, head: TabHead) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
    """
    build_page_style("chat")
    with head.actions:
        fresh = gr.Button(ctx.words.t("chat.new"), elem_id="chat-new", min_width=0)
    with gr.Row(elem_classes=["chat-bench"]):
        with gr.Column(elem_classes=["chat-side"], min_width=0):
            keeping = _build_keeping(ctx)
            talking = _build_talking(ctx)
            server = server_panel.build(ctx)
        with gr.Column(elem_classes=["figure", "chat-answer"], min_width=0):
            looking = _build_looking(ctx)
    examples = talking.pop("examples")
    parts = Parts(
        **talking,
        **looking,
        talks=keeping.talks,
        talk=gr.State(Talk()),
        shown=gr.State(-1),
        picked=gr.State(-1),
        card=head.card,
    )
    on = _wire(ctx, head, parts, fresh, examples, server)
    _wire_keeping(ctx, parts, keeping, on)
    server_panel.wire_panel(ctx, server, head.card)
    _register(ctx, parts)


@dataclass(frozen=True, eq=False)
class Keeping:
    """The list of conversations, and what can be done with the open one."""

    talks: gr.Dropdown
    export: gr.Button
    load: gr.UploadButton
    replay: gr.Button
    delete: gr.Button
    saver: gr.HTML


def _build_keeping(ctx: AppContext) -> Keeping:
    """Build the row above the conversation."""
    t = ctx.words.t
    with gr.Row(elem_id="chat-talks"):
        talks = gr.Dropdown(
            [(t("chat.talk_new"), NEW)],
            value=NEW,
            label=t("chat.talks"),
            show_label=False,
            container=False,
            min_width=0,
            scale=1,
            elem_id="chat-talk-list",
        )
        export = gr.Button(t("chat.export"), size="sm", min_width=0, elem_id="chat-export")
        load = gr.UploadButton(
            t("chat.import"), file_types=[".json"], size="sm", min_width=0, elem_id="chat-import"
        )
        replay = gr.Button(t("chat.replay"), size="sm", min_width=0, elem_id="chat-replay")
        delete = gr.Button(t("chat.delete"), size="sm", min_width=0, elem_id="chat-delete")
    saver = build_saver(ctx.words, elem_id="chat-saver")
    return Keeping(talks, export, load, replay, delete, saver)


def _build_looking(ctx: AppContext) -> dict[str, Any]:
    """Build the right side: an answer token by token, and what the model read."""
    t, words = ctx.words.t, ctx.words
    gr.Markdown(f"## {t('chat.answer_title')}")
    chips = build_token_chips(
        words, elem_id="chat-chips", mode="probability", readout="aside", value=NO_CHIPS
    )
    choice = build_choice(words, elem_id="chat-choice")
    build_note(words, "chat.look_for", elem_id="chat-note")
    with gr.Accordion(t("chat.prompt_title"), open=False, elem_id="chat-prompt-fold"):
        gr.HTML(t("chat.prompt_help"), elem_classes=["help"])
        prompt = build_token_chips(words, elem_id="chat-prompt", readout="popover", copy=True)
    working = build_working(words, elem_id="chat-working", formula=FORMULA)
    return {"chips": chips, "choice": choice, "prompt": prompt, "working": working}


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
    ctx: AppContext,
    head: TabHead,
    parts: Parts,
    fresh: gr.Button,
    examples: gr.HTML,
    server: server_panel.ServerPanel,
) -> Handlers:
    on = Handlers(ctx, parts)

    def answering(handler: Callable[..., Any]) -> Callable[..., Any]:
        return with_form(with_asking(handler, on.make_asking), AnswerSettings)

    talk = [parts.talk, ctx.model_id, ctx.owner, parts.system, server.chosen]
    how = [*talk, *parts.form.inputs]
    shown = everything(parts)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}

    ask = partial(gr.on, [parts.send.click, parts.message.submit])
    wire(ask, answering(on.send), [parts.message, *how], shown, api_name="chat_send", **options)
    again, view = {**options, "api_name": "chat_regenerate"}, parts.view
    wire(view.regenerate, answering(on.regenerate), how, shown, **again)
    wire(view.another, answering(on.another), how, shown, api_name="chat_another", **options)
    wire(view.reword, answering(on.reword), how, shown, **options)
    wire(examples.example, answering(on.example), how, shown, **options)
    here = [parts.shown, parts.picked]
    wire(parts.choice.choose, answering(on.choose), [*here, *how], shown, **options)

    # For programs alone: an event of the page carries its data in another way.
    numbers = [
        gr.Number(0, visible=False, label=name) for name in ("index", "token", "alternative")
    ]
    text, press = gr.Textbox(visible=False, label="text"), gr.Button(visible=False)
    named = {**options, "api_name": "chat_edit"}
    wire(press.click, answering(on.edit), [numbers[0], text, *how], shown, **named)
    press = gr.Button(visible=False)
    named = {**options, "api_name": "chat_branch"}
    wire(press.click, answering(on.branch), [*numbers, *how], shown, **named)

    wire(parts.stop.click, on.stop, [], [], queue=False, api_name="chat_stop", **options)
    wire(view.halt, on.stop, [], [], queue=False, **options)
    wire(fresh.click, on.clear, [ctx.owner], shown, api_name="chat_clear", **options)
    model = [ctx.model_id, ctx.owner]
    about_model = [parts.hint, parts.format, parts.form.controls["thinking"]]
    wire(ctx.model_id.change, on.model, model, about_model, **options)
    expose(with_form(on.chat, AnswerSettings), "chat")
    return on


def _wire_keeping(ctx: AppContext, parts: Parts, keeping: Keeping, answers: Handlers) -> None:
    on = TalkHandlers(ctx, parts, answers, keeping.saver)
    shown = everything(parts)
    options: dict[str, Any] = {"card": parts.card, "words": ctx.words}
    mine, view = [parts.talk, ctx.owner], parts.view
    wire(ctx.owner.change, on.restore, [ctx.owner, parts.talk], shown, **options)
    wire(keeping.talks.input, on.open, [keeping.talks, ctx.owner], shown, **options)
    named = {**options, "api_name": "chat_delete"}
    wire(keeping.delete.click, on.delete, mine, shown, **named)
    wire(view.switch, on.switch, mine, shown, trigger_mode="multiple", **options)
    wire(view.inspect, on.inspect, mine, shown, **options)
    picked = [parts.choice, parts.picked]
    look = {**options, "trigger_mode": "always_last"}
    wire(parts.chips.token_click, on.token, [parts.talk, parts.shown, ctx.owner], picked, **look)
    saved = [keeping.saver, parts.hint]
    named = {**options, "api_name": "chat_save"}
    wire(keeping.export.click, on.export, [parts.talk], saved, **named)
    wire(keeping.load.upload, on.load_file, [keeping.load, ctx.owner], shown, **options)
    named = {**options, "api_name": "chat_replay"}
    wire(keeping.replay.click, on.replay, mine, shown, **named)

    # For programs alone.
    name, text = gr.Textbox(visible=False, label="name"), gr.Textbox(visible=False, label="json")
    numbers = [gr.Number(0, visible=False, label=label) for label in ("index", "by")]
    for inputs, handler, api_name in (
        ([name, ctx.owner], on.open, "chat_open"),
        ([text, ctx.owner], on.load_text, "chat_load"),
        ([*numbers, *mine], on.switch_branch, "chat_switch"),
    ):
        press = gr.Button(visible=False)
        wire(press.click, handler, inputs, shown, api_name=api_name, **options)


def everything(parts: Parts) -> list[Any]:
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
        parts.choice,
        parts.prompt,
        parts.talks,
        parts.shown,
        parts.picked,
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
