"""The panel "weights": every tensor of the loaded model."""

import math

from components.kit.charts import Axes, Look, bars, chart_message, line
from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.inside_snippets import make_weights_snippet
from explorer.snippets import source_file_of
from explorer.weights import (
    StoredTensor,
    WeightSettings,
    WeightView,
    compute_weight_view,
    find_stored_kinds,
    measure_stored_tensor,
)

FORMULA = r"""
$$\lVert W \rVert = \sqrt{\textstyle\sum w^2} = \sqrt{\textstyle\sum \sigma_i^2} \qquad
W = U\,\mathrm{diag}(\sigma)\,V^{\top}$$
$$\text{error} = \frac{\lVert W - s \odot \mathrm{round}(W / s) \rVert}{\lVert W \rVert} \qquad
s_{\text{row}} = \frac{\max |w|}{127}$$
$$\text{error of the file} \approx
\sqrt{\textstyle\sum \text{step}_i^2 / 12}\; / \;\lVert W \rVert$$
"""
MOST_DRAWN = 400  # singular values; more cannot be told apart in the picture
PLAN = PanelPlan(
    prefix="blocks.weights",
    kind=WeightSettings,
    examples=(
        WeightSettings(),
        WeightSettings(search="embed", which=0),
        WeightSettings(search="down_proj weight", which=2),
    ),
    views=(
        ViewPlan(name="histogram", height=280),
        ViewPlan(name="singular", height=280),
        ViewPlan(name="tensors", kind="matrix"),
    ),
    formula=FORMULA,
    test="tests/explorer/test_weights.py",
    reads_model=True,
    text="search",
)
NUMBERS = ("norm", "mean", "std", "low", "high")


def show(settings: WeightSettings, visit: Visit) -> PanelView:
    """Tensors of the model by name, with size and spread; one of them in full."""
    with visit.lease() as loaded:
        kinds = find_stored_kinds(visit.source, loaded.config)
        found = compute_weight_view(loaded, settings, kinds)
        stored = measure_stored_tensor(visit.source, loaded.config, found.chosen.name)
    chosen = found.chosen
    return PanelView(
        said=_say(found, stored, visit),
        views={
            "histogram": _draw_histogram(found, visit),
            "singular": _draw_singular(found, visit),
            "tensors": _list(found, visit),
        },
        facts={
            "tensor": chosen.name,
            "shape": list(chosen.shape),
            "dtype": chosen.dtype,
            "file": source_file_of(compute_weight_view),
        },
        table=TableTwin(
            rows=[tensor.name for tensor in found.listed],
            columns=[visit.say(name) for name in NUMBERS],
            cells=[[getattr(tensor, name) for name in NUMBERS] for tensor in found.listed],
            digits=6,
        ),
        python=make_weights_snippet(visit.source, settings),
    )


def _say(found: WeightView, stored: StoredTensor | None, visit: Visit) -> str:
    chosen = found.chosen
    sentences = [
        visit.say("said", found=found.n_found, all=found.n_all, name=chosen.name),
    ]
    if not math.isnan(found.int8_error):
        sentences.append(visit.say("said_int8", error=f"{found.int8_error:.2%}"))
    if stored is not None:
        sentences.append(_say_stored(stored, visit))
    return " ".join(sentences)


def _say_stored(stored: StoredTensor, visit: Visit) -> str:
    """Kind, bits and steps in the GGUF file, and the error that such steps stand for."""
    known = {"kind": stored.kind, "bits": f"{stored.bits:.3g}"}
    if math.isnan(stored.error):
        return visit.say("said_stored", **known)
    if not stored.error:
        return visit.say("said_exact", **known)
    step, error = f"{stored.mean_step:.3g}", f"{stored.error:.2%}"
    return visit.say("said_steps", step=step, error=error, **known)


def _draw_histogram(found: WeightView, visit: Visit) -> str:
    middles = ((found.edges[:-1] + found.edges[1:]) / 2).tolist()
    counts = [float(count) if count else math.nan for count in found.counts]
    axes = Axes(x=visit.say("value"), y=visit.say("count"), y_kind="log", keep=found.chosen.name)
    return chart_message([bars(found.chosen.name, middles, counts)], axes)


def _draw_singular(found: WeightView, visit: Visit) -> str:
    values = found.singular_values[:MOST_DRAWN].tolist()
    places: list[float] = list(range(len(values)))
    axes = Axes(x=visit.say("number"), y=visit.say("singular"), keep=found.chosen.name)
    return chart_message([line(visit.say("singular"), places, values, Look())], axes)


def _list(found: WeightView, visit: Visit) -> dict[str, object]:
    """The first tensors found; the one looked at is marked."""
    names = [tensor.name for tensor in found.listed]
    columns = ["shape", "dtype", "norm", "std", "stored"]
    return {
        "corner": visit.say("tensor"),
        "rows": names,
        "cols": [visit.say(name) for name in columns],
        "cells": [
            [" × ".join(map(str, t.shape)), t.dtype, t.norm, t.std, t.stored or "–"]
            for t in found.listed
        ],
        "digits": 4,
        "wide": True,
        "selected_row": names.index(found.chosen.name) if found.chosen.name in names else -1,
    }


PANEL = Panel(plan=PLAN, show=show)
