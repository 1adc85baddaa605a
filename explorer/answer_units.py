"""An answer in units of text, each with the probability that the model gave it.

A character that is cut into several tokens is one unit. Its probability is the product over its
tokens, because the model chose them one after the other:

    P(t1 t2 t3) = P(t1) P(t2 | t1) P(t3 | t1 t2)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from explorer.conversation import AnswerToken
    from explorer.tokens import TokenUnit
    from models.tokenizers import Tokenizer


@dataclass(frozen=True)
class AnswerUnit:
    """One unit of an answer.

    Args:
        unit: Its text and tokens.
        probability: Product of the probabilities of its tokens.
        rank: The worst rank among its tokens; 1 is the model's first choice.
        alternatives: (label, probability) of what could have come instead of its first token.
    """

    unit: TokenUnit
    probability: float
    rank: int
    alternatives: tuple[tuple[str, float], ...]


def compute_answer_units(
    tokenizer: Tokenizer | None, tokens: Sequence[AnswerToken]
) -> tuple[AnswerUnit, ...]:
    """Gather the tokens of an answer into units.

    Args:
        tokenizer: The model's tokenizer; None for a server's answer.
        tokens: The answer.

    Returns:
        The units, which hold all tokens in their order.
    """
    from explorer.tokens import units_of

    # of a server, which tells texts alone, or no tokens at all
    if all(token.id < 0 for token in tokens):
        return tuple(_unit_of_text(token) for token in tokens)
    found = []
    first = 0
    assert tokenizer is not None, "tokens with ids are of a model here"
    for unit in units_of(tokenizer, [token.id for token in tokens]):
        members = tokens[first : first + len(unit.ids)]
        first += len(unit.ids)
        found.append(
            AnswerUnit(
                unit=unit,
                probability=math.prod(token.probability for token in members),
                rank=max(token.rank for token in members),
                alternatives=members[0].alternatives,
            )
        )
    return tuple(found)


def _unit_of_text(token: AnswerToken) -> AnswerUnit:
    from explorer.tokens import TokenUnit

    raw = token.text.encode("utf-8", "replace")
    unit = TokenUnit(token.text, (), (raw,), 0, special=False)
    return AnswerUnit(unit, token.probability, token.rank, token.alternatives)
