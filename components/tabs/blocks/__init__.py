"""The Blocks tab: what is inside the box, part by part and as a whole."""

from components.context import AppContext
from components.tabs.blocks import (
    activations,
    architecture,
    encoder_decoder,
    norm_place,
    norms,
    one_pass,
    residuals,
    weights,
)
from components.tabs.form_panel import build_form_tab
from components.tabs.tab import Tab, build_tab_head

PANELS = (
    *(p.PANEL for p in (architecture, one_pass, norms, activations, residuals, norm_place)),
    encoder_decoder.PANEL,
    weights.PANEL,
)


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "blocks")
    build_form_tab(ctx, head, "blocks", PANELS)


TAB = Tab("blocks", "blocks.title", build)
