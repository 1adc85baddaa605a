"""Bar list: labels, horizontal bars, numbers; nothing jumps when the numbers change."""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<ul class="list"></ul><div class="empty" role="status"></div>'


def build_bar_list(
    words: Words, *, elem_id: str, clickable: bool = False, value: dict[str, Any] | None = None
) -> gr.HTML:
    """Build a list of bars.

    Its value is `{"bars": [{"label": text, "value": number, "note": text}], "unit": text}`, with
    optional `"max"` (what the longest bar stands for; the largest value if not given) and
    `"digits"`, `"named"` (labels are names and wrap, in place of tokens). With the unit `%` a value
    is a share from 0 to 1.

    Event `bar_click` where it is clickable: `event.index`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        clickable: Whether a bar can be clicked.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view(
        "bars", words, template=_TEMPLATE, value=value, elem_id=elem_id, clickable=clickable
    )
