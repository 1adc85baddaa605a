"""What the panels of the lab show in the same way: maps, and the drawer "Show the working"."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

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


class NextTokens(Protocol):
    """Next tokens before and after a change, as several analyses give them."""

    @property
    def tokens(self) -> tuple[str, ...]:
        """The likeliest of both."""

    @property
    def before(self) -> tuple[float, ...]:
        """Their probabilities at first."""

    @property
    def after(self) -> tuple[float, ...]:
        """Their probabilities now."""


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
    most = max(float(np.abs(np.nan_to_num(cells)).max(initial=0.0)), 1e-9)
    csv = ctx.routes.publish(
        cells,
        row_labels=shown.rows,
        column_labels=shown.columns,
        low=-most if (cells < 0).any() else 0.0,
        high=most,
    )
    exports = {"csv": csv, "html": csv, "png": shown.png, "python": shown.python}
    return facts, table, exports


def fill_next_drawer(
    ctx: AppContext,
    found: NextTokens,
    locale: str,
    *,
    function: Callable[..., Any],
    test: str,
    python: str,
    png: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """The same for next tokens before and after a change.

    Args:
        ctx: The page's context.
        found: The tokens and their probabilities.
        locale: The reader's language.
        function: What computes them.
        test: The test that checks them.
        python: A snippet that gives the same numbers.
        png: The `elem_id` of the picture.
    """
    shown = Shown(
        tensor="logits",
        cells=np.array([found.before, found.after]).T,
        rows=found.tokens,
        columns=[ctx.words.say(locale, f"attention.lab_{key}") for key in ("before", "after")],
        function=function,
        test=test,
        python=python,
        png=png,
    )
    return fill_drawer(ctx, shown)


def draw_map(
    ctx: AppContext,
    cells: NDArray[np.floating[Any]],
    rows: Sequence[str],
    title: str,
    *,
    columns: Sequence[str] | None = None,
    causal: bool = False,
    most: float = 1.0,
    signed: bool = False,
) -> dict[str, Any]:
    """Publish a map; returns the value of a heatmap.

    Args:
        ctx: The page's context.
        cells: (rows, columns).
        rows: One label a row.
        title: Above the map.
        columns: One label a column; those of the rows where None.
        causal: Whether cells after the diagonal are masked.
        most: The number that the fullest colour stands for.
        signed: Whether there are numbers below 0, drawn in another colour.
    """
    most = max(most, 1e-9)  # of a map of zeros, too
    value: dict[str, Any] = {
        "matrix": ctx.routes.publish(
            cells,
            row_labels=rows,
            column_labels=rows if columns is None else columns,
            low=-most if signed else 0.0,
            high=most,
        ),
        "rows": list(rows),
        "causal": causal,
        "title": title,
        "max": most,
        "signed": signed,
    }
    return value if columns is None else {**value, "cols": list(columns)}


def names_of_heads(shape: tuple[int, ...]) -> tuple[list[str], list[str]]:
    """Labels of layers and heads.

    Args:
        shape: (layers, heads).
    """
    return [f"L{i}" for i in range(shape[0])], [f"h{i}" for i in range(shape[1])]
