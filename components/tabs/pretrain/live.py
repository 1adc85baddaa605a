"""The panel "live": the run that goes on, its curves and what it writes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.pretrain import windows
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.pretrain.run_handlers import RunHandlers
from components.tabs.pretrain.run_views import build_live_view, build_run_list, build_samples_view
from components.tabs.tab import TabHead

FORMULA = r"""
$$L = -\frac{1}{N}\sum_{i=1}^{N} \ln p_\theta(x_{i+1} \mid x_1 \dots x_i)
\qquad \text{perplexity} = e^{L}$$
"""
# What may be asked of a run, in the order of the buttons.
ACTIONS = ("start", "pause", "resume", "keep", "stop")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    runs: gr.HTML
    live: gr.HTML
    buttons: dict[str, gr.Button]
    open: gr.Button
    batch: windows.Parts | None
    working: Working
    elsewhere: gr.Accordion
    commands: gr.Markdown

    def outputs(self, choice: RunChoice) -> list[Any]:
        """What every handler fills, in the order of `RunHandlers.show`."""
        return [
            self.runs,
            self.live,
            *self.buttons.values(),
            self.open,
            self.working.facts,
            self.working.table,
            self.working.exports,
            self.elsewhere,
            self.commands,
            choice.run,
            choice.memory,
            choice.shown,
        ]


def build(
    ctx: AppContext,
    tab: str = "pretrain",
    *,
    formula: str = FORMULA,
    look_for: str = "",
    none_key: str = "",
    build_above: Callable[[], None] = lambda: None,
) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
        tab: Whose runs; ids on the page begin with it.
        formula: Of their loss, for the drawer.
        look_for: Key of the note below; empty is that of the tab.
        none_key: Key of what the list says before there is a run; empty is that of the tab.
        build_above: Builds what stands above the list of runs.
    """
    words, chart = ctx.words, f"{tab}-curve"
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "pretrain-controls"], min_width=0):
            build_above()
            none_key = none_key or f"{tab}.runs_none"
            runs = build_run_list(words, elem_id=f"{tab}-runs", none_key=none_key)
            with gr.Row(elem_classes=["button-row"]):
                buttons = {name: _build_button(ctx, name, tab) for name in ACTIONS}
            opened = gr.Button(
                words.t("pretrain.open"),
                elem_id=f"{tab}-open",
                visible=False,
                min_width=0,
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            live = build_live_view(words, elem_id=f"{tab}-live", chart=chart)
            build_plotly_panel(words, elem_id=chart, label_key="pretrain.curve_label", height=340)
            build_samples_view(words, elem_id=f"{tab}-samples", chart=chart)
            batch = windows.build(ctx) if tab == "pretrain" else None
            working = build_working(words, elem_id=f"{tab}-live-working", formula=formula)
            with gr.Accordion(
                words.t("pretrain.elsewhere"),
                open=False,
                visible=False,
                elem_id=f"{tab}-elsewhere",
                elem_classes=["working"],
            ) as elsewhere:
                gr.Markdown(words.t("pretrain.elsewhere_said"))
                commands = gr.Markdown(elem_id=f"{tab}-commands")
    build_note(words, look_for or f"{tab}.look_for_live", elem_id=f"{tab}-live-note")
    return Parts(runs, live, buttons, opened, batch, working, elsewhere, commands)


def _build_button(ctx: AppContext, name: str, tab: str) -> gr.Button:
    return gr.Button(
        ctx.words.t(f"pretrain.action.{name}"),
        elem_id=f"{tab}-{name}",
        variant="primary" if name in ("start", "resume") else "secondary",
        visible=False,
        min_width=0,
    )


def wire_panel(
    ctx: AppContext,
    head: TabHead,
    parts: Parts,
    choice: RunChoice,
    tab: str = "pretrain",
    *,
    api: str = "",
) -> RunHandlers:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
        choice: The run that is looked at.
        tab: The tab that it stands in.
        api: What the names of its API begin with; the tab where it is empty.
    """
    on = RunHandlers(ctx, tab)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    outputs = parts.outputs(choice)
    known = [choice.run, ctx.owner]
    first = [choice.asked, choice.memory, ctx.owner]
    for event in (ctx.owner.change, choice.asked.change):
        wire(event, on.visit, first, outputs, **options)
    wire(parts.runs.pick, on.pick, [ctx.owner], outputs, trigger_mode="always_last", **options)
    wire(parts.runs.rename, on.rename, known, outputs, **options)
    wire(parts.runs.remove, on.remove, known, outputs, **options)
    wire(parts.live.run_change, on.refresh, known, outputs, trigger_mode="always_last", **options)
    for name, button in parts.buttons.items():
        wire(button.click, getattr(on, name), known, outputs, **options)
    if parts.batch is not None:
        windows.wire_part(ctx, head, parts.batch, choice)
    wire(parts.open.click, on.open_newest, known, [ctx.wanted_model], **options)
    for function, api_name in (
        (on.start_run, f"{api or tab}_resume"),
        (on.pause_run, f"{api or tab}_pause"),
        (on.stop_run, f"{api or tab}_stop"),
        (on.list_runs, f"{api or tab}_runs"),
        (on.read_run, f"{api or tab}_run"),
        (on.rename_run, f"{api or tab}_rename"),
        (on.delete_run, f"{api or tab}_delete"),
    ):
        expose(function, api_name)
    return on
