"""The Pretrain tab: a model learns to foresee the next token, in front of everyone."""

import gradio as gr

from components.context import AppContext
from components.kit.page_style import build_page_style
from components.tabs.pretrain import by_hand, checkpoints, compare, live, run_choice, setup
from components.tabs.tab import Tab, build_tab_head

PANELS = ("setup", "live", "checkpoints", "compare", "by_hand")


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "pretrain")
    build_page_style("pretrain")
    choice = run_choice.build(ctx)
    tabs = {}
    with gr.Tabs(elem_id="pretrain-panels", overflow_behavior="wrap") as panels:
        for name in PANELS:
            tabs[name] = gr.Tab(ctx.words.t(f"pretrain.panel.{name}"), id=name)
        with tabs["setup"]:
            form = setup.build(ctx)
        with tabs["live"]:
            watch = live.build(ctx)
        with tabs["checkpoints"]:
            scrubber = checkpoints.build(ctx)
        with tabs["compare"]:
            comparison = compare.build(ctx)
        with tabs["by_hand"]:
            hand = by_hand.build(ctx)
    ctx.address.register_panels("pretrain", panels, PANELS, card=head.card)
    runs = live.wire_panel(ctx, head, watch, choice)
    setup.wire_panel(ctx, head, form, choice, panels, watch, runs)
    checkpoints.wire_panel(ctx, head, tabs["checkpoints"], scrubber, choice, watch)
    compare.wire_panel(ctx, head, tabs["compare"], comparison, choice)
    by_hand.wire_panel(ctx, head, tabs["by_hand"], hand)


TAB = Tab("pretrain", "pretrain.title", build)
