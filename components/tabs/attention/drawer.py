"""What the drawer "Show the working" of a panel holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from components.context import AppContext
from components.kit.matrices import say_number
from components.kit.number_matrix import MOST_TABLE_ROWS
from explorer.snippets import source_file_of

NO_DRAWER: tuple[Any, ...] = (None, None, {"csv": None, "png": None, "python": None})


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The numbers behind a picture, and where they come from.

    Args:
        tensor: Their name.
        cells: (rows, columns); NaN is a number that there is none of.
        rows: One label a row.
        columns: One label a column.
        function: What computes them.
        test: The test that checks them.
        python: A snippet that gives the same numbers, or None.
        png: The `elem_id` of the picture.
        digits: After the point, in the table.
    """

    tensor: str
    cells: NDArray[np.floating[Any]]
    rows: Sequence[str]
    columns: Sequence[str]
    function: Callable[..., Any]
    test: str
    python: str | None
    png: str | None = None
    digits: int = 4


def fill_drawer(ctx: AppContext, shown: Shown) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """Values of facts, table and exports; all numbers are in the CSV file.

    Args:
        ctx: The page's context.
        shown: The numbers.
    """
    cells = np.asarray(shown.cells)
    facts = {
        "tensor": shown.tensor,
        "shape": list(cells.shape),
        "dtype": str(cells.dtype),
        "file": source_file_of(shown.function),
        "test": shown.test,
    }
    table = {
        "rows": list(shown.rows)[:MOST_TABLE_ROWS],
        "cols": list(shown.columns),
        "cells": [[say_number(x) for x in row] for row in cells[:MOST_TABLE_ROWS].tolist()],
        "digits": shown.digits,
    }
    csv = ctx.routes.publish(cells, row_labels=shown.rows, column_labels=shown.columns)
    exports = {"csv": csv, "html": csv, "png": shown.png, "python": shown.python}
    return facts, table, exports
