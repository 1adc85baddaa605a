"""The panel "clicks": take the better of two answers; to train on, or to learn who wins."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.text_table import build_text_table
from components.tabs.finetune.click_handlers import ClickHandlers, Clicks
from components.tabs.finetune.data import Parts as DataParts
from components.tabs.finetune.tuning_tab import TuningTab

MODES = ("own", "blind")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    mode: gr.Radio
    ask: gr.Button
    train: gr.Button
    said: gr.HTML
    question: gr.HTML
    left_text: gr.HTML
    right_text: gr.HTML
    left: gr.Button
    right: gr.Button
    neither: gr.Button
    table: gr.HTML
    clicks: gr.State

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        buttons = [self.left, self.right, self.neither, self.train]
        texts = [self.said, self.question, self.left_text, self.right_text]
        return [*texts, *buttons, self.table, self.clicks]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            mode = gr.Radio(
                [(t(f"finetune.clicks.{name}"), name) for name in MODES],
                value=MODES[0],
                label=t("finetune.clicks"),
                info=t("finetune.clicks_info"),
                elem_id="finetune-clicks-mode",
            )
            ask = gr.Button(
                t("finetune.clicks_ask"), variant="primary", elem_id="finetune-clicks-ask"
            )
            train = _button(ctx, "train")
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="finetune-clicks-said", look="heading")
            question = build_line(words, elem_id="finetune-clicks-question", look="text")
            with gr.Row(elem_classes=["answer-pair"]):
                with gr.Column(min_width=220):
                    left_text = build_line(words, elem_id="finetune-clicks-left", look="text")
                    left = _button(ctx, "left")
                with gr.Column(min_width=220):
                    right_text = build_line(words, elem_id="finetune-clicks-right", look="text")
                    right = _button(ctx, "right")
            neither = _button(ctx, "neither")
            table = build_text_table(words, elem_id="finetune-clicks-table")
    build_note(words, "finetune.look_for_clicks", elem_id="finetune-clicks-note")
    state = gr.State(Clicks())
    texts = (said, question, left_text, right_text)
    return Parts(mode, ask, train, *texts, left, right, neither, table, state)


def _button(ctx: AppContext, name: str) -> gr.Button:
    return gr.Button(
        ctx.words.t(f"finetune.clicks_{name}"),
        elem_id=f"finetune-clicks-take-{name}",
        visible=False,
        min_width=0,
    )


def wire_panel(tune: TuningTab, parts: Parts, rows: DataParts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
        rows: The panel "data", which clicks are handed to.
    """
    on = ClickHandlers(tune.ctx, tune.tunings)
    known = [parts.mode, tune.choice.run, tune.ctx.model_id, tune.ctx.owner, parts.clicks]
    tune.wire(parts.ask.click, on.ask, known, parts.outputs())
    for button, handler in (
        (parts.left, on.take_left),
        (parts.right, on.take_right),
        (parts.neither, on.take_neither),
    ):
        tune.wire(button.click, handler, known, parts.outputs())
    known_clicks = [parts.mode, parts.clicks]
    tune.wire(parts.mode.input, on.turn_to, known_clicks, parts.outputs(), queue=False)
    controls = rows.form.controls
    handed = [controls["data"], rows.typed, tune.panels]
    tune.wire(parts.train.click, on.hand_over, [parts.clicks], handed)
