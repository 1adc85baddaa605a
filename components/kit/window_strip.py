"""Window strip: the windows of a text as bars under its tokens."""

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<div class="pane" role="region" tabindex="0" hidden></div><div class="foot"></div>'


def build_window_strip(words: Words, *, elem_id: str) -> gr.HTML:
    """Build a strip.

    Its value is `{"tokens": [text], "reads": [times], "context": n, "rows": [{"name": text,
    "start": first token, "batch": number or None, "label": text}], "more": text}`, or None. A
    batch has one colour.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    return build_view("window_strip", words, template=_TEMPLATE, elem_id=elem_id)
