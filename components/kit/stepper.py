"""Stepper: back, play, next and speed, to walk through the steps of something."""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="stepper" role="group">
<button class="button round back" type="button">
<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M3 3h2v10H3zM13 3v10L6 8z"/></svg></button>
<button class="button round play" type="button">
<svg class="one" viewBox="0 0 16 16" aria-hidden="true"><path d="M4 2.5v11L13.5 8z"/></svg>
<svg class="two" viewBox="0 0 16 16" aria-hidden="true"><path d="M4 3h3v10H4zM9 3h3v10H9z"/></svg>
</button>
<button class="button round next" type="button">
<svg viewBox="0 0 16 16" aria-hidden="true"><path d="M11 3h2v10h-2zM3 3v10l7-5z"/></svg></button>
<input class="slider" type="range" min="0" max="0" value="0">
<span class="place"></span>
<select class="button speed"><option value="0.5">0.5&times;</option>
<option value="1" selected>1&times;</option><option value="2">2&times;</option>
<option value="4">4&times;</option></select>
</div>
"""


def build_stepper(words: Words, *, elem_id: str, value: dict[str, Any] | None = None) -> gr.HTML:
    """Build a stepper.

    Its value is `{"index": 0, "count": n}`; the page keeps it up to date, so it also works as an
    input of a handler.

    Event `step`, by buttons, slider, arrow keys or playing: `event.index`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view("stepper", words, template=_TEMPLATE, value=value, elem_id=elem_id)
