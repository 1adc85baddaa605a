"""The panel "why": what swapping two words does, with and without positions; four terms."""

from components.kit.charts import Axes, bars, chart_message
from components.tabs.form_panel import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from explorer.added_positions import TERMS, Swap, SwapSettings, compute_swap
from explorer.positions_snippets import make_swap_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$(e_n + p_n)\,W_q \cdot (e_m + p_m)\,W_k = \underbrace{e_n W_q \cdot e_m W_k}_{\text{content}} +
e_n W_q \cdot p_m W_k + p_n W_q \cdot e_m W_k + p_n W_q \cdot p_m W_k$$
"""
PLAN = PanelPlan(
    tab="positions",
    name="why",
    kind=SwapSettings,
    examples=(
        SwapSettings(),
        SwapSettings(text="Mary likes John", first=0, second=-1),
        SwapSettings(text="not bad , really good", first=1, second=-1, query=1),
    ),
    views=(ViewPlan(name="changes", height=280), ViewPlan(name="terms", height=300)),
    formula=FORMULA,
    test="tests/explorer/test_added_positions.py",
    reads_model=True,
)


def show(settings: SwapSettings, visit: Visit) -> PanelView:
    """How far each token's output moves when two tokens change places, and a score's four parts."""
    with visit.lease() as loaded:
        found = compute_swap(loaded, settings, turn=visit.ctx.slots.turn)
    labels = [f"{i} {label}" for i, label in enumerate(found.labels)]
    columns = ["without", "with_them"]
    return PanelView(
        said=visit.say(
            "said",
            without=f"{float(found.without.max()):.1e}",
            with_them=f"{float(found.with_them.max()):.3g}",
            added=visit.say(found.added_by),
        ),
        views={
            "changes": _draw_changes(found, labels, visit),
            "terms": _draw_terms(found, labels, visit),
        },
        facts={
            "tensor": "blocks.0.attn",
            "shape": [len(labels)],
            "dtype": "float32",
            "file": source_file_of(compute_swap),
        },
        table=TableTwin(
            rows=labels,
            columns=[
                *(visit.say(name) for name in columns),
                *(visit.say(term) for term in TERMS),
                visit.say("score"),
            ],
            cells=[
                [
                    float(found.without[i]),
                    float(found.with_them[i]),
                    *(float(found.terms[term][i]) for term in TERMS),
                    float(found.scores[i]),
                ]
                for i in range(len(labels))
            ],
            corner=visit.say("token"),
            digits=6,
        ),
        python=make_swap_snippet(visit.source, settings),
    )


def _draw_changes(found: Swap, labels: list[str], visit: Visit) -> str:
    traces = [
        bars(visit.say("without"), labels, found.without.tolist()),
        bars(visit.say("with_them"), labels, found.with_them.tolist()),
    ]
    return chart_message(
        traces, Axes(x=visit.say("token"), y=visit.say("change"), x_kind="category")
    )


def _draw_terms(found: Swap, labels: list[str], visit: Visit) -> str:
    traces = [bars(visit.say(term), labels, found.terms[term].tolist()) for term in TERMS]
    return chart_message(traces, Axes(x=visit.say("key"), y=visit.say("part"), x_kind="category"))


PANEL = Panel(plan=PLAN, show=show)
