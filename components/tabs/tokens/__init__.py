"""The Tokens tab: text as the model reads it."""

from components.context import AppContext
from components.tabs.tab import Tab, build_tab_head
from components.tabs.tokens import pieces


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "tokens")
    pieces.build(ctx, head)


TAB = Tab("tokens", "tokens.title", build)
