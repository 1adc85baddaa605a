"""The panel "setup": what to train, what it comes to, and Start."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.pretrain.live import Parts as LiveParts
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.pretrain.run_handlers import RunHandlers
from components.tabs.pretrain.setup_handlers import REFILLED, UPLOADED, SetupHandlers
from components.tabs.tab import TabHead
from explorer.training.sample_texts import SAMPLE_TEXTS
from explorer.training.setup import RunSetup

FORMULA = r"""
$$\text{tokens} = \text{steps} \times \text{accumulation} \times \text{batch} \times
\text{context} \qquad \text{operations} \approx 6 \times \text{parameters} \times \text{tokens}$$
"""
EXAMPLE_KEYS = ("pretrain.example_minute", "pretrain.example_chinese", "pretrain.example_break")
PREFIX = "pretrain.form"
FIRST = ("size", "style", "tokenizer")
MORE = (
    *("name", "recipe", "n_steps", "epochs", "learning_rate", "schedule", "warmup_steps"),
    *("context", "batch_size", "accumulate", "vocab_size", "optimiser", "weight_decay"),
    *("dropout", "seed", "precision", "ema", "recompute"),
)


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    form: Form
    upload: gr.UploadButton
    upload_said: gr.HTML
    examples: gr.HTML
    watch_for: gr.HTML
    count: gr.HTML
    bars: gr.HTML
    cost: gr.HTML
    status: gr.HTML
    estimate: gr.Button
    start: gr.Button
    cancel: gr.Button
    warning: gr.HTML
    seen: gr.HTML
    working: Working


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words = ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "pretrain-controls"], min_width=0):
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="pretrain-examples")
            text, upload = _build_text_choice(ctx)
            upload_said = build_line(words, elem_id="pretrain-upload-said", look="help")
            first = _build_part_of_form(ctx, FIRST)
            broken = _build_part_of_form(ctx, ("breakage",))
            watch_for = build_line(words, elem_id="pretrain-watch-for", look="help")
        with gr.Column(elem_classes=["figure"], min_width=0):
            count = build_line(words, elem_id="pretrain-count", look="heading")
            bars = build_bar_list(words, elem_id="pretrain-bars")
            warning = build_line(words, elem_id="pretrain-warning", look="help")
            start, estimate, cancel = _build_buttons(ctx)
            seen = build_seen(words, elem_id="pretrain-seen")
            status = build_line(words, elem_id="pretrain-status", look="help")
            cost = build_number_matrix(words, elem_id="pretrain-cost")
            with (
                gr.Accordion(words.t("pretrain.more"), open=False, elem_id="pretrain-more"),
                gr.Column(elem_classes=["form-grid"]),
            ):
                more = _build_part_of_form(ctx, MORE)
            working = build_working(words, elem_id="pretrain-working", formula=FORMULA)
    build_note(words, "pretrain.look_for", elem_id="pretrain-note")
    controls = {**first.controls, **broken.controls, **more.controls, "text": text}
    return Parts(
        form=Form(RunSetup, {name: controls[name] for name in vars(RunSetup())}),
        upload=upload,
        upload_said=upload_said,
        examples=examples,
        watch_for=watch_for,
        count=count,
        bars=bars,
        cost=cost,
        status=status,
        estimate=estimate,
        start=start,
        cancel=cancel,
        warning=warning,
        seen=seen,
        working=working,
    )


def _build_part_of_form(ctx: AppContext, names: Sequence[str]) -> Form:
    return build_form(ctx.words, RunSetup, prefix=PREFIX, elem_id="pretrain", names=names)


def _build_text_choice(ctx: AppContext) -> tuple[gr.Dropdown, gr.UploadButton]:
    t = ctx.words.t
    text = gr.Dropdown(
        [(t(f"pretrain.text.{name}"), name) for name in (*SAMPLE_TEXTS, UPLOADED)],
        value=RunSetup().text,
        label=t(f"{PREFIX}.text"),
        info=t(f"{PREFIX}.text_info"),
        elem_id="pretrain-text",
    )
    upload = gr.UploadButton(
        t("pretrain.upload"),
        file_types=["text"],
        type="filepath",
        size="sm",
        elem_id="pretrain-upload",
    )
    return text, upload


def _build_buttons(ctx: AppContext) -> tuple[gr.Button, gr.Button, gr.Button]:
    t = ctx.words.t
    with gr.Row(elem_classes=["button-row"]):
        start = gr.Button(
            t("pretrain.begin"), variant="primary", elem_id="pretrain-begin", min_width=0
        )
        estimate = gr.Button(t("pretrain.estimate"), elem_id="pretrain-estimate", min_width=0)
        cancel = gr.Button(
            t("pretrain.cancel"), elem_id="pretrain-cancel", visible=False, min_width=0
        )
    return start, estimate, cancel


def wire_panel(
    ctx: AppContext,
    head: TabHead,
    parts: Parts,
    choice: RunChoice,
    panels: gr.Tabs,
    live: LiveParts,
    runs: RunHandlers,
) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
        choice: The run that is looked at.
        panels: The inner tabs; Start turns to the run.
        live: The panel "live", which then shows the run.
        runs: Its handlers.
    """
    on = SetupHandlers(ctx, panels, runs)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    form, working = parts.form, parts.working
    inputs = [parts.upload, ctx.owner, *form.inputs]
    drawer = [working.facts, working.table, working.exports]
    counted = [parts.count, parts.warning, parts.bars, parts.watch_for, *drawer]
    plan = with_form(on.plan, RunSetup)
    asked = [control.change for control in form.controls.values()]
    for event in (*asked, parts.upload.upload, ctx.owner.change):
        # a size changes ten controls at once: only the last state of the form is counted
        wire(event, plan, inputs, counted, trigger_mode="always_last", queue=False, **options)
    refilled = [form.controls[name] for name in REFILLED]
    for name in ("size", "recipe"):
        source = [form.controls["size"], form.controls["recipe"]]
        wire(form.controls[name].input, on.refill, source, refilled, queue=False, **options)
    text = form.controls["text"]
    told = [text, parts.upload_said]
    wire(parts.upload.upload, on.choose_upload, [parts.upload], told, **options)
    wire(parts.examples.example, on.example, [], form.inputs, queue=False, **options)
    wire(parts.seen.seen, on.warm_up, [], [], **options)
    tokenizers = form.controls["tokenizer"]
    for event in (parts.seen.seen, tokenizers.focus):
        wire(event, on.list_tokenizers, [ctx.owner], [tokenizers], queue=False, **options)
    cost = [parts.status, parts.cancel, parts.cost]
    wire(parts.estimate.click, with_form(on.estimate, RunSetup), inputs, cost, **options)
    wire(parts.cancel.click, on.cancel, [], [], queue=False, **options)
    shown = [panels, parts.status, parts.cancel, *live.outputs(choice)]
    wire(parts.start.click, with_form(on.begin, RunSetup), inputs, shown, **options)
    expose(with_form(on.begin_run, RunSetup), "pretrain_start")
    expose(with_form(on.estimate_run, RunSetup), "pretrain_estimate")
