"""The panel "lineage": which model came from which; any of them opens."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.text_table import build_text_table
from components.tabs.finetune.tuning_tab import TuningTab
from components.text import locale_of
from explorer.tuning_runs import LineageNode, TuningRuns

BRANCH = "──"  # blanks of any kind would be shown as such, or run together


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    said: gr.HTML
    tree: gr.HTML
    nodes: gr.State


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    with gr.Column(elem_classes=["figure"], min_width=0):
        said = build_line(ctx.words, elem_id="finetune-lineage-said", look="heading")
        tree = build_text_table(ctx.words, elem_id="finetune-lineage", clickable=True)
    build_note(ctx.words, "finetune.look_for_lineage", elem_id="finetune-lineage-note")
    return Parts(said, tree, gr.State(()))


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = LineageHandlers(tune.ctx, tune.tunings)
    tune.wire(
        tune.tabs["lineage"].select,
        on.show,
        [tune.ctx.owner],
        [parts.said, parts.tree, parts.nodes],
    )
    tune.wire(parts.tree.row_click, on.open, [parts.nodes], [tune.ctx.wanted_model])
    expose(on.read_lineage, "finetune_lineage")


class LineageHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def show(self, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """The tree, and what each of its rows opens."""
        nodes = self._tunings.lineage(self._ctx.owner_of(owner, request))
        locale, say = locale_of(request), self._ctx.words.say
        said = say(locale, "finetune.lineage_some" if nodes else "finetune.lineage_none")
        value = {
            "cols": [say(locale, f"finetune.lineage.{name}") for name in ("model", "how", "loss")],
            "rows": [self._row(node, locale) for node in nodes],
        }
        return said, value if nodes else None, tuple(node.source for node in nodes)

    def open(self, sources: tuple[str, ...], event: gr.EventData) -> Any:
        """Open a model in every other tab."""
        source = sources[int(event._data["index"])]
        return source or gr.skip()

    def read_lineage(self, request: gr.Request) -> list[dict[str, Any]]:
        """List the caller's models, each below the one that it began from."""
        nodes = self._tunings.lineage(self._ctx.owner_of(None, request))
        return [{"source": n.source, "name": n.name, "depth": n.depth} for n in nodes]

    def _row(self, node: LineageNode, locale: str) -> list[str]:
        branch = f"└{BRANCH * node.depth} " if node.depth else ""
        how = self._ctx.words.say(locale, f"finetune.how.{node.objective or 'there'}")
        return [branch + node.name, how, "-" if node.loss is None else f"{node.loss:.3f}"]
