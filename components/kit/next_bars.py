"""The choice of the next token as a strip of steps and two bars for each candidate."""

import json
from collections.abc import Sequence

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="empty"></div>
<div class="chart" hidden><ol class="steps"></ol>
<div class="legend"></div><ul class="rows"></ul></div>
<div class="note" role="status"></div>
"""


def build_next_bars(words: Words, *, elem_id: str, clickable: bool = False) -> gr.HTML:
    """Build the view.

    Its value is `{"id": id of kept logits, "settings": {dial: value}}` or None. The numbers come
    from the route `next/{id}`. `dials_script` makes it follow sliders by itself.

    Event `pick` where it is clickable: `event.index`, `event.id`, `event.label`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        clickable: Whether a candidate can be chosen.

    Returns:
        The component.
    """
    return build_view(
        "next_bars",
        words,
        template=_TEMPLATE,
        elem_id=elem_id,
        target=elem_id,
        dials="next",
        clickable=clickable,
    )


def dials_script(names: Sequence[str]) -> str:
    """Script of an event of the sliders: tells the views of the page their values, without Python.

    Args:
        names: What the event's inputs are called, in their order.
    """
    return (
        f"(...values) => {{ const names = {json.dumps(list(names))}; const settings = "
        "Object.fromEntries(names.map((name, i) => [name, values[i]])); window.dispatchEvent("
        "new CustomEvent('glassbox:dials', {detail: {target: 'next', settings}})); }"
    )
