"""Units of tokens as the chips of the kit draw them."""

from collections.abc import Sequence
from typing import Any

from explorer.tokens import TokenUnit


def make_units(
    units: Sequence[TokenUnit], weights: Sequence[float] | None = None
) -> list[dict[str, Any]]:
    """Describe units for `build_token_chips`.

    Args:
        units: The units.
        weights: One number for each token; a unit shows the sum over its tokens.
    """
    described: list[dict[str, Any]] = []
    first = 0
    for unit in units:
        chip: dict[str, Any] = {
            "t": unit.text,
            "ids": list(unit.ids),
            "hex": [token.hex(" ") for token in unit.token_bytes],
            "special": unit.special,
        }
        last = first + len(unit.ids)
        if weights is not None:
            chip["w"] = float(sum(weights[first:last]))
        first = last
        described.append(chip)
    return described


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
