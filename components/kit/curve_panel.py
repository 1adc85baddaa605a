"""Curves over one axis, such as the loss of a run, as values of a Plotly panel.

panel = build_plotly_panel(words, elem_id="loss", label_key="pretrain.loss")
curve = thin(Curve("train", steps, losses))
yield curves_message([curve], x_title="step", y_title="loss (nats)", have=[len(losses)])
yield points_message([Points(len(losses), more_steps, more_losses)])
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from components.kit.plotly_panel import as_json_number, fresh_key, plain


@dataclass(frozen=True)
class Curve:
    """One line of a curve panel.

    Args:
        name: Its name in the legend.
        x: Positions.
        y: Values.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]


def curves_message(
    curves: Sequence[Curve],
    *,
    x_title: str,
    y_title: str,
    log_y: bool = False,
    keep: str = "keep",
    have: Sequence[int] | None = None,
) -> str:
    """Write lines over one axis as the value of a panel.

    Args:
        curves: The lines.
        x_title: Of the horizontal axis, with its unit.
        y_title: Of the vertical axis, with its unit.
        log_y: Whether the vertical axis is logarithmic.
        keep: Zoom and pan stay as long as this stays.
        have: For live lines, for each how many points of the run it stands for; thinned lines
            stand for more than they draw.

    Returns:
        JSON text.
    """
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": plain(curve.name),
            "x": list(curve.x),
            "y": [as_json_number(value) for value in curve.y],
        }
        for curve in curves
    ]
    layout = {
        "uirevision": keep,
        "showlegend": len(curves) > 1,
        "xaxis": {"title": {"text": plain(x_title)}},
        "yaxis": {"title": {"text": plain(y_title)}, "type": "log" if log_y else "linear"},
    }
    content = {"data": traces, "layout": layout}
    return json.dumps({"message": fresh_key(), "figure": content, "have": have}, allow_nan=False)


def thin(curve: Curve, most: int = 1000) -> Curve:
    """Drop points until at most `most` are left, so that spikes stay.

    Of each block of neighbours the lowest and the highest are kept.

    Args:
        curve: The line; its values are numbers.
        most: The number of points allowed, at least 2.

    Returns:
        The thinner line, or the same one if it is short enough.
    """
    n_points = len(curve.y)
    if n_points <= most:
        return curve
    size = math.ceil(n_points / (most // 2))
    kept: list[int] = []
    for start in range(0, n_points, size):
        block = range(start, min(start + size, n_points))
        ends = {min(block, key=curve.y.__getitem__), max(block, key=curve.y.__getitem__)}
        kept += sorted(ends)
    return Curve(curve.name, [curve.x[i] for i in kept], [curve.y[i] for i in kept])
