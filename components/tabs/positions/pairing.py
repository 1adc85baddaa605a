"""The panel "pairing": split halves against neighbours, and the order that leads across."""

from dataclasses import dataclass, field
from typing import Any

from components.tabs.panel_plan import Panel, PanelPlan, PanelView, TableTwin, ViewPlan, Visit
from components.tabs.positions.rope import FIRST_TEXT, HEAD, LAYER, TOKEN
from explorer.attention_maps import check_index
from explorer.rope_rotation import Pairings, compute_pairings, read_unturned_head
from explorer.rope_snippets import make_pairing_snippet
from explorer.snippets import source_file_of

FORMULA = r"""
$$\text{split halves: } (x_i,\ x_{i+d/2}) \qquad \text{neighbours: } (x_{2i},\ x_{2i+1})
\qquad s_i = v_{\pi(i)} \qquad \pi = 0, 2, 4, \dots, 1, 3, 5, \dots$$
"""


@dataclass(frozen=True, kw_only=True)
class PairingSettings:
    """Which query and key are rotated.

    Args:
        text: What the model reads.
        layer: Which layer.
        head: Which query head.
        key: Token of the key; the query is the last token.
        distance: Tokens between them.
    """

    text: str = field(default=FIRST_TEXT, metadata={"text": True})
    layer: int = field(default=0, metadata=LAYER)
    head: int = field(default=0, metadata=HEAD)
    key: int = field(default=1, metadata={**TOKEN, "least": 0})
    distance: int = field(default=12, metadata={"least": 0, "most": 2_000, "step": 1})


PLAN = PanelPlan(
    prefix="positions.pairing",
    kind=PairingSettings,
    examples=(
        PairingSettings(),
        PairingSettings(distance=0),
        PairingSettings(layer=2, head=1, key=3, distance=200),
    ),
    views=(ViewPlan(name="scores", kind="bars"), ViewPlan(name="order", kind="matrix")),
    formula=FORMULA,
    test="tests/explorer/test_rope_rotation.py",
    reads_model=True,
)


def show(settings: PairingSettings, visit: Visit) -> PanelView:
    """Score of one query and one key with both pairings, and with them mixed up."""
    with visit.lease() as loaded:
        head = read_unturned_head(
            loaded, settings.text, settings.layer, settings.head, turn=visit.ctx.slots.turn
        )
    query = len(head.labels) - 1
    check_index("token", settings.key, len(head.labels))
    found = compute_pairings(head, query, settings.key, settings.distance)
    scores = _scores(found, visit)
    return PanelView(
        said=visit.say(
            "said",
            right=f"{found.split_score:.4f}",
            other=f"{found.interleaved_score:.4f}",
            wrong=f"{found.wrong_score:.4f}",
        ),
        views={
            "scores": {
                "bars": [{"label": n, "value": v} for n, v in scores],
                "digits": 4,
                "named": True,
            },
            "order": _tabulate_order(found, visit),
        },
        facts={
            "tensor": f"blocks.{settings.layer}.attn.q, blocks.{settings.layer}.attn.k",
            "shape": list(head.queries.shape),
            "dtype": "float32",
            "file": source_file_of(compute_pairings),
        },
        table=TableTwin(
            rows=[name for name, _ in scores],
            columns=[visit.say("column_score")],
            cells=[[value] for _, value in scores],
            digits=6,
        ),
        python=make_pairing_snippet(
            visit.source,
            settings.text,
            settings.layer,
            settings.head,
            query,
            settings.key,
            settings.distance,
        ),
    )


def _scores(found: Pairings, visit: Visit) -> list[tuple[str, float]]:
    return [
        (visit.say("split"), found.split_score),
        (visit.say("neighbours"), found.interleaved_score),
        (visit.say("mixed"), found.wrong_score),
    ]


def _tabulate_order(found: Pairings, visit: Visit) -> dict[str, Any]:
    """For the first pairs and the last: their numbers in both layouts."""
    half = len(found.order) // 2
    shown = [*range(min(4, half)), *range(max(4, half - 2), half)]
    columns = ("column_split", "column_neighbours")
    return {
        "corner": visit.say("column_pair"),
        "rows": [str(pair) for pair in shown],
        "cols": [visit.say(name) for name in columns],
        "cells": [
            [f"x[{pair}], x[{pair + half}]", f"x[{2 * pair}], x[{2 * pair + 1}]"] for pair in shown
        ],
        "digits": 0,
    }


PANEL = Panel(plan=PLAN, show=show)
