"""The Positions tab: how a model knows where a word stands."""

from components.context import AppContext
from components.tabs.form_panel import build_form_tab
from components.tabs.positions import added, broken, pairing, rope, scaling, why
from components.tabs.tab import Tab, build_tab_head

PANELS = (why.PANEL, added.PANEL, rope.PANEL, scaling.PANEL, pairing.PANEL, broken.PANEL)


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "positions")
    build_form_tab(ctx, head, "positions", PANELS)


TAB = Tab("positions", "positions.title", build)
