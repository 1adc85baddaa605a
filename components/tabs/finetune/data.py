"""The panel "data": what is learned from, row by row, before anything is trained."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_choice, parse_integer
from components.api import expose
from components.context import AppContext
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.text_table import build_text_table
from components.kit.working import Working, build_working
from components.tabs.finetune.data_handlers import DataHandlers
from components.tabs.finetune.tuning_tab import TuningTab
from explorer.tuning_data import HUB, SAMPLES, TYPED, UPLOADED, DataSettings

PREFIX = "finetune.data"
EXAMPLE_KEYS = tuple(f"finetune.example_{name}" for name in SAMPLES)
SPLIT = ("training", "validation", "split_seed", "shuffle", "balance")
FORMULA = r"""
$$\hat c = \arg\max_c \Bigl[\ln\tfrac{n_c}{n} + \sum_{w} \ln\tfrac{n(w,c) + 1}{n(c) + V}\Bigr]
\qquad n_{\text{training}} = \lfloor s\,n \rfloor$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    form: Form
    upload: gr.UploadButton
    typed: gr.Textbox
    edit: gr.Button
    examples: gr.HTML
    count: gr.HTML
    mapped: gr.HTML
    baseline: gr.HTML
    rows: gr.HTML
    problems: gr.HTML
    classes: gr.HTML
    duplicates: gr.HTML
    forward: gr.Button
    working: Working

    @property
    def inputs(self) -> list[Any]:
        """What names a data set: the uploaded file, and the form."""
        return [self.upload, *self.form.inputs]

    def outputs(self) -> list[Any]:
        """What `DataHandlers.show` fills."""
        controls = self.form.controls
        first = [controls[name] for name in ("first", "second", "third")]
        views = [self.count, self.mapped, self.baseline, self.rows, self.problems, self.classes]
        drawer = self.working
        return [*first, *views, self.duplicates, drawer.facts, drawer.table, drawer.exports]

    @staticmethod
    def nothing() -> list[Any]:
        """What `outputs` show of data that cannot be read: controls as they are, no views."""
        first, views = [gr.skip()] * 3, ["", "", "", None, None, None]
        return [*first, *views, "", None, None, {"csv": None, "png": None, "python": None}]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="finetune-examples")
            built: dict[str, Any] = {"data": _build_choice(ctx)}
            upload = _build_upload(ctx)
            built["typed"] = typed = _build_typed(ctx)
            built["hub"] = _build_hub(ctx)
            built |= _build_reading(ctx)
        with gr.Column(elem_classes=["figure"], min_width=0):
            count = build_line(words, elem_id="finetune-count", look="heading")
            mapped = build_line(words, elem_id="finetune-mapped", look="help")
            with gr.Row(elem_classes=["button-row"]):
                forward = gr.Button(
                    t("finetune.forward"),
                    variant="primary",
                    elem_id="finetune-forward",
                    min_width=0,
                )
                edit = gr.Button(t("finetune.edit"), elem_id="finetune-edit", min_width=0)
            rows = build_text_table(words, elem_id="finetune-rows")
            problems = build_text_table(words, elem_id="finetune-problems")
            classes = build_bar_list(words, elem_id="finetune-classes")
            duplicates = build_line(words, elem_id="finetune-duplicates", look="help")
            baseline = build_line(words, elem_id="finetune-baseline", look="help")
            working = build_working(words, elem_id="finetune-data-working", formula=FORMULA)
    build_note(words, "finetune.look_for_data", elem_id="finetune-data-note")
    form = Form(DataSettings, {name: built[name] for name in vars(DataSettings())})
    _register(ctx, form)
    return Parts(
        form=form,
        upload=upload,
        typed=typed,
        edit=edit,
        examples=examples,
        count=count,
        mapped=mapped,
        baseline=baseline,
        rows=rows,
        problems=problems,
        classes=classes,
        duplicates=duplicates,
        forward=forward,
        working=working,
    )


