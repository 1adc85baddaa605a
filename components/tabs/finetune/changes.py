"""The panel "changes": what a fine-tuning did to weights, attention and the words of each layer."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.text_table import build_text_table
from components.kit.working import Working, build_working
from components.tabs.finetune.change_handlers import ChangeHandlers
from components.tabs.finetune.steps import build_question, build_step_choice
from components.tabs.finetune.tuning_tab import TuningTab

FORMULA = r"""
$$\frac{\lVert W' - W \rVert_F}{\lVert W \rVert_F} \qquad
\frac{1}{T}\sum_{t} \frac12 \sum_{s} \lvert p'_{ts} - p_{ts} \rvert$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    step: gr.Dropdown
    text: gr.Textbox
    offered: gr.State
    go: gr.Button
    open_base: gr.Button
    open_tuned: gr.Button
    said: gr.HTML
    weights: gr.HTML
    attention_said: gr.HTML
    attention: gr.HTML
    lens: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `ChangeHandlers.show` fills."""
        drawer = self.working
        views = [self.said, self.weights, self.attention_said, self.attention, self.lens]
        return [*views, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            step = build_step_choice(words, "finetune-change-step")
            text = build_question(words, "finetune.change_text", "finetune-change-text")
            go = gr.Button(
                t("finetune.change_go"),
                variant="primary",
                elem_id="finetune-change-go",
                min_width=0,
            )
            with gr.Row(elem_classes=["button-row"]):
                open_base, open_tuned = (
                    gr.Button(
                        t(f"finetune.open_{name}"), elem_id=f"finetune-open-{name}", min_width=0
                    )
                    for name in ("base", "tuned")
                )
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="finetune-change-said", look="heading")
            weights = build_number_matrix(words, elem_id="finetune-change-weights")
            attention_said = build_line(words, elem_id="finetune-change-heads", look="heading")
            attention = build_number_matrix(words, elem_id="finetune-change-attention")
            lens = build_text_table(words, elem_id="finetune-change-lens")
            working = build_working(words, elem_id="finetune-change-working", formula=FORMULA)
    build_note(words, "finetune.look_for_changes", elem_id="finetune-change-note")
    opened = (open_base, open_tuned)
    views = (said, weights, attention_said, attention, lens)
    return Parts(step, text, gr.State(""), go, *opened, *views, working)


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = ChangeHandlers(tune.ctx, tune.tunings)
    offered = [parts.step, parts.text, parts.said, parts.offered]
    tune.wire(
        tune.when_looked_at("changes"),
        on.offer,
        [tune.choice.run, parts.text, parts.offered],
        offered,
    )
    asked = [tune.choice.run, parts.step, parts.text, tune.ctx.owner]
    for event in (parts.go.click, parts.text.submit):
        tune.wire(event, on.show, asked, parts.outputs())
    known = [tune.choice.run, parts.step]
    tune.wire(parts.open_base.click, on.open_base, known, [tune.ctx.wanted_model])
    tune.wire(parts.open_tuned.click, on.open_tuned, known, [tune.ctx.wanted_model])
    expose(on.changes, "finetune_changes")
