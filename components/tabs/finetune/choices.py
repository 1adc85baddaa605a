"""The panel "choices": multiple choice, scored by what base and tuned model find likeliest."""

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
from components.tabs.finetune.choice_handlers import ChoiceHandlers
from components.tabs.finetune.tuning_tab import TuningTab
from explorer.multiple_choice import MOST_QUESTIONS

SOURCES = ("sample", "typed", "upload")
FORMULA = r"""
$$\hat a_{\text{sum}} = \arg\max_a \sum_{t} \ln p(a_t \mid q, a_{<t}) \qquad
\hat a_{\text{byte}} = \arg\max_a \frac{1}{\text{bytes}(a)} \sum_{t} \ln p(a_t \mid q, a_{<t})$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    source: gr.Radio
    typed: gr.Textbox
    upload: gr.UploadButton
    number: gr.Slider
    go: gr.Button
    said: gr.HTML
    scores: gr.HTML
    table: gr.HTML
    problems: gr.HTML
    working: Working

    @property
    def inputs(self) -> list[Any]:
        """Where the questions come from, and how many of them."""
        return [self.source, self.typed, self.upload, self.number]

    def outputs(self) -> list[Any]:
        """What `ChoiceHandlers.show` fills."""
        drawer = self.working
        views = [self.said, self.scores, self.table, self.problems]
        return [*views, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            source, typed, upload = _build_source(ctx)
            number = Slider(
                1,
                MOST_QUESTIONS,
                value=30,
                step=1,
                label=t("finetune.number"),
                info=t("finetune.choice_number_info"),
                elem_id="finetune-choice-number",
            )
            go = gr.Button(
                t("finetune.choice_go"),
                variant="primary",
                elem_id="finetune-choice-go",
                min_width=0,
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="finetune-choice-said", look="heading")
            scores = build_number_matrix(words, elem_id="finetune-choice-scores")
            table = build_text_table(words, elem_id="finetune-choice-table")
            problems = build_text_table(words, elem_id="finetune-choice-problems")
            working = build_working(words, elem_id="finetune-choice-working", formula=FORMULA)
    build_note(words, "finetune.look_for_choices", elem_id="finetune-choice-note")
    return Parts(source, typed, upload, number, go, said, scores, table, problems, working)


def _build_source(ctx: AppContext) -> tuple[gr.Radio, gr.Textbox, gr.UploadButton]:
    t = ctx.words.t
    source = gr.Radio(
        [(t(f"finetune.choice.{name}"), name) for name in SOURCES],
        value=SOURCES[0],
        label=t("finetune.choice"),
        info=t("finetune.choice_info"),
        elem_id="finetune-choice-source",
    )
    typed = gr.Textbox(
        "",
        label=t("finetune.choice_typed"),
        info=t("finetune.choice_typed_info"),
        lines=5,
        max_lines=12,
        visible=False,
        elem_id="finetune-choice-typed",
        elem_classes=["numbers"],
    )
    upload = gr.UploadButton(
        t("finetune.upload"),
        file_types=[".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt"],
        type="filepath",
        size="sm",
        visible=False,
        elem_id="finetune-choice-upload",
    )
    return source, typed, upload


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = ChoiceHandlers(tune.ctx, tune.tunings)
    places = [parts.typed, parts.upload]
    tune.wire(parts.source.change, on.place, [parts.source], places, queue=False)
    asked = [tune.choice.run, tune.ctx.model_id, tune.ctx.owner, *parts.inputs]
    for event in (parts.go.click, parts.upload.upload):
        tune.wire(event, on.show, asked, parts.outputs())
    expose(on.score, "finetune_choices")
