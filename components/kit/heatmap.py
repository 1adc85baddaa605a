"""Heatmap: a matrix of weights, with labels, a colour bar and the exact number under the pointer.

Drawn on a canvas from bytes, in one go: 512 x 512 cells take some milliseconds, where Plotly holds
the page for half a second. Of larger maps the page draws an overview, each pixel the largest of its
cells, and from a part of 512 x 512 on every cell for itself.
"""

from typing import Any

import gradio as gr

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = """
<div class="title" hidden></div>
<div class="empty"></div>
<div class="zoom" hidden><button class="button zoomout" type="button">&minus;</button>
<button class="button zoomin" type="button">+</button>
<button class="button whole" type="button"></button><span class="insight"></span></div>
<div class="map" hidden>
<div class="rows" aria-hidden="true"></div>
<div class="plot" tabindex="0" role="application"><canvas class="cells"></canvas>
<div class="chosen" hidden></div><div class="crossrow" hidden></div>
<div class="crosscolumn" hidden></div><div class="cell" hidden></div></div>
<div class="scale" aria-hidden="true"><div class="ramp"></div><div class="ticks"></div></div>
<div class="columns" aria-hidden="true"></div>
</div>
<div class="readout" role="status" hidden></div>
"""


def build_heatmap(
    words: Words, *, elem_id: str, value: dict[str, Any] | None = None, selected: int = -1
) -> gr.HTML:
    """Build a heatmap.

    Its value is `{"matrix": id of the matrix route, "rows": [text], "cols": [text],
    "causal": bool, "title": text, "max": number}`; `cols` are the rows' labels if not given. `max`
    is the number that the fullest colour stands for: `high` of the published matrix, 1 if not
    given. With `"signed": True` its `low` is `-max`, and numbers below 0 have another colour. The
    chosen row changes by itself: return `update_view(selected=index)`.

    Event `row_select`, by click or Enter: `event.index` (the row) and `event.column`.
    It saves a PNG when a button of the page sends `glassbox:export` with its `elem_id`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        value: What it shows first.
        selected: The row that is chosen first; -1 is none.

    Returns:
        The component.
    """
    return build_view(
        "heatmap",
        words,
        template=_TEMPLATE,
        value=value,
        elem_id=elem_id,
        target=elem_id,
        selected=selected,
    )
