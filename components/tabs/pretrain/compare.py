"""The panel "compare": several runs on one chart, and what differs between their settings."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.curve_panel import Curve, curves_message, thin
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.run_records import RunSummary, RunView
from explorer.training.run_snippets import evaluation_file, make_compare_snippet

MOST_RUNS = 6  # as many as there are colours
POINTS_OF_ALL = 3_000
QUANTITIES = ("validation", "training", "norm")
FORMULA = r"""
$$L_{\text{validation}} = -\frac{1}{N}\sum_{i=1}^{N} \ln p_\theta(x_{i+1} \mid x_{\le i})
\qquad x \text{ from the held-out part}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    runs: gr.Dropdown
    quantity: gr.Radio
    tokens: gr.Checkbox
    log: gr.Checkbox
    chart: gr.HTML
    same: gr.HTML
    table: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `CompareHandlers.show` fills."""
        drawer = self.working
        return [self.chart, self.same, self.table, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "pretrain-controls"], min_width=0):
            runs = gr.Dropdown(
                [],
                value=[],
                multiselect=True,
                max_choices=MOST_RUNS,
                label=t("pretrain.compare_runs"),
                info=t("pretrain.compare_runs_info"),
                elem_id="compare-runs",
            )
            quantity = gr.Radio(
                [(t(f"pretrain.quantity.{name}"), name) for name in QUANTITIES],
                value=QUANTITIES[0],
                label=t("pretrain.quantity_label"),
                elem_id="compare-quantity",
            )
            tokens = gr.Checkbox(False, label=t("pretrain.compare_tokens"), elem_id="compare-x")
            log = gr.Checkbox(False, label=t("pretrain.compare_log"), elem_id="compare-log")
        with gr.Column(elem_classes=["figure"], min_width=0):
            chart = build_plotly_panel(
                words, elem_id="compare-chart", label_key="pretrain.compare_label", height=340
            )
            same = build_line(words, elem_id="compare-same", look="heading")
            table = build_number_matrix(words, elem_id="compare-table")
            working = build_working(
                words, elem_id="compare-working", formula=FORMULA, png="compare-chart"
            )
    build_note(words, "pretrain.look_for_compare", elem_id="compare-note")
    return Parts(runs, quantity, tokens, log, chart, same, table, working)


def wire_panel(
    ctx: AppContext, head: TabHead, tab: gr.Tab, parts: Parts, choice: RunChoice
) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: The inner tab, which offers the runs of the moment when it is opened.
        parts: What `build` gave.
        choice: The run that is looked at, which is compared first.
    """
    on = CompareHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    shown: list[Any] = [parts.runs, parts.quantity, parts.tokens, parts.log]
    entering = [parts.runs, choice.run, ctx.owner]
    entered = wire(tab.select, on.offer, entering, [parts.runs], **options)
    wire(entered.then, on.show, shown, parts.outputs(), card=head.card, words=ctx.words)
    for control in shown:
        wire(control.input, on.show, shown, parts.outputs(), **options)
    expose(on.compare, "pretrain_compare")


class CompareHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def offer(
        self, chosen: list[str], run: str | None, owner: str | None, request: gr.Request
    ) -> Any:
        """The runs that can be chosen; at first the one looked at and the newest other."""
        listed = self._ctx.runs.list(self._ctx.owner_of(owner, request))
        summaries = [summary for summary in listed if summary.state != "broken"]
        known = [summary.id for summary in summaries]
        kept = [run_id for run_id in chosen if run_id in known]
        if not kept:
            first = [run] if run in known else []
            kept = list(dict.fromkeys([*first, *known]))[:2]
        names = zip(self._names(summaries, locale_of(request)), summaries, strict=True)
        return gr.Dropdown([(name, summary.id) for name, summary in names], value=kept)

    def show(
        self, chosen: list[str], quantity: str, tokens: bool, log: bool, request: gr.Request
    ) -> tuple[Any, ...]:
        """Draw the runs over each other."""
        locale, runs = locale_of(request), self._ctx.runs
        views = [runs.view(run_id) for run_id in chosen]
        if not views:
            nothing = {"csv": None, "png": None, "python": None}
            return None, self._ctx.words.say(locale, "pretrain.compare_none"), *[None] * 3, nothing
        say = self._ctx.words.say
        names = self._names([view.summary for view in views], locale)
        curves = [make_curve(n, v, quantity, tokens) for n, v in zip(names, views, strict=True)]
        most = POINTS_OF_ALL // len(curves)
        message = curves_message(
            [thin(curve, most) for curve in curves],
            x_title=say(locale, f"pretrain.live.x_{'tokens' if tokens else 'steps'}"),
            y_title=say(locale, f"pretrain.live.y_{'norm' if quantity == 'norm' else 'loss'}"),
            log_y=log,
            keep=f"{chosen} {quantity} {tokens} {log}",
        )
        rows = runs.differences(chosen)
        alone = "compare_one" if len(views) == 1 else "compare_equal"
        key = "compare_differ" if rows else alone
        return (
            message,
            say(locale, f"pretrain.{key}"),
            make_differences(say(locale, "pretrain.column_setting"), names, rows),
            {"tensor": "logits", "file": evaluation_file()},
            self._table(names, views, locale),
            {
                "csv": self._publish(names, curves),
                "png": "compare-chart",
                "python": make_compare_snippet(chosen),
            },
        )

    def compare(self, runs: list[str]) -> dict[str, Any]:
        """Compare runs by their ids: validation losses, and what differs in their settings."""
        views = [self._ctx.runs.view(run_id) for run_id in runs]
        return {
            "validation": [[[e.step, e.validation_loss] for e in v.evaluated] for v in views],
            "differences": {key: list(row) for key, row in self._ctx.runs.differences(runs)},
        }

    def _names(self, summaries: Sequence[RunSummary], locale: str) -> list[str]:
        """What runs are called in the choice, the legend and the tables."""
        say = self._ctx.words.say
        return _tell_apart(
            [
                say(locale, "pretrain.checkpoint_at", name=s.name, step=f"{s.step:,}")
                for s in summaries
            ]
        )

    def _table(self, names: list[str], views: list[RunView], locale: str) -> dict[str, Any]:
        """Lowest and last validation loss of each run."""
        columns = ("column_lowest", "column_at_step", "column_last")
        return {
            "corner": self._ctx.words.say(locale, "pretrain.column_run"),
            "rows": names,
            "cols": [self._ctx.words.say(locale, f"pretrain.{name}") for name in columns],
            "cells": [_lowest(view) for view in views],
            "digits": 4,
        }

    def _publish(self, names: list[str], curves: list[Curve]) -> str:
        """All numbers below each other: which run, where, how much."""
        places = [(i, x, y) for i, c in enumerate(curves) for x, y in zip(c.x, c.y, strict=True)]
        return self._ctx.routes.publish(
            np.array([[x, y] for _, x, y in places], dtype=np.float64).reshape(-1, 2),
            row_labels=[names[i] for i, _, _ in places],
            column_labels=["x", "y"],
        )


def make_curve(name: str, view: RunView, quantity: str, tokens: bool) -> Curve:
    """One run as a line."""
    if quantity == "validation":
        x = [e.tokens if tokens else e.step for e in view.evaluated]
        return Curve(name, x, [e.validation_loss for e in view.evaluated])
    values = view.losses if quantity == "training" else view.gradient_norms
    return Curve(name, (view.tokens if tokens else view.steps).tolist(), values.tolist())


def make_differences(
    corner: str, names: list[str], rows: tuple[tuple[str, tuple[str, ...]], ...]
) -> dict[str, Any] | None:
    """The value of the table of settings; None where nothing differs."""
    if not rows:
        return None
    return {
        "corner": corner,
        "rows": [key for key, _ in rows],
        "cols": names,
        "cells": [list(values) for _, values in rows],
        "digits": 0,
    }


def _lowest(view: RunView) -> list[Any]:
    finite = [e for e in view.evaluated if np.isfinite(e.validation_loss)]
    if not finite:
        return [None, None, None]
    best = min(finite, key=lambda e: e.validation_loss)
    return [best.validation_loss, f"{best.step:,}", finite[-1].validation_loss]


def _tell_apart(names: list[str]) -> list[str]:
    """Two runs may have one name."""
    seen: dict[str, int] = {}
    told = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        told.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return told
