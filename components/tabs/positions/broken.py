"""The panel "broken": a text read with another rotation than the model's own."""

import numpy as np

from components.kit.charts import Axes, Look, chart_message, line
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.broken_rotation import BrokenReading, BrokenSettings, compute_broken_reading
from explorer.positions_snippets import make_broken_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$\text{loss}_n = -\ln p(x_n \mid x_{<n}) \qquad
\text{perplexity} = \exp\Bigl(\tfrac1N \textstyle\sum_n \text{loss}_n\Bigr)$$
"""
SMOOTHED = 8  # tokens whose mean is drawn: single losses jump too much to compare
PLAN = PanelPlan(
    prefix="positions.broken",
    kind=BrokenSettings,
    examples=(
        BrokenSettings(),
        BrokenSettings(way="linear", factor=4.0),
        BrokenSettings(way="yarn", factor=2.0, n_tokens=512),
    ),
    views=(ViewPlan(name="losses"), ViewPlan(name="texts", kind="matrix")),
    formula=FORMULA,
    test="tests/explorer/test_broken_rotation.py",
    reads_model=True,
)


def show(settings: BrokenSettings, visit: Visit) -> PanelView:
    """Loss of each token with the model's own rotation and with another one."""
    with visit.lease() as loaded:
        found = compute_broken_reading(loaded, settings, turn=visit.ctx.slots.turn)
    return PanelView(
        said=_say(found, visit),
        views={"losses": _draw(found, visit), "texts": _write(found, visit)},
        facts={
            "tensor": "logits",
            "shape": [len(found.own)],
            "dtype": "float32",
            "file": source_file_of(compute_broken_reading),
        },
        table=TableTwin(
            rows=[str(i + 1) for i in range(len(found.own))],
            columns=[visit.say("own"), visit.say("other")],
            cells=[[float(a), float(b)] for a, b in zip(found.own, found.broken, strict=True)],
            corner=visit.say("position"),
        ),
        python=make_broken_snippet(visit.source, settings),
    )


def _say(found: BrokenReading, visit: Visit) -> str:
    own, broken = found.perplexities
    trained = f"{found.trained_length:,}"
    said = visit.say("said", own=f"{own:.2f}", broken=f"{broken:.2f}", trained=trained)
    beyond = found.perplexities_beyond
    if beyond is None:
        return said
    own, broken = beyond
    return f"{said} {visit.say('said_beyond', own=f'{own:.2f}', broken=f'{broken:.2f}')}"


def _draw(found: BrokenReading, visit: Visit) -> str:
    places: list[float] = list(range(1, len(found.own) + 1))
    traces = [
        line(visit.say(name), places, _smooth(losses), Look())
        for name, losses in (("own", found.own), ("other", found.broken))
    ]
    length = found.trained_length
    marks = [(float(length), visit.say("trained"))] if length < len(places) else []
    axes = Axes(x=visit.say("position"), y=visit.say("loss"), marks=marks, keep=f"{len(places)}")
    return chart_message(traces, axes)


def _smooth(losses: np.ndarray) -> list[float]:
    """The mean of the last few; of fewer at the start."""
    sums = np.cumsum(losses, dtype=np.float64)
    before = np.concatenate([np.zeros(min(SMOOTHED, len(sums))), sums[:-SMOOTHED]])
    counts = np.minimum(np.arange(1, len(sums) + 1), SMOOTHED)
    return [float(value) for value in (sums - before) / counts]


def _write(found: BrokenReading, visit: Visit) -> dict[str, object]:
    return {
        "rows": [visit.say("own"), visit.say("other")],
        "cols": [visit.say("writes")],
        "cells": [[found.own_text], [found.broken_text]],
        "digits": 0,
        "wide": True,
    }


PANEL = Panel(plan=PLAN, show=show)
