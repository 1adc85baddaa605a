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

__all__ = ["TABS", "Tab"]
