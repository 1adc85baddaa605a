"""One line of text that changes: counts, headings.

A plain `gr.HTML` would take its value as markup, and names of files and models come from outside;
this one writes text only.
"""

from typing import Literal

import gradio as gr

from components.kit.views import build_view
from components.text import Words


def build_line(words: Words, *, elem_id: str, look: Literal["help", "heading", "text"]) -> gr.HTML:
    """Build a line.

    Its value is the text.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        look: Small and grey, small and bold, or several lines as they are.

    Returns:
        The component.
    """
    return build_view(
        "line",
        words,
        template=f'<span class="line {look}"></span>',
        elem_id=elem_id,
    )
