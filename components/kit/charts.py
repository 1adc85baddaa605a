"""Pictures with axes, beyond plain curves, as values of a Plotly panel.

    panel = build_plotly_panel(words, elem_id="rope-circle", label_key="positions.rope_circle")
    yield chart_message([line("q", xs, ys), heat(matrix)], Axes(x="x", y="y", square=True))

Written as plain data, so that no Plotly is imported where a page is built.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from components.kit.plotly_panel import as_json_number, fresh_key, plain

# Blue over white to red: zero is white, so that the sign can be seen; safe for colour-blind eyes.
SIGNED = [[0.0, "#0f5fae"], [0.5, "#f4f2ee"], [1.0, "#c4571a"]]
DRAWN_DIGITS = 5  # more cannot be seen, and the table has them all
CELL_DIGITS = 3  # a colour tells less still, and a map of 256 x 128 has to stay a small message


@dataclass(frozen=True, kw_only=True)
class Axes:
    """Axes of a chart.

    Args:
        x: Title of the horizontal axis, with its unit.
        y: Title of the vertical axis, with its unit.
        x_kind: Of the horizontal axis.
        y_kind: Of the vertical axis.
        square: Whether a step is as long on both axes, as a circle needs.
        marks: Vertical lines: where, and what is said there.
        bands: Shaded stretches of the horizontal axis: from, to, and what is said there.
        flipped: Whether the vertical axis runs downwards, as rows of a matrix do.
        keep: Zoom and pan stay as long as this stays.
    """

    x: str
    y: str
    x_kind: Literal["linear", "log", "category"] = "linear"
    y_kind: Literal["linear", "log", "category"] = "linear"
    square: bool = False
    marks: Sequence[tuple[float, str]] = ()
    bands: Sequence[tuple[float, float, str]] = ()
    flipped: bool = False
    keep: str = "keep"


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a line is drawn.

    Args:
        mode: Lines, points or both.
        dash: Of the line.
        width: Of the line, in pixels.
    """

    mode: Literal["lines", "markers", "lines+markers"] = "lines"
    dash: Literal["solid", "dot", "dash"] = "solid"
    width: float = 2


@dataclass(frozen=True, kw_only=True)
class Trace:
    """One layer of a chart, as Plotly takes it."""

    content: Mapping[str, Any] = field(default_factory=dict)


PLAIN_LOOK = Look()


def line(name: str, x: Sequence[float], y: Sequence[float], look: Look = PLAIN_LOOK) -> Trace:
    """A line or points.

    Args:
        name: Its name in the legend.
        x: Positions.
        y: Values; a NaN leaves a gap.
        look: How it is drawn.
    """
    return Trace(
        content={
            "type": "scatter",
            "mode": look.mode,
            "name": plain(name),
            "x": [_short(value) for value in x],
            "y": [_short(value) for value in y],
            "line": {"dash": look.dash, "width": look.width},
        }
    )


def bars(name: str, x: Sequence[str] | Sequence[float], y: Sequence[float]) -> Trace:
    """Upright bars.

    Args:
        name: Their name in the legend.
        x: Labels or positions.
        y: Heights.
    """
    places = [plain(place) if isinstance(place, str) else _short(place) for place in x]
    heights = [_short(value) for value in y]
    return Trace(content={"type": "bar", "name": plain(name), "x": places, "y": heights})


def heat(matrix: np.ndarray, *, x: Sequence[Any] = (), y: Sequence[Any] = ()) -> Trace:
    """A map of signed numbers; zero is white.

    Args:
        matrix: (rows, columns), at most 256 x 256.
        x: Labels of columns; numbers from 0 when empty.
        y: Labels of rows.
    """
    most = float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
    content: dict[str, Any] = {
        "type": "heatmap",
        "z": [[_short(value, CELL_DIGITS) for value in row] for row in matrix],
        "colorscale": SIGNED,
        "zmin": -most,
        "zmax": most,
        "colorbar": {"thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{y}, %{x}: %{z:.4f}<extra></extra>",
    }
    for name, labels in (("x", x), ("y", y)):
        if len(labels):
            content[name] = [plain(label) if isinstance(label, str) else label for label in labels]
    return Trace(content=content)


def chart_message(traces: Sequence[Trace], axes: Axes) -> str:
    """Write layers over one pair of axes as the value of a panel.

    Args:
        traces: The layers.
        axes: The axes.

    Returns:
        JSON text.
    """
    named = [trace.content for trace in traces if "name" in trace.content]
    vertical: dict[str, Any] = {"title": {"text": plain(axes.y)}, "type": axes.y_kind}
    if axes.square:
        vertical |= {"scaleanchor": "x"}
    if axes.flipped:
        vertical |= {"autorange": "reversed"}
    layout = {
        "uirevision": axes.keep,
        "showlegend": len(named) > 1,
        "hovermode": "closest",
        "xaxis": {"title": {"text": plain(axes.x)}, "type": axes.x_kind},
        "yaxis": vertical,
        "shapes": [*map(_mark, axes.marks), *map(_band, axes.bands)],
        "annotations": [*(_words(at, at, text, 0.98) for at, text in axes.marks)]
        + [_words(start, end, text, 0.9) for start, end, text in axes.bands],
    }
    if axes.x_kind == "log":
        for words in layout["annotations"]:  # type: ignore[attr-defined]
            words["x"] = float(np.log10(max(words["x"], 1e-30)))
    content = {"data": [trace.content for trace in traces], "layout": layout}
    return json.dumps({"message": fresh_key(), "figure": content, "have": None}, allow_nan=False)


def _short(value: float, digits: int = DRAWN_DIGITS) -> float | None:
    number = as_json_number(value)
    return None if number is None else float(f"{number:.{digits}g}")


def _mark(mark: tuple[float, str]) -> dict[str, Any]:
    at, _ = mark
    style = {"color": "#8b95a1", "width": 1, "dash": "dot"}
    return {"type": "line", "x0": at, "x1": at, "y0": 0, "y1": 1, "yref": "paper", "line": style}


def _band(band: tuple[float, float, str]) -> dict[str, Any]:
    start, end, _ = band
    rectangle = {"type": "rect", "x0": start, "x1": end, "y0": 0, "y1": 1, "yref": "paper"}
    return rectangle | {"fillcolor": "rgba(139,149,161,0.13)", "line": {"width": 0}}


def _words(start: float, end: float, text: str, height: float) -> dict[str, Any]:
    return {
        "x": (start + end) / 2,
        "y": height,
        "yref": "paper",
        "text": plain(text),
        "showarrow": False,
        "font": {"size": 12},
    }
