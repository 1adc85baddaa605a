"""The Attention tab: which earlier tokens each token reads from."""

from components.context import AppContext
from components.tabs.attention import heads
from components.tabs.tab import Tab, build_tab_head


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "attention")
    heads.build(ctx, head)


TAB = Tab("attention", "attention.title", build)
