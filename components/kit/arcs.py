"""Arcs from one token to all that it reads, as thick as their weights."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

# More rows than that do not fit on a screen.
MOST_ARC_ROWS = 36

_TEMPLATE = """
<div class="empty"></div>
<div class="body" hidden><svg class="arcs" aria-hidden="true"></svg><div class="list"></div></div>
"""


def build_arcs(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the view.

    Its value is `{"labels": [text], "weights": [number], "query": place in the labels, "first":
    number of the first label}`; at most `MOST_ARC_ROWS` labels. Event `arc_click`: `event.index`,
    counted with `first`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
    """
    return build_view("arcs", words, template=_TEMPLATE, elem_id=elem_id, target=elem_id)
