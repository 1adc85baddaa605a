"""The panel "activations": nonlinearities, their slopes, and the gate of SwiGLU."""

from collections.abc import Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from components.kit.charts import Axes, Look, chart_message, line
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.activation_curves import (
    NAMES,
    ActivationSettings,
    compute_activation_curves,
)
from explorer.snippets import make_settings_snippet, source_file_of

FORMULA = r"""
$$\text{ReLU} = \max(0, x) \qquad \text{GELU} = x\,\Phi(x) \qquad
\text{SiLU} = \frac{x}{1 + e^{-x}}$$
$$\text{GELU}_{\tanh} = \tfrac{x}{2}\bigl(1 + \tanh(\sqrt{2/\pi}\,(x + 0.044715\,x^3))\bigr)
\qquad \text{SwiGLU} = \text{SiLU}(W_{\text{gate}}\,x) \odot W_{\text{up}}\,x$$
"""
PLAN = PanelPlan(
    prefix="blocks.activations",
    kind=ActivationSettings,
    examples=(
        ActivationSettings(),
        ActivationSettings(reach=1.0, gate="gelu_tanh"),
        ActivationSettings(reach=8.0, gate="relu"),
    ),
    views=(
        ViewPlan(name="values"),
        ViewPlan(name="slopes", height=280),
        ViewPlan(name="gated", height=280),
    ),
    formula=FORMULA,
    test="tests/explorer/test_building_blocks.py",
)
# it lies on gelu: only a dashed line leaves both to be seen
DASHES: Mapping[str, Literal["solid", "dot", "dash"]] = {"gelu_tanh": "dash"}


def show(settings: ActivationSettings, visit: Visit) -> PanelView:
    """Values and slopes of the nonlinearities at the same places, and what a gate lets through."""
    found = compute_activation_curves(settings)
    x = found.x.tolist()
    keep = f"{settings.reach}"

    def draw(curves: dict[str, list[float]], title: str, across: str) -> str:
        traces = [
            line(name, x, y, Look(dash=DASHES.get(name, "solid"))) for name, y in curves.items()
        ]
        return chart_message(traces, Axes(x=across, y=title, keep=keep))

    widest = float(abs(found.values["gelu"] - found.values["gelu_tanh"]).max())
    gated = {visit.say("up", value=f"{up:g}"): y.tolist() for up, y in found.gated.items()}
    return PanelView(
        said=visit.say("said", difference=f"{widest:.2e}"),
        views={
            "values": draw(_lists(found.values), visit.say("value"), "x"),
            "slopes": draw(_lists(found.slopes), visit.say("slope"), "x"),
            "gated": draw(gated, visit.say("gated"), visit.say("gate_input")),
        },
        facts={
            "tensor": "blocks.L.ffn.pre, blocks.L.ffn.post",
            "shape": [len(x)],
            "dtype": "float64",
            "file": source_file_of(compute_activation_curves),
        },
        table=TableTwin(
            rows=[f"{place:.3f}" for place in x],
            columns=[*NAMES, *(visit.say("slope_of", name=name) for name in NAMES)],
            cells=[
                [
                    float(curves[name][i])
                    for curves in (found.values, found.slopes)
                    for name in NAMES
                ]
                for i in range(len(x))
            ],
            corner="x",
        ),
        python=make_settings_snippet(
            compute_activation_curves,
            settings,
            "for i, x in enumerate(found.x):",
            "    print(x, *(curve[i] for curve in found.values.values()))",
        ),
    )


def _lists(curves: Mapping[str, NDArray[np.float64]]) -> dict[str, list[float]]:
    return {name: curve.tolist() for name, curve in curves.items()}


PANEL = Panel(plan=PLAN, show=show)
