"""What the panel "encoder-decoder" shows, as values of the kit's views."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from explorer.translation_view import Translation, pattern_of

MEAN = -1  # in place of a head


@dataclass(frozen=True)
class LookedAt:
    """What is looked at, and under which id its numbers are kept.

    Args:
        result_id: The translation; "" before there is one.
        run: Id of its run.
        text: Its source.
        place: Pieces that are written already, from 0.
        layer: Block of the decoder; -1 is the last.
        head: Of the cross-attention; -1 is the mean of all.
    """

    result_id: str = ""
    run: str = ""
    text: str = ""
    place: int = 0
    layer: int = -1
    head: int = MEAN


def within(looked: LookedAt, found: Translation) -> tuple[int, int, int]:
    """Place, layer and head, moved into the ranges of this translation."""
    n_layers, n_heads, n_places = found.patterns.shape[:3]
    layer = n_layers - 1 if looked.layer < 0 else min(looked.layer, n_layers - 1)
    return min(looked.place, n_places - 1), layer, min(looked.head, n_heads - 1)


def pattern_so_far(found: Translation, place: int, layer: int, head: int) -> NDArray[np.float32]:
    """Cross-attention (T, S) up to a place; what is not decoded yet is 0."""
    pattern = np.array(pattern_of(found, layer, head))
    pattern[place + 1 :] = 0
    return pattern


def row_labels(found: Translation, place: int) -> list[str]:
    """The piece that each row chose, as far as it is decoded."""
    return [label if i <= place else "…" for i, label in enumerate(found.chosen)]


def make_head_stack(found: Translation) -> NDArray[np.uint8]:
    """Thumbnails of all layers: of each its mean and its heads."""
    n_layers, n_heads = found.patterns.shape[:2]
    patterns = [pattern_of(found, i, h) for i in range(n_layers) for h in range(MEAN, n_heads)]
    return np.rint(np.stack(patterns) * 255).astype(np.uint8)


def make_grid(found: Translation, stack: str, layer: int, head: int, mean: str) -> dict[str, Any]:
    """The value of the head grid."""
    n_layers, n_heads, n_rows, n_columns = found.patterns.shape
    names = [mean, *(f"h{h}" for h in range(n_heads))]
    return {
        "stack": stack,
        "n": n_layers * (n_heads + 1),
        "size": [n_rows, n_columns],
        "labels": [f"L{i} {name}" for i in range(n_layers) for name in names],
        "selected": layer * (n_heads + 1) + head + 1,
        "causal": False,
    }


def head_at(found: Translation, index: int) -> tuple[int, int]:
    """Layer and head of a place in the grid."""
    layer, place = divmod(index, found.patterns.shape[1] + 1)
    return layer, place - 1


def make_candidates(found: Translation, place: int) -> dict[str, Any]:
    """The value of the bars: what could have come next."""
    return {
        "bars": [{"label": c.label, "value": c.probability} for c in found.candidates[place]],
        "unit": "%",
        "max": 1,
    }


def make_texts(found: Translation, say: Callable[..., str]) -> dict[str, Any]:
    """Finished texts of the beam with their scores, greedy and the rule's own below."""
    cells: list[list[Any]] = [
        [text.text, str(text.n_tokens), text.log_probability, text.score] for text in found.texts
    ]
    rows = [str(place) for place in range(1, len(cells) + 1)]
    rows.append(say("greedy"))
    cells.append([found.greedy, str(len(found.chosen)), found.greedy_total, None])
    if found.wanted is not None:
        rows.append(say("wanted"))
        cells.append([found.wanted, "–", None, None])
    return {
        "corner": say("place"),
        "rows": rows,
        "cols": [say(f"column_{name}") for name in ("text", "length", "sum", "score")],
        "cells": cells,
        "digits": 3,
        "selected_row": 0,
        "wide": True,
    }


def make_table(
    found: Translation, place: int, pattern: NDArray[np.float32], corner: str
) -> dict[str, Any]:
    """Cross-attention of one head as numbers, as far as it is decoded."""
    return {
        "corner": corner,
        "rows": list(found.chosen[: place + 1]),
        "cols": list(found.source_labels),
        "cells": [[float(weight) for weight in row] for row in pattern[: place + 1]],
        "digits": 4,
    }
