"""What the drawers "Show the working" of this tab hold: facts, table, exports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from components.context import AppContext
from components.kit.number_matrix import MOST_TABLE_ROWS
from explorer.snippets import source_file_of

TEST_FILE = "tests/explorer/test_tokenizer_lab.py"
NOTHING: tuple[Any, ...] = (None, None, {"csv": None, "png": None, "python": None})


@dataclass(frozen=True, kw_only=True)
class Numbers:
    """A table.

    Args:
        corner: Heading of the row labels.
        rows: Their labels.
        columns: Headings, in the reader's language.
        cells: Numbers, texts, or None, row by row.
        tokens: Columns whose text is that of tokens.
        digits: Decimals of numbers.
    """

    corner: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Any]]
    tokens: Sequence[int] = ()
    digits: int = 0

    def as_value(self, selected: int | None = None) -> dict[str, Any]:
        """The value of a number matrix; of a long table its beginning."""
        value = {
            "corner": self.corner,
            "rows": list(self.rows[:MOST_TABLE_ROWS]),
            "cols": list(self.columns),
            "cells": [list(row) for row in self.cells[:MOST_TABLE_ROWS]],
            "tokens": list(self.tokens),
            "digits": self.digits,
        }
        return value if selected is None else {**value, "selected_row": selected}

    def publish(self, ctx: AppContext) -> str | None:
        """Put the columns of numbers where the CSV button fetches them."""
        numeric = [
            i
            for i in range(len(self.columns))
            if self.cells and all(isinstance(row[i], (int, float)) for row in self.cells)
        ]
        if not numeric:
            return None
        return ctx.routes.publish(
            np.array([[row[i] for i in numeric] for row in self.cells], dtype=np.float64),
            row_labels=list(self.rows),
            column_labels=[self.columns[i] for i in numeric],
        )


def fill_drawer(
    ctx: AppContext,
    numbers: Numbers,
    *,
    tensor: str,
    shape: Sequence[int],
    dtype: str,
    function: Callable[..., Any],
    snippet: str | None,
    png: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Values for facts, table and exports.

    Args:
        ctx: The page's context.
        numbers: The table.
        tensor: Name of what is shown.
        shape: Its axes.
        dtype: Its type.
        function: What computed it.
        snippet: Python that gives the same.
        png: The view that the PNG button saves.
    """
    facts = {
        "tensor": tensor,
        "shape": list(shape),
        "dtype": dtype,
        "file": source_file_of(function),
        "test": TEST_FILE,
    }
    exports = {"csv": numbers.publish(ctx), "png": png, "python": snippet}
    return facts, numbers.as_value(), exports
