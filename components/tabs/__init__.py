"""The tabs, from left to right: one line each.

A new tab is a folder `components/tabs/<id>/` whose `__init__.py` exports `TAB`, its words in
`assets/text/<locale>/<id>.json`, and one line in `TABS`.
"""

from components.tabs import (
    attention,
    blocks,
    chat,
    finetune,
    layers,
    next,
    positions,
    pretrain,
    tokens,
)
from components.tabs.tab import Tab

TABS: tuple[Tab, ...] = (
    tokens.TAB,
    positions.TAB,
    attention.TAB,
    blocks.TAB,
    next.TAB,
    layers.TAB,
    chat.TAB,
    pretrain.TAB,
    finetune.TAB,
)

# What a page shows unless it is started with others. Gradio finds a component by walking over all
# of them: on 2 cores a page with these settles in 5 s, with all nine tabs in over a minute.
USUAL = ("tokens", "attention", "chat", "pretrain")

__all__ = ["TABS", "USUAL", "Tab", "choose_tabs"]


def choose_tabs(ids: str | None) -> tuple[Tab, ...]:
    """The tabs of a page.

    Args:
        ids: Their ids with commas between them, "all", or None for the usual ones.

    Raises:
        ValueError: One of them is no tab.
    """
    known = {tab.id: tab for tab in TABS}
    if ids == "all":
        return TABS
    wanted = USUAL if ids is None else tuple(part.strip() for part in ids.split(","))
    strange = [name for name in wanted if name not in known]
    if strange:
        raise ValueError(
            f"--tabs names {strange[0]!r}, which is no tab; choose from {', '.join(known)}, or all"
        )
    return tuple(tab for tab in TABS if tab.id in wanted)
