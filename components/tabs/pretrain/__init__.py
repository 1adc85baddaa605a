"""The Pretrain tab: a model learns to foresee the next token, in front of everyone."""

import gradio as gr

from components.context import AppContext
from components.kit.page_style import build_page_style
from components.tabs.pretrain import live, run_choice, setup
from components.tabs.tab import Tab, build_tab_head

PANELS = ("setup", "live")


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "pretrain")
    build_page_style("pretrain")
    choice = run_choice.build(ctx)
    t = ctx.words.t
    with gr.Tabs(elem_id="pretrain-panels") as panels:
        with gr.Tab(t("pretrain.panel_setup"), id="setup"):
            form = setup.build(ctx)
        with gr.Tab(t("pretrain.panel_live"), id="live"):
            watch = live.build(ctx)
    ctx.address.register_panels("pretrain", panels, PANELS)
    runs = live.wire_panel(ctx, head, watch, choice)
    setup.wire_panel(ctx, head, form, choice, panels, watch, runs)


TAB = Tab("pretrain", "pretrain.title", build)
