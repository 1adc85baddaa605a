"""The page: header, tabs, and what belongs to all tabs."""

import gradio as gr

from components.context import AppContext, ModelStore, Settings, build_context
from components.model_bar import build_model_bar, wire_model_bar
from components.routes import MatrixRoutes
from components.tabs import Tab, choose_tabs
from components.text import Words
from explorer.runs import Runs


def build_page(
    store: ModelStore,
    settings: Settings,
    *,
    words: Words | None = None,
    routes: MatrixRoutes | None = None,
    runs: Runs | None = None,
    tabs: tuple[Tab, ...] | None = None,
) -> tuple[gr.Blocks, AppContext]:
    """Build the whole page.

    Args:
        store: The models.
        settings: What the command line and the environment decided.
        words: The sentences of the page; read from assets when None.
        routes: Publisher of matrices; a new one when None.
        runs: The trainings; those below the app's folder when None.
        tabs: What the page shows, from left to right; the usual ones when None.

    Returns:
        The page, ready to launch, and the context that its tabs share.
    """
    tabs = choose_tabs(None) if tabs is None else tabs
    # An hour: uploads that nobody fetched are deleted, Gradio's own setting is to keep them.
    with gr.Blocks(title="Glassbox", analytics_enabled=False, delete_cache=(3600, 3600)) as demo:
        ctx = build_context(store, settings, words=words, routes=routes, runs=runs)
        bar = build_model_bar(ctx)
        # "wrap" keeps every tab in one list; style.css makes that list scroll instead of wrap.
        with gr.Tabs(elem_id="tabs", overflow_behavior="wrap") as outer:
            for tab in tabs:
                _build_tab(ctx, tab)
        # the model comes after the address: tabs show it with the address's values, not before
        opened = ctx.address.wire(demo, outer, [tab.id for tab in tabs])
        wire_model_bar(ctx, bar, opened)
    return demo, ctx


def _build_tab(ctx: AppContext, tab: Tab) -> None:
    with gr.Tab(ctx.words.t(tab.title_key), id=tab.id, elem_id=f"tab-{tab.id}"):
        tab.build(ctx)
