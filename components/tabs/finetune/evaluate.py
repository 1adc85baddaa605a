"""The panel "evaluate": base and tuned model on the part that neither has learned from."""

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
from components.tabs.finetune.evaluate_handlers import EvaluateHandlers
from components.tabs.finetune.tuning_tab import TuningTab

FORMULA = r"""
$$\text{precision} = \frac{TP}{TP + FP} \qquad \text{recall} = \frac{TP}{TP + FN} \qquad
\text{ROUGE-L} = \frac{2\,\mathrm{LCS}(a, w)}{|a| + |w|} \qquad
\text{perplexity} = e^{L}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    number: gr.Slider
    against: gr.Dropdown
    go: gr.Button
    threshold: gr.Slider
    said: gr.HTML
    scores: gr.HTML
    confusion: gr.HTML
    cut: gr.HTML
    worst: gr.HTML
    kept: gr.State
    working: Working

    def outputs(self) -> list[Any]:
        """What `EvaluateHandlers.show` fills."""
        drawer = self.working
        views = [self.said, self.scores, self.confusion, self.cut, self.worst, self.threshold]
        return [*views, self.kept, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            number = Slider(
                10,
                1_000,
                value=60,
                step=10,
                label=t("finetune.rows"),
                info=t("finetune.rows_info"),
                elem_id="finetune-test-rows",
            )
            against = gr.Dropdown(
                [(t("finetune.against_base"), "")],
                value="",
                label=t("finetune.against"),
                info=t("finetune.against_info"),
                elem_id="finetune-against",
            )
            go = gr.Button(
                t("finetune.evaluate"), variant="primary", elem_id="finetune-evaluate", min_width=0
            )
            threshold = Slider(
                0.0,
                1.0,
                value=0.5,
                step=0.01,
                label=t("finetune.threshold"),
                info=t("finetune.threshold_info"),
                visible=False,
                elem_id="finetune-threshold",
            )
            cut = build_line(words, elem_id="finetune-cut", look="text")
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="finetune-evaluated", look="heading")
            scores = build_number_matrix(words, elem_id="finetune-scores")
            confusion = build_number_matrix(words, elem_id="finetune-confusion")
            worst = build_text_table(words, elem_id="finetune-worst")
            working = build_working(words, elem_id="finetune-evaluate-working", formula=FORMULA)
    build_note(words, "finetune.look_for_evaluate", elem_id="finetune-evaluate-note")
    return Parts(
        number=number,
        against=against,
        go=go,
        threshold=threshold,
        said=said,
        scores=scores,
        confusion=confusion,
        cut=cut,
        worst=worst,
        kept=gr.State(None),
        working=working,
    )


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = EvaluateHandlers(tune.ctx, tune.tunings)
    offered = [tune.choice.run, tune.ctx.owner]
    tune.wire(tune.when_looked_at("evaluate"), on.offer, offered, [parts.against])
    asked = [tune.choice.run, parts.number, parts.against, tune.ctx.owner]
    tune.wire(parts.go.click, on.show, asked, parts.outputs())
    moved = [parts.kept, parts.threshold]
    tune.wire(
        parts.threshold.input,
        on.cut,
        moved,
        [parts.cut],
        trigger_mode="always_last",
        queue=False,
    )
    expose(on.evaluate, "finetune_evaluate")
