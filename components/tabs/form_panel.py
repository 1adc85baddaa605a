"""A panel that is a form, pictures and a drawer: what many panels have in common, in one place.

    PANEL = Panel(plan=PanelPlan(prefix="positions.rope", kind=RopeSettings, ...), show=show)
    build_form_tab(ctx, head, "positions", [rope.PANEL, scaling.PANEL])

`show(settings, visit)` computes and returns a `PanelView`; everything else follows from the plan:
controls from the dataclass, three examples as instances of it, a key of the address for each
control, `/<tab>_<name>` for programs with the numbers of the table, CSV and "Copy as Python".
"""

from __future__ import annotations

import dataclasses
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.address import Parse, parse_choice, parse_integer, parse_switch, parse_text
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import MOST_TABLE_ROWS, build_number_matrix
from components.kit.page_style import build_page_style
from components.kit.plotly_panel import build_plotly_panel
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.panel_plan import (
    EXAMPLES,
    LOADED,
    OwnPanel,
    Panel,
    PanelPlan,
    TableTwin,
    ViewPlan,
    Visit,
)
from components.tabs.tab import TabHead
from components.text import Words, locale_of
from explorer.choice_counts import count_choices


@dataclass(frozen=True, eq=False)
class FormPanel:
    """The components of a panel, by its plan."""

    plan: PanelPlan
    form: Form
    examples: gr.HTML
    said: gr.HTML
    stepper: gr.HTML | None
    views: Mapping[str, gr.HTML]
    working: Working
    opened: gr.State
    start: gr.Dropdown | None

    def outputs(self) -> list[Any]:
        """What showing it fills."""
        drawer = self.working
        return [self.said, *self.views.values(), drawer.facts, drawer.table, drawer.exports]

    def bounded(self) -> list[Any]:
        """Controls that end where the loaded model ends, and the stepper of one of them."""
        controls = [self.form.controls[name] for name in self.plan.bounded]
        return [*controls, self.stepper] if self.plan.plays in self.plan.bounded else controls


def build_form_tab(
    ctx: AppContext, head: TabHead, tab: str, panels: Sequence[Panel | OwnPanel]
) -> None:
    """Build the panels of a tab as inner tabs, and connect their events.

    The words `<tab>.<panel>.title` must exist.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: Its id.
        panels: From left to right.
    """
    build_page_style("form_panel")
    built: list[tuple[Panel, gr.Tab, FormPanel]] = []
    own: list[tuple[Callable[[TabHead, gr.Tab], None], gr.Tab]] = []
    with gr.Tabs(elem_id=f"{tab}-panels", overflow_behavior="wrap") as row:
        for panel in panels:
            with gr.Tab(ctx.words.t(f"{tab}.{panel.name}.title"), id=panel.name) as inner:
                if isinstance(panel, OwnPanel):
                    own.append((panel.build(ctx), inner))
                else:
                    built.append((panel, inner, build_form_panel(ctx, panel.plan)))
    ctx.address.register_panels(tab, row, [panel.name for panel in panels], card=head.card)
    for panel, inner, parts in built:
        _wire(ctx, head, inner, parts, panel)
    for connect, inner in own:
        connect(head, inner)


def build_form_panel(ctx: AppContext, plan: PanelPlan) -> FormPanel:
    """Build a panel, without its events.

    Args:
        ctx: The page's context.
        plan: What it consists of.
    """
    words = ctx.words
    chart = next((view.name for view in plan.views if view.kind == "chart"), None)
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "form-controls"], min_width=0):
            keys = [f"{plan.prefix}.{key}" for key in EXAMPLES]
            examples = build_examples(words, keys, elem_id=plan.element("examples"))
            start = _build_start(words, plan) if plan.starts else None
            form = build_form(words, plan.kind, prefix=plan.prefix, elem_id=plan.element("set"))
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id=plan.element("said"), look="text")
            stepper = _build_stepper(words, plan) if plan.plays else None
            views = {view.name: _build_view(ctx, plan, view) for view in plan.views}
            working = build_working(
                words,
                elem_id=plan.element("working"),
                formula=plan.formula,
                png=None if chart is None else plan.element(chart),
            )
    build_note(words, f"{plan.prefix}.look_for", elem_id=plan.element("note"))
    _register(ctx, plan, form)
    return FormPanel(plan, form, examples, said, stepper, views, working, gr.State(False), start)


def _build_start(words: Words, plan: PanelPlan) -> gr.Dropdown:
    """A list of ready settings; choosing one fills the form."""
    choices = [(words.t(f"{plan.prefix}.start.{LOADED}"), LOADED)]
    return gr.Dropdown(
        [*choices, *((name, name) for name in plan.starts)],
        value=None,
        label=words.t(f"{plan.prefix}.start"),
        info=words.t(f"{plan.prefix}.start_info"),
        elem_id=plan.element("start"),
    )


def _build_stepper(words: Words, plan: PanelPlan) -> gr.HTML:
    setting = next(f for f in dataclasses.fields(plan.kind) if f.name == plan.plays)
    first = {"index": setting.default, "count": setting.metadata["most"] + 1}
    return build_stepper(words, elem_id=plan.element("play"), value=first)


