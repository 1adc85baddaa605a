"""Written tokens as values of the kit's views."""

from collections.abc import Sequence
from typing import Any

from components.text import Words
from components.token_units import make_units
from explorer.answer_units import AnswerUnit
from explorer.continuations import WrittenToken


def make_written_chips(units: Sequence[AnswerUnit]) -> dict[str, Any]:
    """Chips of a written text, each with the model's own probability."""
    described = make_units([unit.unit for unit in units])
    for chip, unit in zip(described, units, strict=True):
        chip["p"] = round(unit.probability, 6)
        chip["rank"] = unit.rank
    return {"units": described, "more": 0, "total": sum(len(u.unit.ids) for u in units)}


def make_written_table(
    words: Words, locale: str, names: Sequence[str], texts: Sequence[Sequence[WrittenToken]]
) -> dict[str, Any]:
    """Texts beside each other: for each place the token and its probability in every text."""
    n_rows = max((len(text) for text in texts), default=0)
    columns = [c for name in names for c in (name, words.say(locale, "next.column_own"))]
    cells = []
    for place in range(n_rows):
        row: list[Any] = []
        for text in texts:
            there = text[place] if place < len(text) else None
            row += ["", None] if there is None else [there.label, there.probability]
        cells.append(row)
    return {
        "corner": words.say(locale, "next.column_place"),
        "rows": [str(place + 1) for place in range(n_rows)],
        "cols": columns,
        "tokens": list(range(0, 2 * len(names), 2)),
        "cells": cells,
        "digits": 4,
    }
