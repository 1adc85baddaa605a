"""The tabs, from left to right: one line each.

A new tab is a folder `components/tabs/<id>/` whose `__init__.py` exports `TAB`, its words in
`assets/text/<locale>/<id>.json`, and one line in `TABS`.
"""

from components.tabs import attention, chat, layers, next, pretrain, tokens
from components.tabs.tab import Tab

TABS: tuple[Tab, ...] = (
    tokens.TAB,
    attention.TAB,
    next.TAB,
    layers.TAB,
    chat.TAB,
    pretrain.TAB,
)

__all__ = ["TABS", "Tab"]
