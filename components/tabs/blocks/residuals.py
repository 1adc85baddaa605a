"""The panel "residuals": how far gradients reach, with and without shortcuts."""

from components.kit.charts import Axes, Look, chart_message, line
from components.tabs.form_panel import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.shortcuts import (
    ShortcutGradients,
    ShortcutSettings,
    compute_shortcut_gradients,
)
from explorer.snippets import make_settings_snippet, source_file_of

FORMULA = r"""
$$x_{l+1} = x_l + f(x_l) \;\Rightarrow\;
\frac{\partial x_{l+1}}{\partial x_l} = 1 + f'(x_l) \qquad
x_{l+1} = f(x_l) \;\Rightarrow\; \frac{\partial x_{l+1}}{\partial x_l} = f'(x_l)$$
"""
PLAN = PanelPlan(
    tab="blocks",
    name="residuals",
    kind=ShortcutSettings,
    examples=(
        ShortcutSettings(),
        ShortcutSettings(depth=40, width=32),
        ShortcutSettings(depth=20, width=64, law="unit", activation="relu"),
    ),
    views=(ViewPlan(name="gradients", height=380),),
    formula=FORMULA,
    test="tests/explorer/test_building_blocks.py",
)


def show(settings: ShortcutSettings, visit: Visit) -> PanelView:
    """Mean absolute gradient of each layer's weights, with and without shortcuts."""
    found = compute_shortcut_gradients(settings)
    return PanelView(
        said=_say(found, visit),
        views={"gradients": _draw(found, visit)},
        facts={
            "tensor": "weight.grad",
            "shape": [settings.depth, settings.width, settings.width],
            "dtype": "float32",
            "file": source_file_of(compute_shortcut_gradients),
        },
        table=TableTwin(
            rows=[str(i) for i in range(settings.depth)],
            columns=[visit.say("without"), visit.say("with_them")],
            cells=[
                [float(a), float(b)] for a, b in zip(found.without, found.with_them, strict=True)
            ],
            corner=visit.say("layer"),
            digits=9,
        ),
        python=make_settings_snippet(
            compute_shortcut_gradients, settings, "print(found.without)", "print(found.with_them)"
        ),
    )


def _say(found: ShortcutGradients, visit: Visit) -> str:
    return visit.say(
        "said",
        without=f"{found.without[0]:.6g}",
        with_them=f"{found.with_them[0]:.6g}",
        last=f"{found.without[-1]:.6g}",
    )


def _draw(found: ShortcutGradients, visit: Visit) -> str:
    layers: list[float] = list(range(len(found.without)))
    look = Look(mode="lines+markers")
    traces = [
        line(visit.say("without"), layers, _positive(found.without.tolist()), look),
        line(visit.say("with_them"), layers, _positive(found.with_them.tolist()), look),
    ]
    return chart_message(traces, Axes(x=visit.say("layer"), y=visit.say("gradient"), y_kind="log"))


def _positive(values: list[float]) -> list[float]:
    """A gradient of 0 has no place on a logarithmic axis: a gap."""
    return [value if value > 0 else float("nan") for value in values]


PANEL = Panel(plan=PLAN, show=show)
