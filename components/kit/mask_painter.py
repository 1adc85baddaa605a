"""A mask that is painted with the mouse or the keyboard."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="empty"></div>
<div class="map" hidden><div class="rows" aria-hidden="true"></div>
<div class="plot" tabindex="0" role="application"><canvas class="cells"></canvas>
<div class="cell" hidden></div></div></div>
<div class="readout" role="status" hidden></div>
"""


def build_mask_painter(words: Words, *, elem_id: str) -> gr.HTML:
    """Build a painter.

    Its value is `{"labels": [text], "rows": ["0101", ...]}`, a row a query, 1 = may attend; the
    page keeps it up to date, so it also works as an input of a handler. Event `paint`:
    `event.rows`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
    """
    return build_view("mask_painter", words, template=_TEMPLATE, elem_id=elem_id)
