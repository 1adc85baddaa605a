"""Block diagrams of models side by side; each box opens to shapes, parameters, formula and file."""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<div class="models" role="group"></div>'


def build_architecture_view(
    words: Words, *, elem_id: str, value: dict[str, Any] | None = None
) -> gr.HTML:
    """Build the diagrams.

    Its value is `{"models": [{"name": text, "note": text, "sections": [{"title": text, "repeats":
    bool, "boxes": [{"title": text, "detail": text, "kind": "box", "add" or "norm", "differs": bool,
    "facts": [[text, text]], "tensors": [[name, shape]], "parameters": text, "formula": text,
    "file": path}]}]}]}`. Sections come from the output down to the input, as such figures are
    drawn.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view("architecture", words, template=_TEMPLATE, value=value, elem_id=elem_id)