def _build_reading(ctx: AppContext) -> dict[str, Any]:
    """The two folds: which column is what, and how the rows are split."""
    t, built = ctx.words.t, dict[str, Any]()
    with (
        gr.Accordion(t("finetune.columns"), open=False, elem_id="finetune-columns"),
        gr.Column(elem_classes=["form-grid"]),
    ):
        built |= {name: _build_column(ctx, name) for name in ("first", "second", "third")}
        built |= _part(ctx, ("kind", "quotes")).controls
    with (
        gr.Accordion(t("finetune.split"), open=False, elem_id="finetune-split"),
        gr.Column(elem_classes=["form-grid"]),
    ):
        built |= _part(ctx, SPLIT).controls
    return built


def _part(ctx: AppContext, names: tuple[str, ...]) -> Form:
    return build_form(ctx.words, DataSettings, prefix=PREFIX, elem_id="finetune", names=names)


def _build_choice(ctx: AppContext) -> gr.Dropdown:
    t = ctx.words.t
    return gr.Dropdown(
        [(t(f"{PREFIX}.data.{name}"), name) for name in (*SAMPLES, UPLOADED, TYPED, HUB)],
        value=DataSettings().data,
        label=t(f"{PREFIX}.data"),
        info=t(f"{PREFIX}.data_info"),
        elem_id="finetune-data",
    )


def _build_upload(ctx: AppContext) -> gr.UploadButton:
    return gr.UploadButton(
        ctx.words.t("finetune.upload"),
        file_types=[".csv", ".tsv", ".json", ".jsonl", ".parquet", ".txt"],
        type="filepath",
        size="sm",
        visible=False,
        elem_id="finetune-upload",
    )


def _build_typed(ctx: AppContext) -> gr.Textbox:
    t = ctx.words.t
    return gr.Textbox(
        "",
        label=t(f"{PREFIX}.typed"),
        info=t(f"{PREFIX}.typed_info"),
        lines=6,
        max_lines=14,
        visible=False,
        elem_id="finetune-typed",
        elem_classes=["numbers"],
    )


def _build_hub(ctx: AppContext) -> gr.Textbox:
    t = ctx.words.t
    return gr.Textbox(
        "",
        label=t(f"{PREFIX}.hub"),
        info=t(f"{PREFIX}.hub_info"),
        placeholder="tatsu-lab/alpaca",
        max_lines=1,
        submit_btn=True,
        visible=False,
        elem_id="finetune-hub",
    )


def _build_column(ctx: AppContext, name: str) -> gr.Dropdown:
    t = ctx.words.t
    return gr.Dropdown(
        [""],
        value="",
        label=t(f"{PREFIX}.{name}"),
        info=t(f"{PREFIX}.{name}_info"),
        allow_custom_value=True,
        elem_id=f"finetune-{name}",
    )


def _register(ctx: AppContext, form: Form) -> None:
    """What of the data an address may name; an uploaded file it cannot."""
    controls = form.controls
    ctx.address.register("finetune", "data", controls["data"], parse_choice((*SAMPLES, TYPED, HUB)))
    ctx.address.register("finetune", "rows", controls["typed"])
    ctx.address.register("finetune", "hub", controls["hub"])
    ctx.address.register("finetune", "seed", controls["split_seed"], parse_integer(0, 2**31 - 1))


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = DataHandlers(tune.ctx, tune.tunings)
    controls = parts.form.controls
    show = with_form(on.show, DataSettings)
    # the Hub is asked when an id is there whole, not at each of its letters
    asked = [control.change for name, control in controls.items() if name != "hub"]
    asked += [controls["hub"].submit, controls["hub"].blur]
    places = [parts.typed, parts.upload, controls["hub"]]
    for event in (controls["data"].change, tune.ctx.owner.change):
        tune.wire(event, on.sources, [controls["data"]], places, queue=False)
    for event in (*asked, tune.ctx.owner.change):
        tune.wire(
            event,
            show,
            parts.inputs,
            parts.outputs(),
            trigger_mode="always_last",
            queue=False,
            nothing=parts.nothing(),
        )
    tune.wire(parts.upload.upload, show, parts.inputs, parts.outputs(), nothing=parts.nothing())
    tune.wire(parts.examples.example, on.example, [], [controls["data"]], queue=False)
    edited = [controls["data"], parts.typed]
    tune.wire(parts.edit.click, with_form(on.edit, DataSettings), parts.inputs, edited)
    tune.wire(parts.forward.click, lambda: gr.Tabs(selected="train"), [], [tune.panels])
    expose(with_form(on.read_data, DataSettings), "finetune_data")
