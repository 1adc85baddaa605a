"""The panel "norm place": norms in front, behind and nowhere, layer by layer."""

from collections.abc import Mapping

from components.kit.charts import Axes, Look, chart_message, line
from components.tabs.form_panel import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.norm_positions import (
    NormPositionCurves,
    NormPositionSettings,
    compute_norm_positions,
)
from explorer.snippets import make_settings_snippet, source_file_of

FORMULA = r"""
$$\text{pre: } x + f(\text{norm}(x)) \qquad \text{post: } \text{norm}(x + f(x)) \qquad
\text{none: } x + f(x)$$
$$\text{size} = \sqrt{\tfrac{1}{D}\textstyle\sum x_i^2} \qquad
\text{gradient} = \sqrt{\textstyle\sum_w (\partial L / \partial w)^2}$$
"""
PLAN = PanelPlan(
    tab="blocks",
    name="norm_place",
    kind=NormPositionSettings,
    examples=(
        NormPositionSettings(),
        NormPositionSettings(depth=12, n_steps=20, learning_rate=0.003),
        NormPositionSettings(depth=16, law="unit_normal"),
    ),
    views=(
        ViewPlan(name="stream", height=300),
        ViewPlan(name="gradients", height=300),
        ViewPlan(name="losses", height=220),
    ),
    formula=FORMULA,
    test="tests/explorer/test_building_blocks.py",
)


def show(settings: NormPositionSettings, visit: Visit) -> PanelView:
    """Size of the stream and of gradients in each block, with norms in front, behind, nowhere."""
    found = compute_norm_positions(settings, turn=visit.ctx.slots.turn)
    names = {kind: visit.say(kind) for kind in found}
    losses = ", ".join(
        f"{names[kind]} {float(curves.losses[-1]):.3f}" for kind, curves in found.items()
    )
    return PanelView(
        said=visit.say("said", steps=settings.n_steps, losses=losses),
        views={
            name: _draw(found, name, names, visit) for name in ("stream", "gradients", "losses")
        },
        facts={
            "tensor": "blocks.*.resid_post",
            "shape": [settings.depth],
            "dtype": "float32",
            "file": source_file_of(compute_norm_positions),
        },
        table=TableTwin(
            rows=[str(i) for i in range(settings.depth)],
            columns=[
                f"{names[kind]}: {visit.say(name)}"
                for name in ("stream", "gradients")
                for kind in found
            ],
            cells=[
                [
                    float(getattr(c, name)[i])
                    for name in ("stream", "gradients")
                    for c in found.values()
                ]
                for i in range(settings.depth)
            ],
            corner=visit.say("layer"),
            digits=5,
        ),
        python=make_settings_snippet(
            compute_norm_positions,
            settings,
            "for kind, curves in found.items():",
            "    print(kind, curves.stream, curves.gradients, curves.losses)",
        ),
    )


def _draw(
    found: Mapping[str, NormPositionCurves], what: str, names: Mapping[str, str], visit: Visit
) -> str:
    traces = []
    for kind, curves in found.items():
        values = getattr(curves, what).tolist()
        drawn = [v if v > 0 else float("nan") for v in values]
        places: list[float] = list(range(len(values)))
        traces.append(line(names[kind], places, drawn, Look(mode="lines+markers")))
    across = visit.say("step" if what == "losses" else "layer")
    kind_of_axis = "linear" if what == "losses" else "log"
    return chart_message(traces, Axes(x=across, y=visit.say(what), y_kind=kind_of_axis))  # type: ignore[arg-type]


PANEL = Panel(plan=PLAN, show=show)
