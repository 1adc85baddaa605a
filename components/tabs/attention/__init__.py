"""The Attention tab: by hand, in real models, under masks, changed, measured, and its costs."""

import gradio as gr

from components.context import AppContext
from components.kit.page_style import build_page_style
from components.tabs.attention import (
    ablate,
    by_hand,
    cache,
    experts,
    flash,
    heads,
    masks,
    variants,
    ways,
)
from components.tabs.tab import Tab, build_tab_head

READS_MODEL = ("masks", "ablate", "cache", "experts")
PANELS = (
    "by_hand",
    "masks",
    "heads",
    "ablate",
    "ways",
    "variants",
    "cache",
    "flash",
    "experts",
)


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "attention")
    build_page_style("attention")
    built = {}
    parts_of = {
        "by_hand": by_hand,
        "masks": masks,
        "ablate": ablate,
        "ways": ways,
        "variants": variants,
        "cache": cache,
        "flash": flash,
        "experts": experts,
    }
    with gr.Tabs(selected="heads", elem_id="attention-panels", overflow_behavior="wrap") as panels:
        for name in PANELS:
            with gr.Tab(ctx.words.t(f"attention.panel.{name}"), id=name):
                if name == "heads":
                    heads.build(ctx, head)
                else:
                    built[name] = parts_of[name].build(ctx)
    ctx.address.register_panels("attention", panels, PANELS, card=head.card)
    for name, parts in built.items():
        parts_of[name].wire_panel(ctx, head, parts)
    seen = [built[name].seen for name in READS_MODEL]
    # another model: what shows it is computed again when somebody looks at it
    ctx.model_id.change(
        lambda model_id: (model_id,) * len(seen),
        [ctx.model_id],
        seen,
        queue=False,
        api_visibility="private",
        show_progress="hidden",
    )


TAB = Tab("attention", "attention.title", build)
