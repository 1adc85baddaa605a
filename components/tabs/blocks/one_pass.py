"""The panel "one pass": from ids to probabilities, every step with its tensor and its line."""

from dataclasses import dataclass, field

from components.kit.charts import Axes, chart_message, heat
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.one_pass import OnePass, PassStep, compute_one_pass
from explorer.one_pass_lines import make_pass_program
from explorer.snippets import say_load, source_file_of

FORMULA = r"""
$$\text{ids} \to x = E[\text{ids}] \to x + \text{attention}(\text{norm}(x)) \to
x + \text{ffn}(\text{norm}(x)) \to \dots \to \mathrm{softmax}(\text{norm}(x)\,W)$$
"""
MOST_STEPS = 30
# Where a control ends is asked of the loaded model; the numbers here are for programs.
LAYER = {"least": 0, "most": 127, "step": 1, "counts": "layers"}
STEP = {**LAYER, "most": MOST_STEPS, "counts": "steps"}


@dataclass(frozen=True, kw_only=True)
class OnePassSettings:
    """What is read and looked at.

    Args:
        text: What the model reads.
        layer: The block in full.
        step: Which step is drawn.
    """

    text: str = field(default="The cat sat on the", metadata={"text": True})
    layer: int = field(default=0, metadata={"least": 0, "most": 127, "step": 1, "counts": "layers"})
    step: int = field(
        default=0, metadata={"least": 0, "most": MOST_STEPS, "step": 1, "counts": "steps"}
    )


PLAN = PanelPlan(
    prefix="blocks.one_pass",
    kind=OnePassSettings,
    examples=(
        OnePassSettings(),
        OnePassSettings(step=7),
        OnePassSettings(text="2 + 2 =", layer=1, step=MOST_STEPS),
    ),
    views=(
        ViewPlan(name="line", kind="text"),
        ViewPlan(name="picture", height=320),
        ViewPlan(name="steps", kind="matrix"),
        ViewPlan(name="answers", kind="bars"),
    ),
    formula=FORMULA,
    test="tests/explorer/test_one_pass.py",
    reads_model=True,
    plays="step",
)


def show(settings: OnePassSettings, visit: Visit) -> PanelView:
    """Every step of a pass: shape, mean, size and first numbers of its tensor."""
    with visit.lease() as loaded:
        found = compute_one_pass(loaded, settings.text, settings.layer, turn=visit.ctx.slots.turn)
    index = min(settings.step, len(found.steps) - 1)
    step = found.steps[index]
    return PanelView(
        said=visit.say(
            "said",
            step=index,
            last=len(found.steps) - 1,
            name=visit.say(f"step_{step.line.key}"),
            tokens=len(found.ids),
        ),
        views={
            "line": "\n".join([step.line.formula, *step.line.code]),
            "picture": _draw(found, step, visit),
            "steps": _list(found, index, visit),
            "answers": {
                "bars": [{"label": text, "value": value} for text, value in found.answers],
                "unit": "%",
                "max": 1,
            },
        },
        facts={
            "tensor": step.line.tap or step.line.variable,
            "shape": list(step.shape),
            "file": source_file_of(compute_one_pass),
        },
        table=_tabulate(found, visit),
        python=make_pass_program(
            say_load(visit.source), found.ids, tuple(step.line for step in found.steps)
        ),
    )


def _draw(found: OnePass, step: PassStep, visit: Visit) -> str:
    """Tokens by numbers; of heads, what the last token has in each."""
    of_heads = len(step.shape) == 4
    n_rows = step.picture.shape[0]
    rows = [visit.say("head", n=i) for i in range(n_rows)]
    if not of_heads:
        rows = [f"{i} {label}" for i, label in enumerate(found.labels[:n_rows])]
    over_keys = step.line.key in {"scores", "pattern"}
    axes = Axes(
        x=visit.say("keys" if over_keys else "numbers"),
        y=visit.say("heads" if of_heads else "tokens"),
        y_kind="category",  # labels: on a linear axis nothing would be drawn
        flipped=True,
        keep=step.line.key,
    )
    return chart_message([heat(step.picture, y=rows)], axes)


def _list(found: OnePass, index: int, visit: Visit) -> dict[str, object]:
    columns = ("shape", "mean", "size", "first")
    return {
        "corner": visit.say("step"),
        "rows": [f"{i} {visit.say(f'step_{s.line.key}')}" for i, s in enumerate(found.steps)],
        "cols": [visit.say(name) for name in columns],
        "cells": [
            [
                " × ".join(map(str, step.shape)),
                step.mean,
                step.size,
                "  ".join(f"{number:.3f}" for number in step.first),
            ]
            for step in found.steps
        ],
        "digits": 4,
        "selected_row": index,
        "wide": True,
    }


def _tabulate(found: OnePass, visit: Visit) -> TableTwin:
    return TableTwin(
        rows=[visit.say(f"step_{step.line.key}") for step in found.steps],
        columns=[visit.say("mean"), visit.say("size")],
        cells=[[step.mean, step.size] for step in found.steps],
        corner=visit.say("step"),
        digits=6,
    )


PANEL = Panel(plan=PLAN, show=show)
