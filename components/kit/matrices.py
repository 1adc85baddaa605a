"""Small matrices side by side: numbers to read, to change cell by cell, or to guess first."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np
from numpy.typing import NDArray

from components.kit.views import build_view
from components.text import Words

_TEMPLATE = '<div class="list"></div>'


@dataclass(frozen=True, kw_only=True)
class MatrixItem:
    """One matrix of the row.

    Args:
        name: Under which its events name it.
        title: Above it.
        rows: One label a row.
        columns: One label a column.
        cells: The numbers; minus infinity is drawn as it is, `masked` cells as a dash.
        masked: Cells that are not there, or None.
        digits: After the point.
        shade: The number that the fullest colour stands for; None colours nothing.
        editable: Whether cells can be changed.
        changed: Cells that were changed, marked.
        veiled: Row whose numbers are hidden until the reader picks one; -1 hides none.
        picked: The cell that the reader picked.
        row: The row that is spoken of; -1 is none.
    """

    name: str
    title: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: NDArray[np.floating[Any]]
    masked: NDArray[np.bool_] | None = None
    digits: int = 4
    shade: float | None = None
    editable: bool = False
    changed: Sequence[tuple[int, int]] = ()
    veiled: int = -1
    picked: tuple[int, int] | None = None
    row: int = -1

    def as_value(self) -> dict[str, Any]:
        """The item as the page's script takes it."""
        return {
            "name": self.name,
            "title": self.title,
            "rows": list(self.rows),
            "cols": list(self.columns),
            "cells": self._cells(),
            "digits": self.digits,
            "shade": self.shade,
            "editable": self.editable,
            "changed": [list(place) for place in self.changed],
            "veiled": self.veiled,
            "picked": None if self.picked is None else list(self.picked),
            "row": self.row,
        }

    def _cells(self) -> list[list[float | str | None]]:
        rows = self.cells.astype(float).tolist()
        hidden = np.zeros(self.cells.shape, bool) if self.masked is None else self.masked
        return [
            [None if hidden[i, j] else say_number(cell) for j, cell in enumerate(row)]
            for i, row in enumerate(rows)
        ]


def say_number(number: float) -> float | str:
    """The number, or what JSON has no number for."""
    if np.isfinite(number):
        return number
    if np.isnan(number):
        return "NaN"
    return "∞" if number > 0 else "-∞"


def matrices_value(items: Sequence[MatrixItem]) -> dict[str, Any]:
    """The value of the view."""
    return {"items": [item.as_value() for item in items]}


def build_matrices(words: Words, *, elem_id: str) -> gr.HTML:
    """Build a row of matrices; its value is what `matrices_value` gives.

    Event `edit`: `event.matrix`, `.row`, `.column` and `.value`, the text that was typed.
    Event `pick`: `event.matrix`, `.row`, `.column` of a hidden cell.

    Args:
        words: The sentences of the page.
        elem_id: Its id in the page.
    """
    return build_view("matrices", words, template=_TEMPLATE, elem_id=elem_id)
