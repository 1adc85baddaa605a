"""What a panel made from a form consists of: its plan, who looks at it, and what it shows.

`components/tabs/form_panel.py` builds panels from these and connects them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import gradio as gr

from components.context import AppContext
from components.tabs.tab import TabHead
from components.text import Words

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
        prefix: Id of its tab, a dot, its own id; its words begin so.
        kind: Dataclass of its settings.
        examples: Three instances of it; their words are `<prefix>.example_0` to `_2`.
        views: From top to bottom.
        formula: For the drawer.
        test: Where the numbers are checked, for the drawer.
        reads_model: Whether it shows the loaded model, so that another one changes it.
        starts: Names of ready settings to choose from; `loaded` stands for the loaded model. The
            words `<prefix>.start`, `.start_info` and `.start.loaded` go with them.
        text: The setting that decides, with the model, how many there are of something.
        plays: A whole number of the settings that a stepper with a play button moves; "" has none.
    """

    prefix: str
    kind: type
    examples: Sequence[Any]
    views: Sequence[ViewPlan]
    formula: str
    test: str
    reads_model: bool = False
    starts: Sequence[str] = ()
    text: str = "text"
    plays: str = ""

    @property
    def bounded(self) -> Mapping[str, str]:
        """Setting -> what the loaded model has so many of: `counts` in its field's metadata."""
        found = {f.name: f.metadata.get("counts", "") for f in dataclasses.fields(self.kind)}
        return {name: counts for name, counts in found.items() if counts}

    @property
    def tab(self) -> str:
        """Id of its tab."""
        return self.prefix.partition(".")[0]

    @property
    def name(self) -> str:
        """Its own id, within the tab."""
        return self.prefix.partition(".")[2]

    def element(self, part: str) -> str:
        """Id of a part in the page."""
        return f"{self.tab}-{self.name}-{part}"


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

    def say(self, key: str, /, **values: object) -> str:
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


EXAMPLES = ("example_0", "example_1", "example_2")


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

    @property
    def name(self) -> str:
        """Its id, within the tab."""
        return self.plan.name


@dataclass(frozen=True)
class OwnPanel:
    """A panel that is more than a form: it builds itself.

    Args:
        name: Its id, within the tab.
        build: Builds it, without its events; returns what connects them, given the head of the tab
            and the inner tab.
    """

    name: str
    build: Callable[[AppContext], Callable[[TabHead, gr.Tab], None]]
