"""One Plotly panel for the whole page, and curves on top of it.

`gr.Plot` makes its figure anew at every value and loses the zoom; this one draws with
`Plotly.react`, takes new points only, and reports clicks. It uses the script that the plotly
package ships (`/glassbox/plotly.js`), loaded at the first drawing.

    panel = build_plotly_panel(words, elem_id="loss", label_key="pretrain.loss")
    button.click(lambda: figure_message(figure), None, panel)          # draw, or replace
    yield figure_message(figure, have=[0])                             # a live run begins so
    yield points_message([Points(at, xs, ys)])                         # then only what is new
    panel.plot_gap(on_gap, None, panel)                                # the page missed some points

With `meta={"places": True}` in its layout, names of points move so that none covers another; those
that find no room are left out.

Text of users and models in names, ticks, titles and hover texts goes through `plain`: Plotly reads
`<b>` and `<a>` there.
"""

import json
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import gradio as gr

from components.kit.views import build_view, pick_texts
from components.text import Words

_TEMPLATE = """
<div class="frame" role="figure"><div class="plot"></div><div class="note" role="status"></div>
<button class="button save" type="button" hidden></button></div>
"""


class Figure(Protocol):
    """What is asked of a Plotly figure; spares the import of Plotly when the page is built."""

    @property
    def data(self) -> Sequence[Any]:
        """Its traces."""

    def to_plotly_json(self) -> dict[str, Any]:
        """Give the figure as plain data."""


@dataclass(frozen=True)
class Points:
    """New points of one trace.

    Args:
        at: How many points of the trace were sent before.
        x: Their positions.
        y: Their values; a NaN leaves a gap in the line.
    """

    at: int
    x: Sequence[float]
    y: Sequence[float]


def build_plotly_panel(
    words: Words,
    *,
    elem_id: str,
    label_key: str,
    height: int = 320,
    max_points: int = 1000,
    value: str | None = None,
) -> gr.HTML:
    """Build a panel.

    Its value is what `figure_message`, `points_message` or `curve_panel.curves_message` returns.
    Events `plot_click` and `plot_hover`: `event.x`, `.y`, `.z`, `.index`, `.trace`. Event
    `plot_gap`: the page missed some points; send the whole figure again, with `have`.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
        label_key: Full key of what the figure shows, for those who cannot see it.
        height: In pixels.
        max_points: Points of a live trace that are drawn; beyond that it is thinned.
        value: What it shows first.

    Returns:
        The component.
    """
    return build_view(
        "plotly_panel",
        words,
        template=_TEMPLATE,
        value=value,
        elem_id=elem_id,
        texts=pick_texts(words, {"label": label_key}),
        height=height,
        max_points=max_points,
        target=elem_id,
    )


def figure_message(figure: Figure, *, keep: str = "keep", have: Sequence[int] | None = None) -> str:
    """Write a whole figure as the value of a panel.

    Args:
        figure: A `plotly.graph_objects.Figure`.
        keep: Zoom and pan stay as long as this stays.
        have: For a live figure, for each trace how many points of the run it stands for.

    Returns:
        JSON text.
    """
    from plotly.io.json import to_json_plotly

    content = figure.to_plotly_json()
    # 6.5 kB of colours that the panel replaces by those of the page.
    content["layout"].pop("template", None)
    content["layout"].setdefault("uirevision", keep)
    if have is not None:
        for trace, source in zip(content["data"], figure.data, strict=True):
            # Points can only be added to plain lists, not to packed arrays.
            trace.update(x=list(source.x), y=list(source.y))
    return str(to_json_plotly({"message": fresh_key(), "figure": content, "have": have}))


def points_message(chunks: Sequence[Points | None]) -> str:
    """Write new points as the value of a panel: for each trace its points, or None."""
    added = [
        chunk and {"at": chunk.at, "x": list(chunk.x), "y": [as_json_number(y) for y in chunk.y]}
        for chunk in chunks
    ]
    return json.dumps({"message": fresh_key(), "add": added}, allow_nan=False)


def plain(text: str) -> str:
    """Give a text that Plotly shows as it is."""
    marks: Mapping[str, str] = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\n": "⏎"}
    return "".join(marks.get(letter, letter) for letter in text)


def as_json_number(value: float) -> float | None:
    """Give None for NaN and infinity, which JSON lacks; the panel shows it as a gap."""
    return float(value) if math.isfinite(value) else None


def fresh_key() -> str:
    """Give a text that no other message has: a page ignores a value equal to the last one."""
    return secrets.token_hex(4)
