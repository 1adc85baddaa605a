"""The panel "experts": who works on which token, and what a layer with experts costs."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

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
from components.kit.pickers import build_picker
from components.kit.plotly_panel import build_plotly_panel, figure_message
from components.kit.seen import build_seen
from components.kit.working import Working, build_working
from components.tabs.attention.drawer import Shown, fill_drawer
from components.tabs.attention.figures import make_spread_bars
from components.tabs.attention.reading import (
    Reader,
    index_of,
    make_probability_bars,
    within,
)
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.attention_lab.experts import (
    ExpertChoices,
    LayerSettings,
    compute_experts,
    find_published_experts,
    measure_layers,
)
from explorer.attention_lab.snippets import make_experts_snippet, make_layer_cost_snippet

EXAMPLE_KEYS = tuple(f"attention.experts.example_{n}" for n in ("words", "numbers", "code"))
EXAMPLES = (
    "The quick brown fox jumps over the lazy dog.",
    "1, 2, 3, 5, 8, 13, 21, 34",
    "def area(w, h):\n    return w * h",
)
FORMULA = r"""
$$p = \mathrm{softmax}(W_r x), \qquad y = \sum_{e \in \text{top-}k(p)} \tilde p_e\,
\mathrm{FFN}_e(x)$$
"""
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
MILLISECONDS, BILLION = 1_000, 10**9


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    examples: gr.HTML
    layer: gr.HTML
    expert: gr.Number
    run: gr.Button
    said: gr.HTML
    map: gr.HTML
    load: gr.HTML
    bars: gr.HTML
    working: Working
    form: Form
    start: gr.Button
    plot: gr.HTML
    costs: gr.HTML
    cost_exports: Working
    published: gr.HTML
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `ExpertHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [self.layer, self.said, self.map, self.load, self.bars, *drawer]

    def cost_outputs(self) -> list[Any]:
        """What `ExpertHandlers.measure` fills."""
        working = self.cost_exports
        return [self.plot, self.costs, working.facts, working.table, working.exports]


class ExpertHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._reader = Reader(ctx)

    def show(
        self,
        text: str,
        layer: dict[str, int] | None,
        expert: float | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Read the text, and again with the chosen expert off."""
        locale, say = locale_of(request), self._ctx.words.say
        off = None if expert is None or expert < 0 else int(expert)
        with self._reader.open(model_id, owner, request) as (source, loaded):
            at = within(index_of(layer), loaded.config.n_layers)
            found = compute_experts(
                loaded, text, layer=at["index"], expert=off, turn=self._ctx.slots.turn
            )
        index = at["index"]
        names = [f"e{i}" for i in range(found.n_experts)]
        load = found.load[index]
        return (
            at,
            say(
                locale,
                "attention.experts.said",
                before=f"{found.loss:.4f}",
                after=f"{found.loss_without:.4f}",
                even=f"{100 / found.n_experts:.1f}",
                most=f"{100 * load.max():.1f}",
            ),
            self._map(found, index, names, locale),
            {
                "bars": [{"label": n, "value": float(x)} for n, x in zip(names, load, strict=True)],
                "unit": "%",
            },
            make_probability_bars(found.tokens, found.before, found.after, self._ctx.words, locale),
            *fill_drawer(
                self._ctx,
                Shown(
                    tensor=f"blocks.{index}.router.logits",
                    cells=found.probabilities[index],
                    rows=found.labels,
                    columns=names,
                    function=compute_experts,
                    test=TEST_FILE,
                    python=make_experts_snippet(source, text, index, off),
                    png="lab-experts-map",
                ),
            ),
        )

    def measure(self, request: gr.Request, settings: LayerSettings) -> tuple[Any, ...]:
        """Measure a layer with experts beside dense ones."""
        locale, say = locale_of(request), self._ctx.words.say
        costs = measure_layers(settings, turn=self._ctx.slots.turn)
        names = [say(locale, f"attention.experts.name.{cost.name}") for cost in costs]
        columns = [
            say(locale, f"attention.experts.{key}") for key in ("held", "used", "bytes", "time")
        ]
        cells = [
            [c.n_parameters, c.n_active, c.n_bytes / 10**6, MILLISECONDS * c.forward_s[1]]
            for c in costs
        ]
        spread = [tuple(MILLISECONDS * s for s in cost.forward_s) for cost in costs]
        figure = make_spread_bars(
            names,
            {columns[3]: spread},  # type: ignore[dict-item]
            x_title=columns[3],
        )
        table = {
            "rows": names,
            "cols": columns,
            "cells": [[f"{a:,}", f"{b:,}", f"{c:.2f}", f"{d:.2f}"] for a, b, c, d in cells],
        }
        drawer = Shown(
            tensor="router, experts.*",
            cells=np.array(cells, dtype=np.float64),
            rows=names,
            columns=columns,
            function=measure_layers,
            test=TEST_FILE,
            python=make_layer_cost_snippet(settings),
            png="lab-experts-plot",
        )
        return figure_message(figure), table, *fill_drawer(self._ctx, drawer)

    def published(self, request: gr.Request) -> dict[str, Any]:
        """Published models with experts: weights held, weights at work."""
        locale, say = locale_of(request), self._ctx.words.say
        found = find_published_experts()
        return {
            "rows": [model.name for model in found],
            "cols": [say(locale, f"attention.experts.{key}") for key in ("held", "used", "share")],
            "cells": [
                [
                    f"{model.n_parameters:,}",
                    f"{model.n_active:,}",
                    f"{100 * model.n_active / model.n_parameters:.1f} %",
                ]
                for model in found
            ],
        }

    def example(self, event: gr.EventData) -> str:
        """Type an example."""
        return EXAMPLES[int(event._data["index"])]

    def attention_experts(
        self, text: str, layer: int, expert: int, request: gr.Request
    ) -> dict[str, Any]:
        """Experts of each token in the page's first model; expert -1 switches none off."""
        with self._reader.open(None, None, request) as (_, loaded):
            found = compute_experts(
                loaded,
                text,
                layer=layer,
                expert=None if expert < 0 else expert,
                turn=self._ctx.slots.turn,
            )
        return {
            "labels": list(found.labels),
            "probabilities": found.probabilities[layer].tolist(),
            "chosen": found.chosen[layer].tolist(),
            "load": found.load.tolist(),
            "loss": found.loss,
            "loss_without": found.loss_without,
        }

    def attention_experts_cost(self, *, settings: LayerSettings) -> list[dict[str, Any]]:
        """Measure a layer with experts beside dense ones with as much work or as many weights."""
        return [vars(cost) for cost in measure_layers(settings, turn=self._ctx.slots.turn)]

    def _map(
        self, found: ExpertChoices, layer: int, names: list[str], locale: str
    ) -> dict[str, Any]:
        labels = [f"{i} {label}" for i, label in enumerate(found.labels)]
        matrix = self._ctx.routes.publish(
            found.probabilities[layer], row_labels=labels, column_labels=names
        )
        title = self._ctx.words.say(locale, "attention.experts.map", layer=layer)
        return {
            "matrix": matrix,
            "rows": labels,
            "cols": names,
            "causal": False,
            "title": title,
            "max": 1,
        }


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-experts-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            text = gr.Textbox(
                EXAMPLES[0], label=t("attention.text"), lines=3, elem_id="lab-experts-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-experts-examples")
            layer = build_picker(words, "layer", elem_id="lab-experts-layer")
            expert = gr.Number(
                -1,
                precision=0,
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
            big = build_heatmap(words, elem_id="lab-experts-map")
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
    form, start, plot, costs, exports, published = _build_costs(ctx)
    return Parts(
        text,
        examples,
        layer,
        expert,
        run,
        said,
        big,
        load,
        bars,
        working,
        form,
        start,
        plot,
        costs,
        exports,
        published,
        seen,
    )


def _build_costs(ctx: AppContext) -> tuple[Any, ...]:
    words, t = ctx.words, ctx.words.t
    gr.HTML(t("attention.experts.cost_title"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            form = build_form(words, LayerSettings, prefix="attention.experts", elem_id="lab-moe")
            start = gr.Button(t("attention.ways.start"), variant="primary", elem_id="lab-moe-start")
        with gr.Column(elem_classes=["figure"], min_width=0):
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
    return form, start, plot, costs, working, published


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = ExpertHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    inputs = [parts.text, parts.layer, parts.expert, ctx.model_id, ctx.owner]
    for event in (parts.run.click, parts.layer.pick, parts.expert.submit):
        wire(event, on.show, inputs, parts.outputs(), trigger_mode="always_last", **options)
    wire(parts.examples.example, on.example, [], [parts.text], queue=False, **options)
    wire(parts.seen.seen, on.published, [], [parts.published], **options)
    measure = with_form(on.measure, LayerSettings)
    wire(parts.start.click, measure, parts.form.inputs, parts.cost_outputs(), **options)
    expose(on.attention_experts, "attention_experts")
    expose(with_form(on.attention_experts_cost, LayerSettings), "attention_experts_cost")
    ctx.address.register("attention", "experts_text", parts.text)