def _build_view(ctx: AppContext, plan: PanelPlan, view: ViewPlan) -> gr.HTML:
    elem_id = plan.element(view.name)
    if view.build is not None:
        return view.build(ctx.words, elem_id)
    if view.kind == "chart":
        label = f"{plan.prefix}.label_{view.name}"
        return build_plotly_panel(ctx.words, elem_id=elem_id, label_key=label, height=view.height)
    if view.kind == "matrix":
        return build_number_matrix(ctx.words, elem_id=elem_id)
    if view.kind == "bars":
        return build_bar_list(ctx.words, elem_id=elem_id)
    return build_line(ctx.words, elem_id=elem_id, look="text")


def _register(ctx: AppContext, plan: PanelPlan, form: Form) -> None:
    """Give each control a key in the address: `<panel>_<field>`."""
    hints = typing.get_type_hints(plan.kind)
    for setting in dataclasses.fields(plan.kind):
        parse = _parser_of(setting.metadata, hints[setting.name])
        key = f"{plan.name}_{setting.name}"
        ctx.address.register(plan.tab, key, form.controls[setting.name], parse)


def _parser_of(facts: Mapping[str, Any], kind: type) -> Parse:
    if "choices" in facts:
        return parse_choice(tuple(facts["choices"]))
    if kind is int and "least" in facts:
        return parse_integer(facts["least"], facts["most"])
    if kind is bool:
        return parse_switch
    return parse_text if kind is str else float


def _wire(ctx: AppContext, head: TabHead, tab: gr.Tab, panel: FormPanel, parts: Panel) -> None:
    """Connect a panel's events; nothing is computed before somebody opens it."""
    on = FormPanelHandlers(ctx, parts)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    inputs = [ctx.model_id, ctx.owner, *panel.form.inputs]
    opening = with_form(on.open, panel.plan.kind)
    shown = [*panel.outputs(), *panel.bounded()]
    wire(tab.select, opening, inputs, [panel.opened, *shown], **options)
    text = panel.form.controls.get(panel.plan.text) if panel.plan.bounded else None
    changes = [c.change for c in panel.form.inputs if c is not text]
    again = with_form(on.again, panel.plan.kind)
    wire(changes, again, [panel.opened, *inputs], panel.outputs(), **options)
    others = [] if text is None else [text.change]  # another text has another number of tokens
    if panel.plan.reads_model:
        others.append(ctx.model_id.change)
    if others:
        anew = with_form(on.anew, panel.plan.kind)
        wire(others, anew, [panel.opened, *inputs], shown, **options)
    if panel.stepper is not None:
        _wire_stepper(panel, on, options)
    wire(panel.examples.example, on.example, [], panel.form.inputs, queue=False, **options)
    if panel.start is not None:
        chosen = [panel.start, ctx.model_id, ctx.owner]
        wire(panel.start.input, on.begin, chosen, panel.form.inputs, **options)
    expose(on.for_programs(), f"{panel.plan.tab}_{panel.plan.name}")


def _wire_stepper(panel: FormPanel, on: FormPanelHandlers, options: Mapping[str, Any]) -> None:
    """The stepper moves its control, and follows it."""
    stepper, plays = panel.stepper, panel.plan.plays
    control = panel.form.controls[plays]
    assert stepper is not None, "built where the plan plays"
    wire(stepper.step, on.play, [], [control], queue=False, **options)
    follow = "(place, now) => ({...now, index: place})"
    control.change(None, [control, stepper], [stepper], js=follow, api_visibility="private")


