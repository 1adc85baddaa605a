"""The panel "train": which model, weights and loss; the batch as it will be read; Start."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.mask_rows import build_mask_rows
from components.kit.working import Working, build_working
from components.tabs.finetune.data import Parts as DataParts
from components.tabs.finetune.train_handlers import FORMULAS, REFILLED, TrainHandlers
from components.tabs.finetune.tuning_tab import TuningTab
from components.tabs.pretrain.live import Parts as LiveParts
from components.tabs.pretrain.run_handlers import RunHandlers
from explorer.training.tuning_setup import TuningSetup
from explorer.tuning_data import DataSettings

PREFIX = "finetune.form"
FIRST = ("trains", "template", "train_on", "pooling", "loss", "beta", "gamma", "reduction")
LORA = ("lora_rank", "lora_alpha", "lora_targets")
MORE = (
    *("name", "epochs", "learning_rate", "batch_size", "accumulate", "row_limit"),
    *("packing", "patience", "weight_decay", "seed"),
)
EXAMPLE_KEYS = ("finetune.try_block", "finetune.try_lora", "finetune.try_everything")
KATEX: list[Any] = [{"left": "$$", "right": "$$", "display": True}]


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    form: Form
    recommended: gr.State
    examples: gr.HTML
    what: gr.HTML
    base: gr.HTML
    share: gr.HTML
    mask: gr.HTML
    lengths: gr.HTML
    histogram: gr.HTML
    formula: gr.Markdown
    start: gr.Button
    status: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `TrainHandlers.plan` fills."""
        drawer = self.working
        shown: list[Any] = [self.what, self.base, self.share, self.mask, self.lengths]
        controls = [self.form.controls[name] for name in (*FIRST, *LORA, "packing")]
        shown += [self.histogram, self.formula]
        return [*shown, *controls, drawer.facts, drawer.table, drawer.exports]

    def nothing(self) -> list[Any]:
        """What they show where the data cannot be read."""
        views: list[Any] = ["", "", "", None, "", None, gr.skip()]
        n_controls = len(self.outputs()) - len(views) - 3
        return [*views, *[gr.skip()] * n_controls, None, None, None]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="finetune-try")
            controls = dict(_part(ctx, (*FIRST, *LORA)).controls)
            with (
                gr.Accordion(t("finetune.more"), open=False, elem_id="finetune-more"),
                gr.Column(elem_classes=["form-grid"]),
            ):
                controls |= _part(ctx, MORE).controls
        with gr.Column(elem_classes=["figure"], min_width=0):
            what = build_line(words, elem_id="finetune-what", look="heading")
            base = build_line(words, elem_id="finetune-base", look="help")
            share = build_line(words, elem_id="finetune-share-line", look="help")
            with gr.Row(elem_classes=["button-row"]):
                start = gr.Button(
                    t("finetune.begin"), variant="primary", elem_id="finetune-begin", min_width=0
                )
            status = build_line(words, elem_id="finetune-status", look="help")
            gr.HTML(t("finetune.batch"), elem_classes=["heading"])
            mask = build_mask_rows(words, elem_id="finetune-mask")
            lengths = build_line(words, elem_id="finetune-lengths", look="help")
            histogram = build_bar_list(words, elem_id="finetune-histogram")
            formula = gr.Markdown(
                FORMULAS["classification"], latex_delimiters=KATEX, elem_id="finetune-formula"
            )
            working = build_working(
                words, elem_id="finetune-working", formula="\n".join(FORMULAS.values())
            )
    build_note(words, "finetune.look_for_train", elem_id="finetune-note")
    form = Form(TuningSetup, {name: controls[name] for name in vars(TuningSetup())})
    return Parts(
        form=form,
        recommended=gr.State(""),
        examples=examples,
        what=what,
        base=base,
        share=share,
        mask=mask,
        lengths=lengths,
        histogram=histogram,
        formula=formula,
        start=start,
        status=status,
        working=working,
    )


def _part(ctx: AppContext, names: tuple[str, ...]) -> Form:
    return build_form(ctx.words, TuningSetup, prefix=PREFIX, elem_id="tune", names=names)


def wire_panel(
    tune: TuningTab, parts: Parts, rows: DataParts, live: LiveParts, runs: RunHandlers
) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
        rows: The panel "data".
        live: The panel "live", which then shows the run.
        runs: Its handlers.
    """
    on = TrainHandlers(tune.ctx, tune.tunings, runs)
    inputs = [tune.ctx.model_id, tune.ctx.owner, *rows.inputs, *parts.form.inputs]
    refill = with_form(on.refill, DataSettings)
    refilled = [parts.recommended, *(parts.form.controls[name] for name in REFILLED)]
    given = [parts.recommended, *rows.inputs]
    opened = tune.wire(tune.tabs["train"].select, refill, given, refilled)
    tune.wire(opened.then, on.plan, inputs, parts.outputs(), nothing=parts.nothing())
    # the model in the bar at the top is the base: another one there is another base here
    for event in (tune.ctx.model_id.change, *(c.input for c in parts.form.inputs)):
        tune.wire(
            event,
            on.plan,
            inputs,
            parts.outputs(),
            trigger_mode="always_last",
            nothing=parts.nothing(),
        )
    tried = [parts.form.controls["trains"], parts.form.controls["train_on"]]
    chosen = tune.wire(parts.examples.example, on.example, [], tried, queue=False)
    tune.wire(chosen.then, on.plan, inputs, parts.outputs(), nothing=parts.nothing())
    shown = [tune.panels, parts.status, *live.outputs(tune.choice)]
    tune.wire(parts.start.click, on.begin, inputs, shown)
    expose(on.start_run, "finetune_start")
