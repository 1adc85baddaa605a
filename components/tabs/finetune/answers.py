"""The panel "answers": the same held-out questions to the base and to any checkpoint."""

from dataclasses import dataclass

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.line import build_line
from components.kit.numbers import Slider
from components.kit.text_table import build_text_table
from components.tabs.finetune import pairs
from components.tabs.finetune.answer_handlers import AnswerHandlers
from components.tabs.finetune.steps import build_step_choice
from components.tabs.finetune.tuning_tab import TuningTab


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    step: gr.Dropdown
    number: gr.Slider
    ask: gr.Button
    own: gr.Textbox
    own_ask: gr.Button
    said: gr.HTML
    table: gr.HTML
    own_result: gr.Column
    bars: gr.HTML
    chips: gr.HTML
    pairs: pairs.Parts


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            step = build_step_choice(words, "finetune-step")
            number = Slider(
                1,
                30,
                value=6,
                step=1,
                label=t("finetune.number"),
                info=t("finetune.number_info"),
                elem_id="finetune-number",
            )
            ask = gr.Button(
                t("finetune.ask"), variant="primary", elem_id="finetune-ask", min_width=0
            )
            own = gr.Textbox(
                "",
                label=t("finetune.own"),
                info=t("finetune.own_info"),
                lines=3,
                max_lines=8,
                elem_id="finetune-own",
            )
            own_ask = gr.Button(t("finetune.own_ask"), elem_id="finetune-own-ask", min_width=0)
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="finetune-answers-said", look="heading")
            with gr.Column(visible=False, min_width=0) as own_result:
                bars = build_bar_list(words, elem_id="finetune-own-bars")
                chips = build_token_chips(
                    words, elem_id="finetune-own-chips", mode="weight", readout="popover"
                )
            table = build_text_table(words, elem_id="finetune-answers")
    section = pairs.build(ctx)
    build_note(words, "finetune.look_for_answers", elem_id="finetune-answers-note")
    return Parts(step, number, ask, own, own_ask, said, table, own_result, bars, chips, section)


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = AnswerHandlers(tune.ctx, tune.tunings)
    offered = [parts.step, parts.said]
    tune.wire(tune.when_looked_at("answers"), on.list_steps, [tune.choice.run], offered)
    asked = [tune.choice.run, parts.step, parts.number, tune.ctx.owner]
    tune.wire(parts.ask.click, on.ask, asked, [parts.said, parts.table])
    own = [tune.choice.run, parts.step, parts.own, tune.ctx.owner]
    shown = [parts.said, parts.own_result, parts.bars, parts.chips, parts.table]
    for event in (parts.own_ask.click, parts.own.submit):
        tune.wire(event, on.ask_own, own, shown)
    pairs.wire_part(tune, parts.pairs, parts.step)
    expose(on.classify, "finetune_classify")
    expose(on.answer, "finetune_answer")
