"""Mask rows: the rows of a batch, with what is learned lit, what is read hatched, padding grey."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<div class="legend"></div><ol class="rows"></ol>'


def build_mask_rows(words: Words, *, elem_id: str) -> gr.HTML:
    """Build the rows.

    Its value is `{"rows": [{"note": text, "units": [{"t": text, "k": "learned", "prompt" or "pad",
    "ids": [id]}]}]}`, or None.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    return build_view("mask_rows", words, template=_TEMPLATE, elem_id=elem_id)
