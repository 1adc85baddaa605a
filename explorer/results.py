"""Results kept on the server for a while, so that a page can ask for more of one.

The attention of a text is megabytes; the page gets what it shows and an id, and asks for the next
head by that id. An id cannot be guessed, so whoever has it was given it. The results used longest
ago go when the memory for them is full: a page that comes back then computes again.
"""

import dataclasses
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping

import numpy as np

from explorer.errors import BudgetError
from explorer.memory import say_bytes

# Room for the queries and keys of five texts of 512 tokens of SmolLM2-135M: 30 layers of 9 query
# and 3 key heads, 64 float32 numbers each, 47 MB a text.
DEFAULT_RESULT_BYTES = 256 * 10**6


def count_bytes(value: object) -> int:
    """Bytes of the arrays, texts and numbers in a result: dataclasses, mappings and sequences too.

    Numbers count as 8 bytes; the few bytes of the containers themselves are left out.
    """
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (bytes, bytearray, str)):
        return len(value)
    if isinstance(value, Mapping):
        return sum(count_bytes(key) + count_bytes(item) for key, item in value.items())
    if isinstance(value, (tuple, list, set, frozenset)):
        return sum(count_bytes(item) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return sum(count_bytes(getattr(value, field.name)) for field in fields)
    return 8


class ResultStore:
    """Results by unguessable id; the least recently used go first. Safe to use from any thread.

    Args:
        budget_bytes: Bytes that all kept results together may take.
    """

    def __init__(self, budget_bytes: int = DEFAULT_RESULT_BYTES) -> None:
        self.budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, tuple[object, int]] = OrderedDict()
        self._used_bytes = 0

    @property
    def used_bytes(self) -> int:
        """Bytes of the results that are kept now."""
        return self._used_bytes

    def put(self, result: object) -> str:
        """Keep a result and return its id.

        Args:
            result: What to keep; it is neither copied nor changed.

        Raises:
            BudgetError: The result alone is larger than the budget.
        """
        n_bytes = count_bytes(result)
        if n_bytes > self.budget_bytes:
            raise BudgetError(
                f"this result takes {say_bytes(n_bytes)}, and all results may take at most "
                f"{say_bytes(self.budget_bytes)} in total; use a shorter text",
                code="result-too-large",
                needs=say_bytes(n_bytes),
                budget=say_bytes(self.budget_bytes),
            )
        result_id = secrets.token_urlsafe(16)
        with self._lock:
            self._kept[result_id] = (result, n_bytes)
            self._used_bytes += n_bytes
            while self._used_bytes > self.budget_bytes:
                _oldest, (_result, freed) = self._kept.popitem(last=False)
                self._used_bytes -= freed
        return result_id

    def get(self, result_id: str) -> object | None:
        """The result with this id, or None when it was never kept or had to go."""
        with self._lock:
            if result_id not in self._kept:
                return None
            self._kept.move_to_end(result_id)
            return self._kept[result_id][0]

    def remove(self, result_id: str) -> None:
        """Forget a result; one that is not kept is no error."""
        with self._lock:
            _result, freed = self._kept.pop(result_id, (None, 0))
            self._used_bytes -= freed
