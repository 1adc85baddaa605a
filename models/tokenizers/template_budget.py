"""What a chat template may use up: each of its steps, and each text it reads or makes, has a price.

    a step of the template       100      a loop, a call, one item of a list that is looked through
    a character that it makes     10      joined, repeated, printed: it takes memory
    a character that it reads      1      compared, searched

A rendering that has spent its budget ends with an error. Prices follow the time and memory that
things really take, roughly; the budget does not look at a clock, so that the same template and the
same messages give the same result on every machine.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from operator import length_hint

from jinja2 import TemplateRuntimeError

STEP = 100
MADE_CHARACTER = 10

# Ends a rendering after about a second and some 10 MB of text. The templates of models spend less
# than a hundredth of it on a short chat, and 20 % on one of a thousand messages.
_BUDGET = 60_000_000
_BUDGET_PER_CHARACTER = 300

# What is looked through item by item. A `range` is not: its items take no memory.
_CONTAINERS = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


class Budget:
    """What one rendering can still spend.

    Args:
        n_characters: How long the messages are together: longer ones need more work.
    """

    def __init__(self, n_characters: int = 0) -> None:
        self._left = _BUDGET + _BUDGET_PER_CHARACTER * n_characters

    def spend(self, price: int) -> None:
        """Pay.

        Args:
            price: At least 0.

        Raises:
            jinja2.TemplateRuntimeError: There is not so much left.
        """
        self._left -= max(price, 0)  # 0: a price that a template could choose must not earn
        if self._left < 0:
            raise TemplateRuntimeError(
                "it loops for longer, or makes longer texts and lists, than any real template"
            )

    def touch(self, *values: object) -> None:
        """Pay for a use of values that does not look into their items.

        Args:
            *values: Any.

        Raises:
            jinja2.TemplateRuntimeError: There is not enough left.
        """
        for value in values:
            self.spend(_shallow_price(value))

    def read(self, *values: object) -> None:
        """Pay for a use of values with all that is in them.

        A list that holds another one twice pays twice: that is how often it would be printed.

        Args:
            *values: Any.

        Raises:
            jinja2.TemplateRuntimeError: There is not enough left.
        """
        pending = list(values)
        while pending:
            value = pending.pop()
            self.spend(_shallow_price(value))
            if isinstance(value, dict):
                pending += value
                pending += value.values()
            elif isinstance(value, _CONTAINERS):
                pending += value

    def make(self, value: object) -> None:
        """Pay for a new value.

        Args:
            value: Any.

        Raises:
            jinja2.TemplateRuntimeError: There is not enough left.
        """
        if isinstance(value, str):
            self.spend(MADE_CHARACTER * len(value))
        self.read(value)

    def make_product(self, *values: object, each: int = 1) -> None:
        """Pay for the length of the longest value times that of the others.

        So long can `",".join(items)`, `text.replace(old, new)` and `text * n` get, and so long can
        it take to strip characters from a text, or to search it backwards.

        Args:
            *values: Texts, containers, and numbers, which count as a length.
            each: Price of each character or item that there can be.

        Raises:
            jinja2.TemplateRuntimeError: There is not enough left.
        """
        lengths = sorted(map(_length, values))
        self.spend(each * lengths[-1] * sum(lengths[:-1]))


_CURRENT: ContextVar[Budget] = ContextVar("budget")


def current_budget() -> Budget:
    """The budget of what is being rendered or compiled in this thread.

    Raises:
        LookupError: Nothing is, which would be a mistake of ours.
    """
    return _CURRENT.get()


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Let templates inside the block spend from a budget; may be nested.

    Args:
        budget: What `current_budget` returns inside the block.
    """
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def _shallow_price(value: object) -> int:
    if isinstance(value, str):
        return STEP + len(value)
    if isinstance(value, int):
        return STEP + value.bit_length() // 8
    return STEP + STEP * length_hint(value, 0)


def _length(value: object) -> int:
    return abs(value) if isinstance(value, int) else length_hint(value, 1)