class FormPanelHandlers:
    """Handlers of a panel's events.

    Args:
        ctx: The page's context.
        panel: What the panel's module exports.
    """

    def __init__(self, ctx: AppContext, panel: Panel) -> None:
        self._ctx, self._plan = ctx, panel.plan
        self._show, self._start = panel.show, panel.start

    def open(
        self, model_id: str | None, owner: str | None, request: gr.Request, settings: Any
    ) -> tuple[Any, ...]:
        """Show what is set, when the panel is opened."""
        return True, *self._anew(self._visit(model_id, owner, request), settings)

    def again(
        self,
        opened: bool,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
        settings: Any,
    ) -> tuple[Any, ...]:
        """Show what has changed, in a panel that was opened."""
        if not opened:
            return tuple(gr.skip() for _ in range(len(self._plan.views) + 4))
        return self._values(self._visit(model_id, owner, request), settings)

    def anew(
        self,
        opened: bool,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
        settings: Any,
    ) -> tuple[Any, ...]:
        """Show another model or text: some controls end elsewhere now."""
        if not opened:
            n_bounded = len(self._plan.bounded) + (self._plan.plays in self._plan.bounded)
            return tuple(gr.skip() for _ in range(len(self._plan.views) + 4 + n_bounded))
        return self._anew(self._visit(model_id, owner, request), settings)

    def play(self, event: gr.EventData) -> int:
        """Move the control that is played."""
        return int(event._data["index"])

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Set all controls to those of an example."""
        return self._spread(self._plan.examples[int(event._data["index"])])

    def begin(
        self, name: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Set all controls to ready settings."""
        assert self._start is not None, "a plan with names comes with what gives their settings"
        return self._spread(self._start(name, self._visit(model_id, owner, request)))

    def _spread(self, settings: Any) -> Any:
        """A value for each control; alone where there is one."""
        values = tuple(getattr(settings, f.name) for f in dataclasses.fields(self._plan.kind))
        return values if len(values) > 1 else values[0]

    def for_programs(self) -> Callable[..., Any]:
        """The function of the panel in the API, with the settings as its parameters."""
        call = with_form(self.numbers, self._plan.kind)
        call.__doc__ = inspect.cleandoc(self._show.__doc__ or "")
        return call

    def numbers(self, request: gr.Request, settings: Any) -> dict[str, Any]:
        """The numbers of the panel's table, for the page's first model where one is read."""
        view = self._show(settings, self._visit(None, None, request))
        table = view.csv or view.table
        return {
            "said": view.said,
            "columns": list(table.columns),
            "rows": list(table.rows),
            "cells": [[_plain_cell(cell) for cell in row] for row in table.cells],
        }

    def _anew(self, visit: Visit, settings: Any) -> tuple[Any, ...]:
        """All views, and for each bounded control where it ends."""
        ends = self._ends(visit, settings)
        moved = {name: min(getattr(settings, name), end) for name, end in ends.items()}
        settings = dataclasses.replace(settings, **moved)
        updates: list[Any] = [self._bound(name, ends[name], moved[name]) for name in ends]
        if (played := self._plan.plays) in ends:
            updates.append({"index": moved[played], "count": ends[played] + 1})
        return *self._values(visit, settings), *updates

    def _bound(self, name: str, end: int, value: int) -> Any:
        """The control of a setting with a new end; one without a choice cannot be moved."""
        field = next(f for f in dataclasses.fields(self._plan.kind) if f.name == name)
        least = field.metadata["least"]
        # Gradio refuses a slider of one value
        return gr.update(maximum=max(end, least + 1), value=value, interactive=end > least)

    def _ends(self, visit: Visit, settings: Any) -> dict[str, int]:
        """The highest value of each bounded setting, in the loaded model."""
        bounded = self._plan.bounded
        if not bounded:
            return {}
        text, wanted = getattr(settings, self._plan.text, ""), tuple(set(bounded.values()))
        with visit.lease() as loaded:
            counts = count_choices(loaded, wanted, text)
        fields = {f.name: f.metadata for f in dataclasses.fields(self._plan.kind)}
        return {name: min(counts[what] - 1, fields[name]["most"]) for name, what in bounded.items()}

    def _visit(self, model_id: str | None, owner: str | None, request: gr.Request) -> Visit:
        return Visit(
            ctx=self._ctx,
            model_id=model_id,
            owner=self._ctx.owner_of(owner, request),
            locale=locale_of(request),
            prefix=self._plan.prefix,
        )

    def _values(self, visit: Visit, settings: Any) -> tuple[Any, ...]:
        view = self._show(settings, visit)
        exports = {
            "csv": self._publish(view.csv or view.table),
            "png": self._png(),
            "python": view.python,
        }
        return (
            view.said,
            *(view.views[plan.name] for plan in self._plan.views),
            {**view.facts, "test": self._plan.test},
            make_matrix(view.table),
            exports,
        )

    def _png(self) -> str | None:
        charts = [view.name for view in self._plan.views if view.kind == "chart"]
        return self._plan.element(charts[0]) if charts else None

    def _publish(self, table: TableTwin) -> str:
        """All columns that are numbers, as a CSV file."""
        numeric = [
            i for i in range(len(table.columns)) if all(_is_number(row[i]) for row in table.cells)
        ]
        cells = [[np.nan if row[i] is None else row[i] for i in numeric] for row in table.cells]
        return self._ctx.routes.publish(
            np.array(cells, dtype=np.float64).reshape(len(table.rows), len(numeric)),
            row_labels=list(table.rows),
            column_labels=[table.columns[i] for i in numeric],
        )


def make_matrix(table: TableTwin, most: int = MOST_TABLE_ROWS) -> dict[str, Any]:
    """A table as the value of a number matrix: its first rows."""
    return {
        "corner": table.corner,
        "rows": list(table.rows[:most]),
        "cols": list(table.columns),
        "cells": [[_plain_cell(cell) for cell in row] for row in table.cells[:most]],
        "digits": table.digits,
        "wide": True,
    }


def _is_number(cell: Any) -> bool:
    return cell is None or isinstance(cell, (int, float, np.number))


def _plain_cell(cell: Any) -> Any:
    """A number as JSON takes it; what is not finite is said in words."""
    if not isinstance(cell, (float, np.floating)):
        return int(cell) if isinstance(cell, np.integer) else cell
    return float(cell) if np.isfinite(cell) else str(float(cell))
