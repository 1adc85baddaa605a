"""Plotly figures of the lab's panels: bars with their spread, lines over a length."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from components.kit.plotly_panel import plain

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Spread = tuple[float, float, float]


def make_spread_bars(
    names: Sequence[str], series: Mapping[str, Sequence[Spread | None]], *, x_title: str
) -> "Figure":
    """Horizontal bars of medians with a line from the first to the third quartile.

    Args:
        names: One a bar, from the top.
        series: Name -> first quartile, median, third quartile of each bar; None leaves a gap.
        x_title: Of the axis, with its unit.
    """
    from plotly.graph_objects import Bar, Figure

    traces = [_make_bars(names, name, values) for name, values in series.items()]
    figure = Figure(data=[Bar(trace) for trace in traces])
    figure.update_layout(barmode="group", showlegend=len(series) > 1)
    figure.update_xaxes(title_text=plain(x_title), rangemode="tozero")
    figure.update_yaxes(autorange="reversed", automargin=True)
    return figure


def _make_bars(
    names: Sequence[str], name: str, values: Sequence[Spread | None]
) -> dict[str, object]:
    medians = [None if value is None else value[1] for value in values]
    up = [0 if value is None else value[2] - value[1] for value in values]
    down = [0 if value is None else value[1] - value[0] for value in values]
    return {
        "name": plain(name),
        "orientation": "h",
        "y": [plain(text) for text in names],
        "x": medians,
        "error_x": {"type": "data", "symmetric": False, "array": up, "arrayminus": down},
    }


def make_lines(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    x_title: str,
    y_title: str,
    log_x: bool = False,
    log_y: bool = False,
    marks: bool = False,
) -> "Figure":
    """Lines over one axis, some of them logarithmic.

    Args:
        x: Positions of all points.
        lines: Name -> values.
        x_title: Of the horizontal axis, with its unit.
        y_title: Of the vertical axis, with its unit.
        log_x: Whether the horizontal axis is logarithmic.
        log_y: Whether the vertical axis is.
        marks: Whether points are marked.
    """
    from plotly.graph_objects import Figure, Scatter

    mode = "lines+markers" if marks else "lines"
    figure = Figure(
        data=[
            Scatter(name=plain(name), x=list(x), y=list(y), mode=mode) for name, y in lines.items()
        ]
    )
    figure.update_layout(showlegend=len(lines) > 1)
    figure.update_xaxes(title_text=plain(x_title), type="log" if log_x else "linear")
    figure.update_yaxes(title_text=plain(y_title), type="log" if log_y else "linear")
    return figure
