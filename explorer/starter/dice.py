"""`Dice`: the only source of chance of the generated world.

Every draw goes through `random.Random.random()`, the one method whose sequence Python promises to
keep for a seed across versions; `choice`, `sample` and `shuffle` carry no such promise. So a seed
gives the same text on every machine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

Item = TypeVar("Item")


class Dice:
    """Draws from a seeded sequence.

    Args:
        seed: A number or a text; the same seed gives the same draws.
    """

    def __init__(self, seed: int | str) -> None:
        self._random = random.Random(seed).random

    def below(self, limit: int) -> int:
        """A whole number from 0 to `limit` - 1."""
        return int(self._random() * limit)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both possible."""
        return low + int(self._random() * (high - low + 1))

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self._random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[int(self._random() * len(items))]

    def pick_weighted(self, items: Sequence[Item], weights: Sequence[float]) -> Item:
        """One of the items, in proportion to its weight."""
        left = self._random() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            left -= weight
            if left < 0:
                return item
        return items[-1]

    def sample(self, items: Sequence[Item], n: int) -> list[Item]:
        """`n` items at different places of the sequence, in random order."""
        pool = list(items)
        for place in range(n):
            other = place + int(self._random() * (len(pool) - place))
            pool[place], pool[other] = pool[other], pool[place]
        return pool[:n]

    def shuffled(self, items: Sequence[Item]) -> list[Item]:
        """All items in random order."""
        return self.sample(items, len(items))
