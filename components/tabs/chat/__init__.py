"""The Chat tab: a conversation, and its last answer token by token."""

from components.context import AppContext
from components.tabs.chat import conversation
from components.tabs.tab import Tab, build_tab_head


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "chat")
    conversation.build(ctx, head)


TAB = Tab("chat", "chat.title", build)
