"""Merge tree: the joins of one word, from its symbols down to its tokens."""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<div class="pane" role="region" tabindex="0" hidden></div><div class="empty"></div>'


def build_merge_tree(words: Words, *, elem_id: str) -> gr.HTML:
    """Build a tree.

    Its value is `{"nodes": [{"t": text, "start": symbol, "end": symbol, "step": join or 0,
    "rank": number, "kids": [left, right] or [], "id": number or None}], "tokens": [index]}`.

    The step changes alone: return `update_view(step=k)`; joins after it are not drawn.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.

    Returns:
        The component.
    """
    step: dict[str, Any] = {"step": 0, "target": elem_id}
    return build_view("merge_tree", words, template=_TEMPLATE, elem_id=elem_id, **step)
