"""Finds what a generated text has copied word for word from the training text, and from where.

A copy of at least n characters holds, wherever it begins, one whole block of w = (n + 1) // 2
characters whose start in the training text is a multiple of w (two blocks less one character are
n). So only those blocks are kept, as hashes; the sample is looked up at every place, and what is
found is compared character by character and extended both ways:

    training   |It had all be|en quite simpl|e, she said. T|           blocks of w
    sample       "... had all been quite simple, and ..."
                       └──────┤en quite simpl├──┘                      found, then extended

Nothing is missed and nothing is found by chance. For a text of 20 million characters the index
takes some 100 MB beside the text and two seconds; a sample of 1,000 characters then takes less than
a second, and a few where both hold blocks that the text repeats thousands of times.

Source: blocks and looking up at every place as in *The rsync algorithm* (1996), section 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from explorer.errors import ConfigError, DataError

MAX_CHARACTERS = 20_000_000
_FEWEST_CHARACTERS = 8  # shorter ones are in every text
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no character is multiplied away


@dataclass(frozen=True, kw_only=True)
class CopiedSpan:
    """A part of a sample that stands in the training text.

    Attributes:
        start: Its first character in the sample.
        end: The character after its last.
        text_start: Where it stands in the training text, in characters.
        line: The line there, from 1.
    """

    start: int
    end: int
    text_start: int
    line: int


@dataclass(frozen=True)
class _Match:
    start: int
    end: int
    text_start: int


class VerbatimIndex:
    """The blocks of one training text; built once, read by several threads.

    Args:
        text: The training text.
        min_chars: The shortest copy to find.

    Raises:
        DataError: The text has more than 20 million characters.
        ConfigError: `min_chars` is below 8.
    """

    def __init__(self, text: str, *, min_chars: int = 30) -> None:
        if len(text) > MAX_CHARACTERS:
            raise DataError(
                f"copies are looked for in {MAX_CHARACTERS:,} characters at most, and the text has "
                f"{len(text):,}; give a part of it",
                code="verbatim-text-long",
                found=len(text),
                limit=MAX_CHARACTERS,
            )
        if min_chars < _FEWEST_CHARACTERS:
            raise ConfigError(
                f"min_chars={min_chars} finds copies everywhere; choose {_FEWEST_CHARACTERS} or "
                f"more",
                code="verbatim-chars-low",
                value=min_chars,
                lowest=_FEWEST_CHARACTERS,
            )
        self.text = text
        self.min_chars = min_chars
        self._block = (min_chars + 1) // 2
        self._codes = _to_codes(text)
        n_blocks = len(text) // self._block
        hashes = _hash_blocks(self._codes, self._block, self._block, n_blocks)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._starts = order * self._block

    def find_matches(self, sample: str) -> set[_Match]:
        """All copies that cannot be extended, several of them where they overlap."""
        codes = _to_codes(sample)
        n_places = max(0, len(codes) - self._block + 1)
        hashes = _hash_blocks(codes, self._block, 1, n_places)
        first = np.searchsorted(self._hashes, hashes, "left")
        last = np.searchsorted(self._hashes, hashes, "right")
        found: set[_Match] = set()
        for place in np.flatnonzero(last > first):
            found.update(self._extend(codes, int(place), self._starts[first[place] : last[place]]))
        return found

    def _extend(self, sample: np.ndarray, place: int, starts: np.ndarray) -> Iterator[_Match]:
        """The copies that run through a place of the sample and these places of the text."""
        after = self._count_equal(sample, place, starts, 1)
        before = self._count_equal(sample, place - 1, starts - 1, -1)
        long_enough = np.flatnonzero(before + after >= self.min_chars)
        # Of those that begin alike the longest; of these the first of the text.
        order = np.lexsort((starts[long_enough], -after[long_enough], before[long_enough]))
        chosen = long_enough[order]
        begins = np.flatnonzero(np.diff(before[chosen], prepend=-1))
        for i in chosen[begins]:
            yield _Match(place - int(before[i]), place + int(after[i]), int(starts[i] - before[i]))

    def _count_equal(
        self, sample: np.ndarray, place: int, starts: np.ndarray, step: int
    ) -> np.ndarray:
        """How many characters agree, walking from a place of the sample and some of the text."""
        counts = np.zeros(len(starts), np.int64)
        alive = np.arange(len(starts))
        while alive.size and 0 <= place < len(sample):
            at = starts[alive] + step * counts[alive]
            alive = alive[(at >= 0) & (at < len(self._codes))]
            at = starts[alive] + step * counts[alive]
            alive = alive[self._codes[at] == sample[place]]
            counts[alive] += 1
            place += step
        return counts


def find_copied_spans(sample: str, index: VerbatimIndex) -> tuple[CopiedSpan, ...]:
    """Find what a sample has copied.

    Args:
        sample: A generated text.
        index: The training text.

    Returns:
        Spans from left to right that do not overlap. Together they are all characters that belong
        to a copy of at least `index.min_chars`. Where copies from different places overlap, each
        goes on from the end of the one before, and may be shorter than that by itself.
    """
    spans: list[CopiedSpan] = []
    end = 0
    for match in _choose_cover(index.find_matches(sample)):
        start = max(match.start, end)
        end = match.end
        text_start = match.text_start + start - match.start
        line = index.text.count("\n", 0, text_start) + 1
        spans.append(CopiedSpan(start=start, end=end, text_start=text_start, line=line))
    return tuple(spans)


def _choose_cover(matches: set[_Match]) -> Iterator[_Match]:
    """Few matches that cover all: each time the one that reaches furthest."""
    end = 0
    waiting = sorted(matches, key=lambda match: (match.start, match.text_start))
    while waiting:
        reach = max(end, waiting[0].start)
        best = max((m for m in waiting if m.start <= reach), key=lambda match: match.end)
        yield best
        end = best.end
        waiting = [match for match in waiting if match.end > end]


def _to_codes(text: str) -> np.ndarray:
    """The characters as numbers, 4 bytes each."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _hash_blocks(codes: np.ndarray, block: int, stride: int, n: int) -> np.ndarray:
    """Hashes of n blocks that begin every `stride` characters."""
    hashes = np.zeros(n, np.uint64)
    for i in range(block):
        column = codes[i : i + (n - 1) * stride + 1 : stride] if n else codes[:0]
        hashes = hashes * _FACTOR + column  # modulo 2^64
    return hashes
