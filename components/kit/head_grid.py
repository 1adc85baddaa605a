"""Head grid: a small map for every attention head of a layer."""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<div class="grid" role="group"></div><div class="help" role="status"></div>'


def build_head_grid(
    words: Words, *, elem_id: str, causal: bool = True, value: dict[str, Any] | None = None
) -> gr.HTML:
    """Build a grid of heads, one of them chosen.

    Its value is `{"stack": id of the stack route, "n": heads, "size": [height, width],
    "labels": [text], "selected": index}`, with optional `"groups": [query heads of each KV head]`
    and `"causal"`, which goes before the property of the same name.

    Event `head_select`, by click or arrow keys: `event.index`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        causal: Whether cells after the diagonal are masked.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view(
        "head_grid", words, template=_TEMPLATE, value=value, elem_id=elem_id, causal=causal
    )
