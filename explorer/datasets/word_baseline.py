"""What counting words can do: the number that a model has to beat.

    classes      naive Bayes: score(c) = ln p(c) + sum over words of ln (n(w, c) + 1) / (n(c) + V)
    preferences  the same with the words of better and worse answers as two classes
    answers      the answer of the training question that shares most words with this one

Maron 1961 ("Automatic Indexing"); add-one smoothing after Laplace. A word is a run of letters; of
Chinese, a character.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from explorer.datasets.examples import Example, Kind

_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\d_\u4e00-\u9fff]+|\d+")


def find_words(text: str) -> list[str]:
    """The words of a text, in small letters."""
    return _WORD.findall(text.casefold())


@dataclass(frozen=True)
class WordCounts:
    """How often each word occurs in each class.

    Args:
        words: Class -> word -> how often.
        texts: Class -> how many texts.
        vocabulary: How many different words there are.
    """

    words: Mapping[str, Counter[str]]
    texts: Mapping[str, int]
    vocabulary: int

    def score(self, text: str, label: str) -> float:
        """Log-probability of class and words together, up to a constant, in nats."""
        counts = self.words[label]
        total = sum(counts.values()) + self.vocabulary
        prior = math.log(self.texts[label] / sum(self.texts.values()))
        return prior + sum(math.log((counts[word] + 1) / total) for word in find_words(text))

    def choose(self, text: str) -> str:
        """The class with the highest score; the first of equals."""
        return max(self.words, key=lambda label: self.score(text, label))


def count_words(texts: Sequence[tuple[str, str]]) -> WordCounts:
    """Count the words of labelled texts.

    Args:
        texts: (label, text) of each.
    """
    words: dict[str, Counter[str]] = {}
    n_texts: Counter[str] = Counter()
    for label, text in texts:
        words.setdefault(label, Counter()).update(find_words(text))
        n_texts[label] += 1
    vocabulary = len(set().union(*words.values()))
    return WordCounts({label: words[label] for label in sorted(words)}, n_texts, vocabulary)


def score_baseline(kind: Kind, training: Sequence[Example], test: Sequence[Example]) -> float:
    """Share of the test part that counting words gets right.

    Args:
        kind: What the examples are.
        training: Counted.
        test: Scored; a draw between two answers counts half.
    """
    if kind == "classification":
        counts = count_words([(e.label, e.text) for e in training])
        return sum(counts.choose(e.text) == e.label for e in test) / len(test)
    if kind == "preference":
        return _score_pairs(training, test)
    known = [(set(find_words(e.key)), e.answer) for e in training]
    return sum(_nearest_answer(e, known) == e.answer for e in test) / len(test)


def _score_pairs(training: Sequence[Example], test: Sequence[Example]) -> float:
    counts = count_words(
        [("better", e.answer) for e in training] + [("worse", e.rejected) for e in training]
    )

    def lead(text: str) -> float:
        return counts.score(text, "better") - counts.score(text, "worse")

    leads = [lead(e.answer) - lead(e.rejected) for e in test]
    return sum(0.5 if abs(x) < 1e-9 else float(x > 0) for x in leads) / len(test)


def _nearest_answer(example: Example, known: Sequence[tuple[set[str], str]]) -> str:
    words = set(find_words(example.key))
    return max(known, key=lambda entry: len(words & entry[0]))[1]
