"""Units of tokens as the chips of the kit draw them."""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from explorer.tokens import TokenUnit

# Units that a tab puts on the page: more of them make it slow, and nobody reads them one by one.
MOST_CHIPS = 1_000


def make_units(units: Sequence[TokenUnit]) -> list[dict[str, Any]]:
    """Describe units for `build_token_chips`.

    Args:
        units: The units.
    """
    described: list[dict[str, Any]] = []
    for unit in units:
        chip: dict[str, Any] = {"t": unit.text, "ids": list(unit.ids)}
        if unit.special:
            chip["special"] = True
        if unit.token_bytes != (unit.text.encode(),):  # else the page reads them off the text
            chip["hex"] = [token.hex(" ") for token in unit.token_bytes]
        described.append(chip)
    return described


def sum_over_units(units: Sequence[TokenUnit], weights: Sequence[float]) -> list[float]:
    """For each unit the sum over its tokens, from one weight for each token."""
    ends = list(accumulate(len(unit.ids) for unit in units))
    starts = [0, *ends[:-1]]
    # six digits: what the read-out shows
    return [round(sum(weights[a:b]), 6) for a, b in zip(starts, ends, strict=True)]


def unit_of_token(units: Sequence[TokenUnit], token: int) -> int:
    """Index of the unit that holds the token at a position; the last unit beyond the end."""
    seen = 0
    for index, unit in enumerate(units):
        seen += len(unit.ids)
        if token < seen:
            return index
    return len(units) - 1


def last_token_of(units: Sequence[TokenUnit], unit: int) -> int:
    """Position of the last token of a unit."""
    return sum(len(u.ids) for u in units[: unit + 1]) - 1
