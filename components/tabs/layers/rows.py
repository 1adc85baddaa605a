"""The value of a lens grid: text that grows, a line of JSON for the head and one for each row."""

import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def join_lines(head: str, lines: Sequence[str]) -> str:
    """The whole value."""
    return "\n".join([head, *lines])


def write_head(columns: Sequence[str], corner: str, *, n_rows: int, at: int) -> str:
    """First line.

    Args:
        columns: Headings.
        corner: Heading of the row names.
        n_rows: Rows that there will be.
        at: The column that is looked at.
    """
    head = {"cols": list(columns), "corner": corner, "stages": n_rows, "at": at}
    return json.dumps(head, ensure_ascii=False)


def write_row(
    name: str,
    tokens: Sequence[str],
    probabilities: NDArray[np.float32],
    ranks: NDArray[np.int64],
    entropies_nats: NDArray[np.float32],
) -> str:
    """One row.

    Args:
        name: Its heading.
        tokens: The likeliest of each cell.
        probabilities: Theirs.
        ranks: Places of the followed token; 0 is first.
        entropies_nats: Of each cell.
    """
    line = {
        "s": name,
        "t": list(tokens),
        "p": [round(float(p), 4) for p in probabilities],
        "r": (ranks + 1).tolist(),
        "e": [round(float(e), 3) for e in entropies_nats],
    }
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))
