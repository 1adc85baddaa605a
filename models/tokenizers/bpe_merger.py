"""The joins of byte pair encoding, one by one, with the counts of pairs kept up to date.

Plainly, every step counts all pairs again. But a join changes only pairs beside it, so here counts
are kept up to date: for each pair its count, and a heap with the best on top. An entry of the heap
whose count is out of date is put back with the right one when it comes up ("lazy").

    count of (before, left) -    (before, joined) +    (joined, after) +    (right, after) -

Rules that decide what is not obvious, all as in the trainer of `tokenizers`, whose merges are the
same: ids are special tokens, then the start symbols by code point, then the joins; of pairs with
equal counts, the one with the smaller ids goes first (left before right); in "aaa", (a, a) counts
twice. Unlike there, special tokens are cut out of the text first, and no join ever makes one.

No text is made by two different joins: between borders that no join has crossed, a text goes the
same way wherever it stands. So a pair comes into being at one step only, and has one entry.

Source: as for bpe_trainer.py; the rules are those of the BPE trainer of *tokenizers* 0.23.
"""

from __future__ import annotations

import bisect
import heapq
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class PairCount:
    """Two neighbouring tokens and how often they occur.

    Attributes:
        pair: Their texts, in bytes written as in byte_table.py.
        count: How often.
    """

    pair: Pair
    count: int


@dataclass(frozen=True, kw_only=True)
class MergeStep:
    """One join.

    Attributes:
        step: Its number, from 1.
        pair: What was joined, as texts.
        new_token: What it gave.
        new_id: Its id.
        count: How often the pair occurred.
        top_pairs: The best pairs before the join, this one first.
        n_tokens: Tokens that the text has after the join.
        bytes_per_token: Bytes of the text (UTF-8) for each of them.
    """

    step: int
    pair: Pair
    new_token: str
    new_id: int
    count: int
    top_pairs: tuple[PairCount, ...]
    n_tokens: int
    bytes_per_token: float


# Count (negative: the heap's top is its smallest), ids of the pair, words that it occurs in.
_Entry = tuple[int, int, int, set[int]]


