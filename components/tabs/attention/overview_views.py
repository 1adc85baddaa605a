"""What the overview of heads draws: a ranking as bars, a row of a head as arcs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.kit.arcs import MOST_ARC_ROWS
from components.tabs.attention.views import Shown
from explorer.attention_lab.head_kinds import RankedHead
from explorer.attention_maps import AttentionMaps, compute_patterns

LEAST_DIFFERENCE = 0.5e-4  # less than that is 0.0000 in the ranking


def make_head_bars(
    ranked: Sequence[RankedHead], scores: NDArray[np.float64]
) -> list[dict[str, Any]]:
    """Bars of the heads with the highest scores, the highest first.

    Args:
        ranked: The heads.
        scores: (layers, heads).
    """
    return [
        {"label": f"L{h.layer} h{h.head}", "value": float(scores[h.layer, h.head])} for h in ranked
    ]


def subtract_common(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of the layers and heads that both models have, the first less the second."""
    rows, columns = (min(a, b) for a, b in zip(first.shape, second.shape, strict=True))
    return first[:rows, :columns] - second[:rows, :columns]


def is_same(differences: NDArray[np.float64]) -> bool:
    """Whether all differences that there are would be shown as 0.0000."""
    known = differences[~np.isnan(differences)]
    return bool(known.size) and float(np.abs(known).max()) < LEAST_DIFFERENCE


def make_row_arcs(shown: Shown, maps: AttentionMaps) -> dict[str, Any]:
    """The last rows up to the chosen token; of a longer text, what stands before is left out.

    Args:
        shown: The layer, the head and the token that reads.
        maps: All heads on the text.
    """
    row = compute_patterns(maps, shown.layer)[shown.head, shown.query]
    first = max(0, min(shown.query + 1, len(maps.ids)) - MOST_ARC_ROWS)
    last = min(len(maps.ids), first + MOST_ARC_ROWS)
    return {
        "labels": list(maps.labels[first:last]),
        "weights": row[first:last].tolist(),
        "query": shown.query - first,
        "first": first,
    }
