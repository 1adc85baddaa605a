"""The panel "experts": who works on which token, and what a layer with experts costs."""

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
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.numbers import Number
from components.kit.pickers import build_picker
from components.kit.plotly_panel import build_plotly_panel
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import NO_DRAWER
from components.tabs.attention.experts_handlers import EXAMPLES, ExpertHandlers
from components.tabs.tab import TabHead
from explorer.attention_lab.experts import LayerSettings

EXAMPLE_KEYS = tuple(f"attention.experts.example_{n}" for n in ("words", "numbers", "code"))
FORMULA = r"""
$$p = \mathrm{softmax}(W_r x), \qquad y = \sum_{e \in \text{top-}k(p)} \tilde p_e\,
\mathrm{FFN}_e(x)$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    model: gr.Dropdown
    train: gr.Button
    stop: gr.Button
    trained: gr.HTML
    text: gr.Textbox
    examples: gr.HTML
    layer: gr.HTML
    expert: gr.Number
    run: gr.Button
    said: gr.HTML
    map: gr.HTML
    taken: gr.HTML
    load: gr.HTML
    bars: gr.HTML
    working: Working
    form: Form
    start: gr.Button
    cost_said: gr.HTML
    plot: gr.HTML
    costs: gr.HTML
    cost_exports: Working
    published: gr.HTML
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `ExpertHandlers.show` fills."""
        views = [self.said, self.map, self.taken, self.load, self.bars]
        return [self.layer, *views, *self.working.outputs]

    def cost_outputs(self) -> list[Any]:
        """What `ExpertHandlers.measure` fills."""
        return [self.cost_said, self.plot, self.costs, *self.cost_exports.outputs]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-experts-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            model, train, stop, trained = _build_model(ctx)
            text = gr.Textbox(
                EXAMPLES[0], label=t("attention.text"), lines=3, elem_id="lab-experts-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-experts-examples")
            layer = build_picker(words, "layer", elem_id="lab-experts-layer")
            expert = Number(
                -1,
                minimum=-1,
                label=t("attention.experts.off"),
                info=t("attention.experts.off_info"),
                elem_id="lab-experts-off",
            )
            run = gr.Button(
                t("attention.experts.run"), variant="primary", elem_id="lab-experts-run"
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="lab-experts-said", look="heading")
            with gr.Row(elem_classes=["lab-pair"]):
                with gr.Column(min_width=0):
                    big = build_heatmap(words, elem_id="lab-experts-map")
                with gr.Column(min_width=0):
                    gr.HTML(t("attention.experts.taken_title"), elem_classes=["lab-heading"])
                    taken = build_number_matrix(words, elem_id="lab-experts-taken")
            with gr.Row(elem_classes=["lab-pair"]):
                with gr.Column(min_width=0):
                    gr.HTML(t("attention.experts.load"), elem_classes=["lab-heading"])
                    load = build_bar_list(words, elem_id="lab-experts-load")
                with gr.Column(min_width=0):
                    gr.HTML(t("attention.lab_next"), elem_classes=["lab-heading"])
                    bars = build_bar_list(words, elem_id="lab-experts-bars")
            working = build_working(
                words, elem_id="lab-experts-working", formula=FORMULA, png="lab-experts-map"
            )
    form, start, cost_said, plot, costs, exports, published = _build_costs(ctx)
    return Parts(
        model, train, stop, trained, text, examples, layer, expert, run, said, big, taken, load,
        bars, working, form, start, cost_said, plot, costs, exports, published, seen,
    )  # fmt: skip


def _build_model(ctx: AppContext) -> tuple[Any, ...]:
    t = ctx.words.t
    model = gr.Dropdown(
        [],
        value="",
        allow_custom_value=True,
        label=t("attention.experts.model"),
        info=t("attention.experts.model_info"),
        elem_id="lab-experts-model",
    )
    with gr.Row(elem_classes=["button-row"]):
        train = gr.Button(t("attention.experts.train"), elem_id="lab-experts-train")
        stop = gr.Button(t("attention.lab_stop"), elem_id="lab-experts-stop")
    trained = build_line(ctx.words, elem_id="lab-experts-trained", look="help")
    return model, train, stop, trained


def _build_costs(ctx: AppContext) -> tuple[Any, ...]:
    words, t = ctx.words, ctx.words.t
    gr.HTML(t("attention.experts.cost_title"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            form = build_form(words, LayerSettings, prefix="attention.experts", elem_id="lab-moe")
            start = gr.Button(t("attention.ways.start"), variant="primary", elem_id="lab-moe-start")
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="lab-moe-said", look="help")
            plot = build_plotly_panel(
                words, elem_id="lab-experts-plot", label_key="attention.experts.label", height=240
            )
            costs = build_number_matrix(words, elem_id="lab-moe-table")
            gr.HTML(t("attention.experts.published"), elem_classes=["lab-heading"])
            published = build_number_matrix(words, elem_id="lab-experts-published")
            working = build_working(
                words, elem_id="lab-moe-working", formula=FORMULA, png="lab-experts-plot"
            )
    build_note(words, "attention.look_for_experts", elem_id="lab-experts-note")
    return form, start, said, plot, costs, working, published


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = ExpertHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    inputs = [parts.model, parts.text, parts.layer, parts.expert, ctx.owner]
    shown = {**options, "nothing": (gr.skip(), "", *[None] * 4, *NO_DRAWER)}
    latest: dict[str, Any] = {**shown, "trigger_mode": "always_last"}
    for event in (parts.run.click, parts.layer.pick, parts.expert.submit, parts.model.input):
        wire(event, on.show, inputs, parts.outputs(), **latest)
    offered = [parts.model, ctx.model_id, ctx.owner]
    seen = wire(parts.seen.seen, on.offer, offered, [parts.model], **options)
    wire(seen.then, on.begin, inputs, parts.outputs(), **shown)
    trained = [parts.model, parts.trained]
    end = wire(parts.train.click, on.train, [ctx.owner], trained, **options)
    wire(end.then, on.begin, inputs, parts.outputs(), **shown)
    wire(parts.stop.click, on.stop, [], [], queue=False, **options)
    example = wire(parts.examples.example, on.example, [], [parts.text], **options)
    wire(example.then, on.begin, inputs, parts.outputs(), **shown)
    wire(parts.seen.seen, on.published, [], [parts.published], **options)
    measure = with_form(on.measure, LayerSettings)
    sizes, costs = parts.form.inputs, parts.cost_outputs()
    nothing = ("", None, None, *NO_DRAWER)
    wire(parts.start.click, measure, sizes, costs, nothing=nothing, **options)
    expose(on.attention_experts, "attention_experts")
    expose(with_form(on.attention_experts_cost, LayerSettings), "attention_experts_cost")
    ctx.address.register("attention", "experts_text", parts.text)
