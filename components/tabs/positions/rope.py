"""The panel "rope": one pair turning with its position, and scores against distance."""

import math
from dataclasses import dataclass, field
from typing import Any

from components.kit.charts import Axes, Look, chart_message, line
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.rope_rotation import (
    DistanceScores,
    TurnedPair,
    UnturnedHead,
    compute_distance_scores,
    compute_turned_pair,
    read_unturned_head,
    with_base,
)
from explorer.rope_snippets import make_distance_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$\begin{pmatrix} x'_i \\ x'_{i+d/2} \end{pmatrix} =
\begin{pmatrix} \cos n\theta_i & -\sin n\theta_i \\ \sin n\theta_i & \cos n\theta_i \end{pmatrix}
\begin{pmatrix} x_i \\ x_{i+d/2} \end{pmatrix} \qquad \theta_i = b^{-2i/d}$$
$$q_n \cdot k_m = q^{\top} R(m - n)\, k$$
"""
FIRST_TEXT = "When Mary and John went to the store, John gave a drink to Mary."
BASES = ("model", "10000", "500000", "1000000")
# Where a control ends is asked of the loaded model; the numbers here are for programs.
LAYER = {"least": 0, "most": 127, "step": 1, "counts": "layers"}
HEAD = {**LAYER, "counts": "heads"}
TOKEN = {"least": -1, "most": 511, "step": 1, "counts": "tokens"}
TRAIL = 240  # points of the path that are drawn: more lie on top of each other


@dataclass(frozen=True, kw_only=True)
class RotationSettings:
    """What is turned.

    Args:
        text: What the model reads.
        layer: Which layer.
        head: Which query head.
        pair: Which pair of numbers of the head.
        position: Where the query stands in the circle.
        query: Token of the query; -1 is the last.
        key: Token of the key; -1 is the last.
        distance: Of the proof: tokens between query and key.
        most: Largest distance of the curve.
        base: Base of the frequencies; that of the model, or another.
    """

    text: str = field(default=FIRST_TEXT, metadata={"text": True})
    layer: int = field(default=0, metadata=LAYER)
    head: int = field(default=0, metadata=HEAD)
    pair: int = field(default=3, metadata={**LAYER, "counts": "pairs"})
    position: int = field(default=5, metadata={"least": 0, "most": 200, "step": 1})
    query: int = field(default=-1, metadata=TOKEN)
    key: int = field(default=1, metadata=TOKEN)
    distance: int = field(default=12, metadata={"least": 0, "most": 2_000, "step": 1})
    most: int = field(default=256, metadata={"least": 16, "most": 4_096, "step": 16})
    base: str = field(default="model", metadata={"choices": BASES, "dial": True})


PLAN = PanelPlan(
    prefix="positions.rope",
    kind=RotationSettings,
    examples=(
        RotationSettings(pair=0, position=3),
        RotationSettings(pair=8, position=120, most=1_024, base="10000"),
        RotationSettings(layer=3, head=2, query=-1, key=-1, most=2_048, base="1000000"),
    ),
    views=(
        ViewPlan(name="circle", height=360),
        ViewPlan(name="scores", height=300),
        ViewPlan(name="proof", kind="matrix"),
    ),
    formula=FORMULA,
    test="tests/explorer/test_rope_rotation.py",
    reads_model=True,
    plays="position",
)


def show(settings: RotationSettings, visit: Visit) -> PanelView:
    """Scores of one query and one key of the model at every distance, in and out of their places.

    The last rows of `said` hold the proof: equal distances, equal scores.
    """
    with visit.lease() as loaded:
        head = read_unturned_head(
            loaded, settings.text, settings.layer, settings.head, turn=visit.ctx.slots.turn
        )
    base = 0.0 if settings.base == "model" else float(settings.base)
    head = with_base(head, base) if base else head
    query, key = (_token(head, token) for token in (settings.query, settings.key))
    pair = compute_turned_pair(head.queries[query], head.rope, settings.pair, settings.position)
    found = compute_distance_scores(
        head, query, key, pair=settings.pair, distance=settings.distance, most=settings.most
    )
    place = (settings.layer, settings.head, query, key, settings.pair, settings.distance)
    return PanelView(
        said=_say(settings, head, pair, found, visit, query, key),
        views={
            "circle": _draw_circle(settings, pair, visit),
            "scores": _draw_scores(found, visit),
            "proof": _prove(found, visit),
        },
        facts={
            "tensor": f"blocks.{settings.layer}.attn.q, blocks.{settings.layer}.attn.k",
            "shape": list(head.queries.shape),
            "dtype": "float32",
            "file": source_file_of(compute_distance_scores),
        },
        table=_tabulate(found, visit),
        python=make_distance_snippet(visit.source, settings.text, place, settings.most, base),
    )


def _token(head: UnturnedHead, token: int) -> int:
    return len(head.labels) - 1 if token < 0 else token


def _say(
    settings: RotationSettings,
    head: UnturnedHead,
    pair: TurnedPair,
    found: DistanceScores,
    visit: Visit,
    query: int,
    key: int,
) -> str:
    spread = float(found.shifted.max() - found.shifted.min())
    return visit.say(
        "said",
        query_text=head.labels[query],
        key_text=head.labels[key],
        pair=settings.pair,
        base=f"{head.rope.theta:,.0f}",
        degrees=f"{math.degrees(pair.frequency) % 360:.4g}",
        wavelength=f"{2 * math.pi / pair.frequency:,.1f}",
        spread=f"{spread:.1e}",
    )


def _draw_circle(settings: RotationSettings, pair: TurnedPair, visit: Visit) -> str:
    """The path of the pair, where it starts, and where it points now."""
    points = pair.points
    radius = float((points[0] ** 2).sum() ** 0.5) or 1.0
    turns = [2 * math.pi * step / 120 for step in range(121)]
    faint, arrow = Look(dash="dot", width=1), Look(mode="lines+markers", width=3)
    start, now, trail = points[0].tolist(), points[-1].tolist(), points[-TRAIL:]
    traces = [
        line(
            visit.say("line_circle"),
            [radius * math.cos(t) for t in turns],
            [radius * math.sin(t) for t in turns],
            faint,
        ),
        line(
            visit.say("line_path"),
            trail[:, 0].tolist(),
            trail[:, 1].tolist(),
            Look(mode="markers"),
        ),
        line(visit.say("line_start"), [0, start[0]], [0, start[1]], arrow),
        line(visit.say("line_now", position=settings.position), [0, now[0]], [0, now[1]], arrow),
    ]
    axes = Axes(
        x=visit.say("axis_first", pair=settings.pair),
        y=visit.say("axis_second", pair=settings.pair),
        square=True,
        keep=f"{settings.pair} {settings.base}",
    )
    return chart_message(traces, axes)


def _draw_scores(found: DistanceScores, visit: Visit) -> str:
    distances = found.distances.tolist()
    traces = [
        line(visit.say("line_scores"), distances, found.scores.tolist()),
        line(visit.say("line_pair"), distances, found.of_pair.tolist(), Look(dash="dash", width=1)),
    ]
    axes = Axes(x=visit.say("axis_distance"), y=visit.say("axis_score"), keep=f"{len(distances)}")
    return chart_message(traces, axes)


def _prove(found: DistanceScores, visit: Visit) -> dict[str, Any]:
    columns = ("column_query_at", "column_key_at", "column_between", "column_score", "column_off")
    cells = [
        [
            f"{shift + found.distance:,}",
            f"{shift:,}",
            str(found.distance),
            float(score),
            float(score - found.shifted[0]),
        ]
        for shift, score in zip(found.shifts, found.shifted, strict=True)
    ]
    return {"rows": [], "cols": [visit.say(name) for name in columns], "cells": cells, "digits": 6}


def _tabulate(found: DistanceScores, visit: Visit) -> TableTwin:
    return TableTwin(
        rows=[str(distance) for distance in found.distances],
        columns=[visit.say("column_score"), visit.say("line_pair")],
        cells=[
            list(row) for row in zip(found.scores.tolist(), found.of_pair.tolist(), strict=True)
        ],
        corner=visit.say("axis_distance"),
        digits=6,
    )


PANEL = Panel(plan=PLAN, show=show)
