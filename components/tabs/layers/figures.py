"""Figures of the Layers tab, as values of Plotly panels."""

import json
from typing import Any

import numpy as np

from components.kit.curve_panel import Curve, curves_message
from components.kit.plotly_panel import fresh_key, plain
from components.text import Words
from explorer.attribution import Attribution
from explorer.checkpoint_lens import CheckpointLens
from explorer.residual_space import ResidualSpace

# Against, nothing, for: readable on light and dark paper, and apart for the colour-blind.
SIGNED = ((0.0, "#c4571a"), (0.5, "rgba(128,128,128,0.10)"), (1.0, "#2f7fd0"))
MOST_WAYS = 24  # tokens whose ways can be told apart
MOST_STAGES = 6  # curves that can be told apart


def write_figure(data: list[dict[str, Any]], layout: dict[str, Any]) -> str:
    """A figure as the value of a panel."""
    content = {"message": fresh_key(), "figure": {"data": data, "layout": layout}, "have": None}
    return json.dumps(content, allow_nan=False)


def parts_message(words: Words, locale: str, found: Attribution) -> str:
    """Bars of what attention and feed-forward of each layer add to the logit."""
    stages = ["embed", *map(str, range(len(found.feed_forward)))]

    def bars(name: str, x: list[str], y: list[float]) -> dict[str, Any]:
        title = words.say(locale, f"layers.part_{name}")
        return {"type": "bar", "name": title, "x": x, "y": [round(v, 5) for v in y]}

    data = [
        bars("embedding", stages[:1], [found.embedding]),
        bars("attention", stages[1:], found.attention.tolist()),
        bars("feed_forward", stages[1:], found.feed_forward.tolist()),
    ]
    layout = {
        "uirevision": "parts",
        "barmode": "group",
        "showlegend": True,
        "xaxis": {"title": {"text": words.say(locale, "layers.axis_layer")}, "type": "category"},
        "yaxis": {"title": {"text": words.say(locale, "layers.axis_logit")}},
    }
    return write_figure(data, layout)


def heads_message(words: Words, locale: str, found: Attribution) -> str:
    """A map of what each head adds to the logit."""
    most = float(np.abs(found.heads).max()) or 1.0
    places = {"layer": "%{y}", "head": "%{x}", "value": "%{z}"}  # Plotly fills them
    hover = words.say(locale, "layers.head_hover", **places)
    data = [
        {
            "type": "heatmap",
            "z": [[round(v, 5) for v in row] for row in found.heads.tolist()],
            "zmin": -most,
            "zmax": most,
            "colorscale": [list(stop) for stop in SIGNED],
            "colorbar": {"thickness": 12, "outlinewidth": 0},
            "hovertemplate": f"{hover}<extra></extra>",
        }
    ]
    layout = {
        "uirevision": "heads",
        "hovermode": "closest",
        "xaxis": {
            "title": {"text": words.say(locale, "layers.axis_head")},
            "zeroline": False,
            "dtick": 1,
            "showgrid": False,
        },
        "yaxis": {
            "title": {"text": words.say(locale, "layers.axis_layer")},
            "showgrid": False,
            "zeroline": False,
        },
    }
    return write_figure(data, layout)


def norms_message(words: Words, locale: str, found: Attribution) -> str:
    """Length of the stream after the embedding and after each layer."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "x": ["embed", *map(str, range(len(found.feed_forward)))],
            "y": [round(float(v), 4) for v in found.stream_norms],
        }
    ]
    layout = {
        "uirevision": "norms",
        "showlegend": False,
        "xaxis": {"title": {"text": words.say(locale, "layers.axis_layer")}, "type": "category"},
        "yaxis": {"title": {"text": words.say(locale, "layers.part_norm")}, "rangemode": "tozero"},
    }
    return write_figure(data, layout)


def ways_message(words: Words, locale: str, found: ResidualSpace) -> str:
    """The way of each token through the layers, in the plane of the two largest variances."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": f"{index} {plain(found.labels[index])}",
            "x": [round(float(v), 4) for v in found.points[:, index, 0]],
            "y": [round(float(v), 4) for v in found.points[:, index, 1]],
            "text": list(found.stages),
            "hovertemplate": "%{fullData.name} · %{text}<extra></extra>",
            "marker": {"size": [4] * (len(found.stages) - 1) + [10]},
            "line": {"width": 1.2},
        }
        for index in range(min(len(found.labels), MOST_WAYS))
    ]
    first, second = (f"{share:.0%}" for share in found.explained)
    layout = {
        "uirevision": "ways",
        "hovermode": "closest",
        "showlegend": True,
        "xaxis": {"title": {"text": words.say(locale, "layers.axis_first", share=first)}},
        "yaxis": {"title": {"text": words.say(locale, "layers.axis_second", share=second)}},
    }
    return write_figure(data, layout)


def rank_message(words: Words, locale: str, stages: list[str], ranks: list[int], name: str) -> str:
    """The place of a token through the layers, first place on top."""
    data = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": plain(name),
            "x": stages,
            "y": ranks,
        }
    ]
    layout = {
        "uirevision": "rank",
        "showlegend": False,
        "xaxis": {"title": {"text": words.say(locale, "layers.axis_layer")}, "type": "category"},
        "yaxis": {
            "title": {"text": words.say(locale, "layers.axis_rank", token=plain(name))},
            "type": "log",
            "autorange": "reversed",
        },
    }
    return write_figure(data, layout)


def growth_message(words: Words, locale: str, lens: CheckpointLens) -> str:
    """The followed token's probability by step, after the last layer and some of those before."""
    last = len(lens.stages) - 1
    places = sorted({round(last * i / (MOST_STAGES - 1)) for i in range(MOST_STAGES)})
    curves = [
        Curve(
            words.say(locale, "layers.checkpoints_stage", stage=lens.stages[place]),
            [float(step) for step in lens.steps],
            [float(one.answer_probabilities[place]) for one in lens.lenses],
        )
        for place in places
    ]
    return curves_message(
        curves,
        x_title=words.say(locale, "layers.checkpoints_step"),
        y_title=words.say(locale, "layers.axis_target", token=lens.target.label),
    )
