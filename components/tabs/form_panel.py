"""A panel that is a form, pictures and a drawer: what many panels have in common, in one place.

    PANEL = Panel(plan=PanelPlan(tab="positions", name="rope", kind=RopeSettings, ...), show=show)
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
from dataclasses import dataclass, field
from typing import Any, Literal

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
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.text import Words, locale_of

ViewKind = Literal["chart", "matrix", "bars", "text", "other"]


@dataclass(frozen=True, kw_only=True)
class ViewPlan:
    """One view of the picture.

    Args:
        name: Its name in `PanelView.views`, and the last part of its id.
        kind: What it is.
        height: Of a chart, in pixels.
        build: Builds a view of another kind, from the words and its id.
    """

    name: str
    kind: ViewKind = "chart"
    height: int = 340
    build: Callable[[Words, str], gr.HTML] | None = None


@dataclass(frozen=True, kw_only=True)
class PanelPlan:
    """What a panel consists of.

    Args:
        tab: Id of its tab.
        name: Its own id; its words begin with `<tab>.<name>`.
        kind: Dataclass of its settings.
        examples: Three instances of it; their words are `<tab>.<name>.example_0` to `_2`.
        views: From top to bottom.
        formula: For the drawer.
        test: Where the numbers are checked, for the drawer.
        reads_model: Whether it shows the loaded model, so that another one changes it.
        starts: Names of ready settings to choose from; `loaded` stands for the loaded model. The
            words `<tab>.<name>.start`, `.start_info` and `.start.loaded` go with them.
    """

    tab: str
    name: str
    kind: type
    examples: Sequence[Any]
    views: Sequence[ViewPlan]
    formula: str
    test: str
    reads_model: bool = False
    starts: Sequence[str] = ()

    @property
    def prefix(self) -> str:
        """What its words begin with."""
        return f"{self.tab}.{self.name}"

    def element(self, part: str) -> str:
        """Id of a part in the page."""
        return f"{self.tab}-{self.name}-{part}"


@dataclass(frozen=True, eq=False)
class FormPanel:
    """The components of a panel, by its plan."""

    plan: PanelPlan
    form: Form
    examples: gr.HTML
    said: gr.HTML
    views: Mapping[str, gr.HTML]
    working: Working
    opened: gr.State
    start: gr.Dropdown | None

    def outputs(self) -> list[Any]:
        """What showing it fills."""
        drawer = self.working
        return [self.said, *self.views.values(), drawer.facts, drawer.table, drawer.exports]


@dataclass(frozen=True, kw_only=True)
class Visit:
    """Who looks, and at which model.

    Args:
        ctx: The page's context.
        model_id: The model that was chosen; None before one was.
        owner: Of its files.
        locale: The reader's language.
        prefix: What the panel's words begin with.
    """

    ctx: AppContext
    model_id: str | None
    owner: str
    locale: str
    prefix: str

    def say(self, key: str, **values: object) -> str:
        """The sentence `<prefix>.<key>` in the reader's language."""
        return self.words.say(self.locale, f"{self.prefix}.{key}", **values)

    @property
    def words(self) -> Words:
        """The sentences of the page."""
        return self.ctx.words

    @property
    def source(self) -> str:
        """The model to look at."""
        return self.ctx.source_of(self.model_id)

    def lease(self) -> Any:
        """Hold the model while it is used."""
        return self.ctx.store.lease(self.source, self.owner)


@dataclass(frozen=True, kw_only=True, eq=False)
class TableTwin:
    """The numbers of a picture.

    Args:
        rows: Labels of rows.
        columns: Labels of columns.
        cells: Numbers or texts; the CSV file has all rows that are numbers throughout.
        corner: Heading of the row labels.
        digits: After the point.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Any]]
    corner: str = ""
    digits: int = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class PanelView:
    """What a panel shows.

    Args:
        said: One or two sentences on what is seen.
        views: For each view of the plan its value.
        facts: Tensor, shape and file, as the drawer takes them; the test is added.
        table: The same numbers.
        python: A snippet that gives them.
    """

    said: str
    views: Mapping[str, Any]
    facts: Mapping[str, Any]
    table: TableTwin
    python: str
    csv: TableTwin | None = field(default=None)


Show = Callable[[Any, Visit], PanelView]
Start = Callable[[str, Visit], Any]
LOADED = "loaded"  # the ready settings that the loaded model has


@dataclass(frozen=True, kw_only=True)
class Panel:
    """What a panel's module exports.

    Args:
        plan: What the panel consists of.
        show: Computes and says what is seen.
        start: Gives the settings of a name, where the plan has names.
    """

    plan: PanelPlan
    show: Show
    start: Start | None = None


def build_form_tab(ctx: AppContext, head: TabHead, tab: str, panels: Sequence[Panel]) -> None:
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
    with gr.Tabs(elem_id=f"{tab}-panels", overflow_behavior="wrap") as row:
        for panel in panels:
            name = panel.plan.name
            with gr.Tab(ctx.words.t(f"{tab}.{name}.title"), id=name) as inner:
                built.append((panel, inner, build_form_panel(ctx, panel.plan)))
    ctx.address.register_panels(tab, row, [panel.plan.name for panel in panels])
    for panel, inner, parts in built:
        _wire(ctx, head, inner, parts, panel)


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
            keys = [f"{plan.prefix}.example_{i}" for i in range(len(plan.examples))]
            examples = build_examples(words, keys, elem_id=plan.element("examples"))
            start = _build_start(words, plan) if plan.starts else None
            form = build_form(words, plan.kind, prefix=plan.prefix, elem_id=plan.element("set"))
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id=plan.element("said"), look="text")
            views = {view.name: _build_view(ctx, plan, view) for view in plan.views}
            working = build_working(
                words,
                elem_id=plan.element("working"),
                formula=plan.formula,
                png=None if chart is None else plan.element(chart),
            )
    build_note(words, f"{plan.prefix}.look_for", elem_id=plan.element("note"))
    _register(ctx, plan, form)
    return FormPanel(plan, form, examples, said, views, working, gr.State(False), start)


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
    wire(tab.select, opening, inputs, [panel.opened, *panel.outputs()], **options)
    changes = [control.change for control in panel.form.inputs]
    if panel.plan.reads_model:
        changes.append(ctx.model_id.change)
    again = with_form(on.again, panel.plan.kind)
    wire(changes, again, [panel.opened, *inputs], panel.outputs(), **options)
    wire(panel.examples.example, on.example, [], panel.form.inputs, queue=False, **options)
    if panel.start is not None:
        chosen = [panel.start, ctx.model_id, ctx.owner]
        wire(panel.start.input, on.begin, chosen, panel.form.inputs, **options)
    expose(on.for_programs(), f"{panel.plan.tab}_{panel.plan.name}")


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
        return True, *self._values(self._visit(model_id, owner, request), settings)

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
    }


def _is_number(cell: Any) -> bool:
    return cell is None or isinstance(cell, (int, float, np.number))


def _plain_cell(cell: Any) -> Any:
    """A number as JSON takes it; what is not finite is said in words."""
    if not isinstance(cell, (float, np.floating)):
        return int(cell) if isinstance(cell, np.integer) else cell
    return float(cell) if np.isfinite(cell) else str(float(cell))
