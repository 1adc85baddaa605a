"""Figures of the Next token tab, as values of Plotly panels."""

import json

from components.kit.plotly_panel import fresh_key, plain
from components.text import Words
from explorer.draws import Draws


def draws_message(words: Words, locale: str, draws: Draws) -> str:
    """Bars of the counts, and on them what was expected, with two standard deviations."""
    labels = [f"{i} {plain(token.label)}" for i, token in enumerate(draws.tokens)]
    bars = {
        "type": "bar",
        "name": words.say(locale, "next.column_count"),
        "x": labels,
        "y": [token.count for token in draws.tokens],
    }
    promised = {
        "type": "scatter",
        "mode": "markers",
        "name": words.say(locale, "next.expected_band"),
        "x": labels,
        "y": [round(token.expected, 3) for token in draws.tokens],
        "error_y": {
            "type": "data",
            "array": [round(2 * token.deviation, 3) for token in draws.tokens],
            "thickness": 1.5,
            "width": 5,
        },
        "marker": {"symbol": "line-ew-open", "size": 14, "line": {"width": 2}},
    }
    layout = {
        "uirevision": "draws",
        "xaxis": {
            "tickvals": labels,
            "ticktext": [plain(token.label) for token in draws.tokens],
            "tickangle": -45,
        },
        "yaxis": {"title": {"text": words.say(locale, "next.axis_draws")}, "rangemode": "tozero"},
    }
    figure = {"data": [bars, promised], "layout": layout}
    return json.dumps({"message": fresh_key(), "figure": figure, "have": None}, allow_nan=False)
