"""What a model has read already, kept between two answers.

    read        The cat sat on the mat        cache of 6 tokens
    asked       The cat sat on a              the first 4 are the same: truncate(4), read 1

A branch of an answer, and the next turn of a conversation, begin with what was read before; the
cache (`models.KVCache`) goes on from there. Caches are large (SmolLM2-135M: 46 kB a token), so the
ones used longest ago go; an answer that finds none reads everything again, with the same result.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import ContextError

if TYPE_CHECKING:
    from models.cache import KVCache
    from models.decoder import Decoder

# 256 MB: ten conversations of 550 tokens with SmolLM2-135M.
DEFAULT_MEMORY_BYTES = 256 * 10**6
# Room beyond what one answer needs, so that the next short turn fits as well.
SPARE_TOKENS = 256


@dataclass(frozen=True)
class _Kept:
    model: weakref.ref[Decoder]  # the store alone decides how long a model stays
    ids: tuple[int, ...]
    cache: KVCache


class AnswerMemory:
    """Caches by visitor; the least recently used go first. Safe to use from any thread.

    Args:
        budget_bytes: Bytes that all kept caches together may take.
    """

    def __init__(self, budget_bytes: int = DEFAULT_MEMORY_BYTES) -> None:
        self._budget_bytes = budget_bytes
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    @property
    def used_bytes(self) -> int:
        """Bytes of the caches that are kept now."""
        with self._lock:
            return sum(kept.cache.nbytes for kept in self._kept.values())

    def take(self, key: str, model: Decoder, ids: Sequence[int], n_new: int) -> KVCache:
        """A cache that holds as much of the beginning of a prompt as was read before.

        It is not kept meanwhile: give it back with `keep`.

        Args:
            key: Whose it is.
            model: The model that reads.
            ids: The prompt.
            n_new: Tokens that will be added to it.
        """
        from models.cache import KVCache

        with self._lock:
            kept = self._kept.pop(key, None)
        needs = min(len(ids) + n_new, model.config.context_length)
        if kept is not None and kept.model() is model and kept.cache.capacity >= needs:
            shared = _shared_length(kept.ids, ids[:-1])  # one token at least is to be read
            try:
                kept.cache.truncate(shared)
            except ContextError:  # its window layers have dropped what would be seen
                kept = None
            if kept is not None and shared:
                return kept.cache
        capacity = min(needs + SPARE_TOKENS, model.config.context_length)
        return KVCache(model.config, 1, capacity, dtype=model.dtype, device=model.device)

    def keep(self, key: str, model: Decoder, ids: Sequence[int], cache: KVCache) -> None:
        """Keep a cache for the next answer.

        Args:
            key: Whose it is.
            model: The model that read.
            ids: The text; the cache may hold fewer of its tokens.
            cache: Its cache.
        """
        kept = _Kept(weakref.ref(model), tuple(ids[: int(cache.lengths[0])]), cache)
        with self._lock:
            self._kept[key] = kept
            self._kept.move_to_end(key)
            used = sum(entry.cache.nbytes for entry in self._kept.values())
            while self._kept and used > self._budget_bytes:
                _, gone = self._kept.popitem(last=False)
                used -= gone.cache.nbytes

    def forget(self, key: str) -> None:
        """Drop what is kept for a visitor; nothing kept is no error."""
        with self._lock:
            self._kept.pop(key, None)


def _shared_length(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens at the beginning are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
