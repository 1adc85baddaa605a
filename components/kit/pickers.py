"""Pickers of a layer or a head: a slider that says "13 of 0–29"."""

from typing import Any, Literal

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="line"><span class="name"></span><span class="place"></span></div>
<input class="slider" type="range" min="0" max="0" value="0">
"""


def build_picker(
    words: Words,
    what: Literal["layer", "head"],
    *,
    elem_id: str,
    value: dict[str, Any] | None = None,
) -> gr.HTML:
    """Build a picker of one among numbered things.

    Its value is `{"index": 13, "count": 30}`; the page keeps it up to date, so it also works as an
    input of a handler.

    Event `pick`, at most eight times a second while the slider moves: `event.index`.

    Args:
        words: The sentences of the page.
        what: The thing that is numbered.
        elem_id: Its id in the page.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view("pickers", words, template=_TEMPLATE, value=value, elem_id=elem_id, what=what)