class Merger:
    """Words as lists of ids, the counts of their pairs, and the vocabulary so far.

    Attributes:
        tokens: Text of each token, by id.
        ids: Id of each text.
        merges: The joins so far.
    """

    def __init__(
        self,
        words: Mapping[str, int],
        tokens: list[str],
        *,
        n_special: int,
        n_bytes: int,
        min_frequency: int,
    ) -> None:
        """Count the pairs of some words.

        Args:
            words: Words in symbols, and how often each occurs.
            tokens: Special tokens, then all symbols; it grows.
            n_special: How many of them are special.
            n_bytes: Bytes of the whole text.
            min_frequency: A pair that occurs less often is not joined.
        """
        self.tokens = tokens
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.merges: list[Pair] = []
        self._n_special = n_special
        self._min_frequency = min_frequency
        self._words = [[self.ids[symbol] for symbol in word] for word in words]
        self._word_counts = list(words.values())
        self._n_tokens = sum(
            len(word) * count for word, count in zip(self._words, self._word_counts, strict=True)
        )
        self._n_bytes = n_bytes
        self._pair_counts: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._heap: list[_Entry] = []
        self._count_pairs()

    def _count_pairs(self) -> None:
        where: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for i, word in enumerate(self._words):
            for pair in pairwise(word):
                self._pair_counts[pair] += self._word_counts[i]
                where[pair].add(i)
        self._push(where)

    def _push(self, where: Mapping[tuple[int, int], set[int]]) -> None:
        """Put pairs and the words that they occur in on the heap."""
        for pair, words in where.items():
            count = self._pair_counts[pair]
            if count > 0:
                heapq.heappush(self._heap, (-count, *pair, words))

    def run(self, vocab_size: int, n_top_pairs: int) -> Iterator[MergeStep]:
        """Join until the vocabulary is full or no pair is left.

        Args:
            vocab_size: Tokens wanted.
            n_top_pairs: How many of the best pairs each step reports.

        Yields:
            The steps.
        """
        step = 0
        while len(self.tokens) < vocab_size:
            top_pairs = self._list_top(n_top_pairs)
            found = self._pop_best()
            if found is None:
                return
            count, left, right, words = found
            step += 1
            pair = (self.tokens[left], self.tokens[right])
            new = self._add_token(pair)
            self._join(left, right, new, words)
            yield MergeStep(
                step=step,
                pair=pair,
                new_token=self.tokens[new],
                new_id=new,
                count=count,
                top_pairs=top_pairs,
                n_tokens=self._n_tokens,
                bytes_per_token=self._n_bytes / self._n_tokens,
            )

    def _pop_best(self) -> tuple[int, int, int, set[int]] | None:
        """Count, ids and words of the best pair, or None if none occurs often enough."""
        while self._heap:
            negative, left, right, words = heapq.heappop(self._heap)
            count = self._pair_counts[left, right]
            if count != -negative:
                heapq.heappush(self._heap, (-count, left, right, words))
            elif count < self._min_frequency:
                return None
            elif self._may_join(left, right):
                return count, left, right, words
        return None

    def _may_join(self, left: int, right: int) -> bool:
        return self.tokens[left] + self.tokens[right] not in self.tokens[: self._n_special]

    def _add_token(self, pair: Pair) -> int:
        """The id of a join's result."""
        text = pair[0] + pair[1]
        assert text not in self.ids, "no text is made by two joins"
        self.ids[text] = len(self.tokens)
        self.tokens.append(text)
        self.merges.append(pair)
        return self.ids[text]

    def _join(self, left: int, right: int, new: int, words: Iterable[int]) -> None:
        """Join a pair in some words, from left to right, and correct the counts beside it."""
        counts = self._pair_counts
        where: defaultdict[tuple[int, int], set[int]] = defaultdict(set)
        for i in words:
            word, n = self._words[i], self._word_counts[i]
            joined: list[int] = []
            start = 0
            for place in _find_pair(word, left, right):
                joined += word[start:place]
                start = place + 2
                if joined:
                    before = joined[-1]
                    counts[before, left] -= n
                    counts[before, new] += n
                    where[before, new].add(i)
                if start < len(word):
                    after = word[start]
                    counts[right, after] -= n
                    counts[new, after] += n
                    where[new, after].add(i)
                joined.append(new)
            self._words[i] = joined + word[start:]
            self._n_tokens -= n * (len(word) - len(self._words[i]))
        self._push(where)

    def _list_top(self, n: int) -> tuple[PairCount, ...]:
        """The best pairs by their true counts. The heap stays as it is."""
        if n == 0:
            return ()
        taken: list[_Entry] = []
        ranked: list[tuple[int, int, int]] = []
        while self._heap and not (len(ranked) >= n and ranked[n - 1] <= self._heap[0][:3]):
            entry = heapq.heappop(self._heap)
            taken.append(entry)
            _, left, right, _ = entry
            key = (-self._pair_counts[left, right], left, right)
            if self._may_join(left, right):
                bisect.insort(ranked, key)
        for entry in taken:
            heapq.heappush(self._heap, entry)
        return tuple(
            PairCount(pair=(self.tokens[left], self.tokens[right]), count=-negative)
            for negative, left, right in ranked[:n]
            if negative < 0
        )


def _find_pair(word: list[int], left: int, right: int) -> Iterator[int]:
    """Where a pair stands, from left to right; in "aaa", (a, a) stands at 0 only."""
    last = len(word) - 1
    place = 0
    while True:
        try:
            place = word.index(left, place, last)
        except ValueError:
            return
        if word[place + 1] == right:
            yield place
            place += 2
        else:
            place += 1
