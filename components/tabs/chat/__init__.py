"""The Chat tab: a conversation that can be opened, and two models side by side."""

import gradio as gr

from components.context import AppContext
from components.tabs.chat import conversation, side
from components.tabs.tab import Tab, build_tab_head

PANELS = ("conversation", "side")


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "chat")
    with gr.Tabs(elem_id="chat-panels", overflow_behavior="wrap") as panels:
        with gr.Tab(ctx.words.t("chat.panel.conversation"), id=PANELS[0]):
            conversation.build(ctx, head)
        with gr.Tab(ctx.words.t("chat.panel.side"), id=PANELS[1]):
            side.build(ctx, head)
    ctx.address.register_panels("chat", panels, PANELS, card=head.card)


TAB = Tab("chat", "chat.title", build)
