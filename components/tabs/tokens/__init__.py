"""The Tokens tab: from characters to byte pairs to a vocabulary of one's own."""

import gradio as gr

from components.context import AppContext
from components.kit.page_style import build_page_style
from components.tabs.tab import Tab, build_tab_head
from components.tabs.tokens import (
    before,
    choice,
    compare,
    embeddings,
    extend,
    merges,
    pieces,
    train,
    windows,
)

PANELS = ("chips", "compare", "merges", "train", "before", "extend", "windows", "embeddings")


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "tokens")
    build_page_style("tokens")
    chosen = choice.build_choice(ctx)
    tabs = {}
    with gr.Tabs(elem_id="tokens-panels", overflow_behavior="wrap") as panels:
        for name in PANELS:
            tabs[name] = gr.Tab(ctx.words.t(f"tokens.panel.{name}"), id=name)
        with tabs["chips"]:
            pieces.build(ctx, head, chosen)
        with tabs["compare"]:
            compare.build(ctx, head, chosen, tabs["compare"])
        with tabs["merges"]:
            merges.build(ctx, head, chosen, tabs["merges"])
        with tabs["train"]:
            train.build(ctx, head, chosen, tabs["train"])
        with tabs["before"]:
            before.build(ctx, head, tabs["before"])
        with tabs["extend"]:
            extend.build(ctx, head, chosen, tabs["extend"])
        with tabs["windows"]:
            windows.build(ctx, head, chosen, tabs["windows"])
        with tabs["embeddings"]:
            embeddings.build(ctx, head, tabs["embeddings"])
    ctx.address.register_panels("tokens", panels, PANELS, card=head.card)
    choice.wire_choice(ctx, head, chosen)


TAB = Tab("tokens", "tokens.title", build)
