"""The panel "norms": LayerNorm against RMSNorm, step by step."""

from components.kit.charts import Axes, bars, chart_message
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.normalisation import NormSettings, NormSteps, compute_norm_steps, parse_numbers
from explorer.snippets import make_snippet, source_file_of

FORMULA = r"""
$$\text{LayerNorm}(x) = \frac{x - \mu}{\sqrt{\sigma^2 + \epsilon}} \odot w + b \qquad
\mu = \frac1n\sum x_i \qquad \sigma^2 = \frac1n\sum (x_i - \mu)^2$$
$$\text{RMSNorm}(x) = \frac{x}{\sqrt{\frac1n\sum x_i^2 + \epsilon}} \odot w$$
"""
PLAN = PanelPlan(
    prefix="blocks.norms",
    kind=NormSettings,
    examples=(
        NormSettings(),
        NormSettings(numbers="1001 1002 1003 1004"),
        NormSettings(numbers="0.1 -0.2 0.05 8 0.1 -0.1"),
    ),
    views=(ViewPlan(name="bars"), ViewPlan(name="steps", kind="matrix")),
    formula=FORMULA,
    test="tests/explorer/test_building_blocks.py",
)
STEPS = ("mean", "variance", "sample_variance", "mean_square")


def show(settings: NormSettings, visit: Visit) -> PanelView:
    """Every step of LayerNorm and RMSNorm of one vector."""
    found = compute_norm_steps(parse_numbers(settings.numbers), settings.eps)
    names = ("x", "centred", "layer_norm", "with_sample_variance", "rms_norm")
    places = [str(i) for i in range(len(found.x))]
    drawn = [
        bars(visit.say(name), places, getattr(found, name).tolist())
        for name in ("x", "layer_norm", "rms_norm")
    ]
    return PanelView(
        said=visit.say("said", **{name: f"{getattr(found, name):.4f}" for name in STEPS}),
        views={
            "bars": chart_message(drawn, Axes(x=visit.say("place"), y=visit.say("value"))),
            "steps": _tabulate_steps(found, settings, visit),
        },
        facts={
            "tensor": "x",
            "shape": [len(found.x)],
            "dtype": "float64",
            "file": source_file_of(compute_norm_steps),
        },
        table=TableTwin(
            rows=places,
            columns=[visit.say(name) for name in names],
            cells=[[float(getattr(found, n)[i]) for n in names] for i in range(len(places))],
            corner=visit.say("place"),
        ),
        python=make_snippet(
            (compute_norm_steps, parse_numbers),
            "",
            f"x = {parse_numbers.__name__}({settings.numbers!r})",
            f"found = {compute_norm_steps.__name__}(x, {settings.eps!r})",
            "print(found.mean, found.variance, found.sample_variance, found.mean_square)",
            "print(found.layer_norm, found.rms_norm)",
        ),
    )


def _tabulate_steps(found: NormSteps, settings: NormSettings, visit: Visit) -> dict[str, object]:
    """A step a row: what LayerNorm does, and what RMSNorm does."""
    root = (
        f"√({found.variance:.5f} + {settings.eps:g}) = {(found.variance + settings.eps) ** 0.5:.5f}"
    )
    own = f"√({found.mean_square:.5f} + {settings.eps:g}) = "
    own += f"{(found.mean_square + settings.eps) ** 0.5:.5f}"
    first = found.x[0]
    cells = [
        [f"μ = {found.mean:.5f}", "–"],
        [f"{first:.4f} − {found.mean:.4f} = {found.centred[0]:.4f}", f"{first:.4f}"],
        [f"σ² = {found.variance:.5f}", f"mean x² = {found.mean_square:.5f}"],
        [root, own],
        [f"{found.layer_norm[0]:.4f}", f"{found.rms_norm[0]:.4f}"],
    ]
    rows = [visit.say(f"step_{name}") for name in ("mean", "centre", "size", "root", "divide")]
    return {
        "rows": rows,
        "cols": ["LayerNorm", "RMSNorm"],
        "cells": cells,
        "digits": 4,
        "wide": True,
    }


PANEL = Panel(plan=PLAN, show=show)
