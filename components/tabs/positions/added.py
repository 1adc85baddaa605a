"""The panel "added": sinusoidal and learned positions as pictures and products."""

from components.kit.charts import Axes, chart_message, heat, line
from components.tabs.form_panel import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.added_positions import (
    AddedPositions,
    AddedSettings,
    compute_added_positions,
)
from explorer.positions_snippets import make_added_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$PE(n, 2i) = \sin\frac{n}{b^{2i/D}} \qquad PE(n, 2i+1) = \cos\frac{n}{b^{2i/D}} \qquad
PE(n) \cdot PE(m) = \sum_i \cos\frac{n - m}{b^{2i/D}}$$
"""
MOST_COLUMNS = 128  # of the picture; the table and the CSV file have the products
PLAN = PanelPlan(
    tab="positions",
    name="added",
    kind=AddedSettings,
    examples=(
        AddedSettings(),
        AddedSettings(base=100.0),
        AddedSettings(n_positions=256, width=128, position=128),
    ),
    views=(ViewPlan(name="vectors", height=360), ViewPlan(name="products", height=260)),
    formula=FORMULA,
    test="tests/explorer/test_added_positions.py",
    reads_model=True,
)


def show(settings: AddedSettings, visit: Visit) -> PanelView:
    """Products of one position's vector with those of all others."""
    found = _compute(settings, visit)
    n_positions, width = found.vectors.shape
    return PanelView(
        said=visit.say("said", n=n_positions, width=width, position=found.position),
        views={"vectors": _draw_vectors(found, visit), "products": _draw_products(found, visit)},
        facts={
            "tensor": "position_embed.weight" if settings.kind == "learned" else "PE",
            "shape": [n_positions, width],
            "dtype": "float32",
            "file": source_file_of(compute_added_positions),
        },
        table=TableTwin(
            rows=[str(i) for i in range(n_positions)],
            columns=[visit.say("product")],
            cells=[[float(product)] for product in found.products],
            corner=visit.say("position_axis"),
        ),
        python=make_added_snippet(visit.source, settings),
    )


def _compute(settings: AddedSettings, visit: Visit) -> AddedPositions:
    if settings.kind != "learned":
        return compute_added_positions(settings)
    with visit.lease() as loaded:
        return compute_added_positions(settings, loaded)


def _draw_vectors(found: AddedPositions, visit: Visit) -> str:
    axes = Axes(x=visit.say("number"), y=visit.say("position_axis"), flipped=True)
    return chart_message([heat(found.vectors[:, :MOST_COLUMNS])], axes)


def _draw_products(found: AddedPositions, visit: Visit) -> str:
    distances: list[float] = [i - found.position for i in range(len(found.products))]
    axes = Axes(x=visit.say("distance"), y=visit.say("product"))
    return chart_message([line(visit.say("product"), distances, found.products.tolist())], axes)


PANEL = Panel(plan=PLAN, show=show)
