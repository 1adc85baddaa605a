"""The panel "judge": a larger model on a server grades the answers of base and tuned model."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.numbers import Slider
from components.kit.text_table import build_text_table
from components.kit.working import Working, build_working
from components.server_fields import ServerFields, build_server_fields, is_server_possible
from components.tabs.finetune.judge_handlers import MOST_JUDGED, JudgeHandlers
from components.tabs.finetune.tuning_tab import TuningTab
from explorer.judge import RUBRIC

FORMULA = r"""
$$\bar s = \frac{1}{|R|}\sum_{i \in R} s_i \qquad s_i \in [0, 100] \qquad
R = \text{answers whose grade could be read}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    server: ServerFields
    number: gr.Slider
    rubric: gr.Textbox
    go: gr.Button
    stop: gr.Button
    said: gr.HTML
    scores: gr.HTML
    table: gr.HTML
    working: Working

    @property
    def inputs(self) -> list[Any]:
        """Server, model, rubric and number."""
        server = self.server
        return [server.url, server.key, server.model, self.rubric, self.number]

    def outputs(self) -> list[Any]:
        """What `JudgeHandlers.show` fills."""
        drawer = self.working
        return [self.said, self.scores, self.table, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t, is_possible = ctx.words, ctx.words.t, is_server_possible(ctx)
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            gr.HTML(
                t("finetune.judge_help" if is_possible else "chat.server_off"),
                elem_classes=["help"],
            )
            with gr.Column(visible=is_possible, min_width=0):
                server = build_server_fields(ctx, "finetune")
            number = _build_number(ctx)
            with gr.Row(elem_classes=["button-row"]):
                go = gr.Button(
                    t("finetune.judge_go"),
                    variant="primary",
                    interactive=is_possible,
                    elem_id="finetune-judge-go",
                    min_width=0,
                )
                stop = gr.Button(t("finetune.stop"), elem_id="finetune-judge-stop", min_width=0)
        with gr.Column(elem_classes=["figure"], min_width=0):
            rubric = gr.Textbox(
                RUBRIC,
                label=t("finetune.rubric"),
                info=t("finetune.rubric_info"),
                lines=8,
                max_lines=20,
                elem_id="finetune-rubric",
            )
            said = build_line(words, elem_id="finetune-judge-said", look="heading")
            scores = build_number_matrix(words, elem_id="finetune-judge-scores")
            table = build_text_table(words, elem_id="finetune-judge-table")
            working = build_working(words, elem_id="finetune-judge-working", formula=FORMULA)
    build_note(words, "finetune.look_for_judge", elem_id="finetune-judge-note")
    return Parts(server, number, rubric, go, stop, said, scores, table, working)


def _build_number(ctx: AppContext) -> gr.Slider:
    t = ctx.words.t
    return Slider(
        1,
        MOST_JUDGED,
        value=10,
        step=1,
        label=t("finetune.number"),
        info=t("finetune.judge_number_info"),
        elem_id="finetune-judge-number",
    )


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = JudgeHandlers(tune.ctx, tune.tunings)
    server = parts.server
    tune.wire(server.find.click, on.find, [server.url, server.key], [server.model])
    asked = [tune.choice.run, tune.ctx.owner, *parts.inputs]
    nothing = ["", *[gr.skip()] * 5]  # grades that were given stay
    tune.wire(parts.go.click, on.show, asked, parts.outputs(), nothing=nothing)
    tune.wire(parts.stop.click, on.stop, [], [], queue=False)
    expose(on.judge, "finetune_judge")
