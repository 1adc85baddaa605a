"""The pages: header, tab bar, the tabs, and what belongs to all tabs."""

import gradio as gr

from components.context import AppContext, ModelStore, Settings, build_context
from components.kit.views import build_view, pick_texts
from components.model_bar import build_model_bar, wire_first_open, wire_model_bar
from components.pages import TabPages
from components.routes import MatrixRoutes
from components.tabs import TABS, Tab
from components.text import Words
from explorer.runs import Runs


def build_page(
    store: ModelStore,
    settings: Settings,
    *,
    words: Words | None = None,
    routes: MatrixRoutes | None = None,
    runs: Runs | None = None,
    tabs: tuple[Tab, ...] = TABS,
) -> tuple[TabPages, AppContext]:
    """Build the page of every tab.

    Args:
        store: The models.
        settings: What the command line and the environment decided.
        words: The sentences of the page; read from assets when None.
        routes: Publisher of matrices; a new one when None.
        runs: The trainings; those below the app's folder when None.
        tabs: From left to right.

    Returns:
        The app, ready to launch, and the context that its tabs share.
    """
    # An hour: uploads that nobody fetched are deleted, Gradio's own setting is to keep them.
    with TabPages(title="Glassbox", analytics_enabled=False, delete_cache=(3600, 3600)) as demo:
        ctx = build_context(store, settings, words=words, routes=routes, runs=runs)
        bar = build_model_bar(ctx)
        tab_bar = _build_tab_bar(ctx, tabs)
        for tab in tabs:
            with (
                demo.tab_page(tab.id, tab.id),
                gr.Column(elem_id=f"tab-{tab.id}", elem_classes=["tab-page"]),
            ):
                tab.build(ctx)
        wire_model_bar(ctx, bar)
        for tab in tabs:
            with demo.tab_page(tab.id, tab.id):
                # the model comes after the address: a tab shows it with the address's values
                wire_first_open(ctx, bar, ctx.address.wire(demo, tab.id, tab_bar))
    return demo, ctx


def _build_tab_bar(ctx: AppContext, tabs: tuple[Tab, ...]) -> gr.HTML:
    return build_view(
        "tab_bar",
        ctx.words,
        template="<nav></nav>",
        elem_id="tabs",
        tabs=[tab.id for tab in tabs],
        texts=pick_texts(ctx.words, {tab.id: tab.title_key for tab in tabs}),
    )
