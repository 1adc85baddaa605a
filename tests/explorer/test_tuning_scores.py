"""Scores of fine-tuning against counts written out here."""

import math

import numpy as np
import pytest

from explorer.tuning_scores import (
    ClassScores,
    compare_scores,
    compute_rouge_l,
    wilson_interval,
)


def longest_common(a: list[str], b: list[str]) -> int:
    if not a or not b:
        return 0
    if a[0] == b[0]:
        return 1 + longest_common(a[1:], b[1:])
    return max(longest_common(a[1:], b), longest_common(a, b[1:]))


def test_rouge_l_is_the_longest_common_subsequence() -> None:
    draws = np.random.default_rng(5)
    words = np.array(["a", "b", "c", "d"])
    for _ in range(40):
        a, b = (draws.choice(words, size=n).tolist() for n in draws.integers(1, 8, size=2))
        wanted = 2 * longest_common(a, b) / (len(a) + len(b))
        assert compute_rouge_l(" ".join(a), " ".join(b)) == pytest.approx(wanted)
    assert compute_rouge_l("小红在公园里", "小红在学校里") == pytest.approx(2 * 4 / 12)
    assert compute_rouge_l("", "a") == 0.0


def test_confusion_threshold_and_worst() -> None:
    p = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8], [0.55, 0.45]])
    scores = ClassScores(labels=("ham", "spam"), probabilities=p, truth=np.array([0, 0, 1, 1, 1]))
    assert scores.confusion().tolist() == [[1, 1], [1, 2]]
    assert scores.accuracy == pytest.approx(3 / 5)
    assert scores.loss == pytest.approx(-np.log([0.9, 0.4, 0.7, 0.8, 0.45]).mean())
    assert scores.at_threshold(1, 0.65) == (1.0, pytest.approx(2 / 3))
    assert scores.at_threshold(1, 0.4) == (pytest.approx(3 / 4), 1.0)
    precision, recall = scores.at_threshold(1, 0.95)
    assert math.isnan(precision)
    assert recall == 0.0
    assert scores.worst(2) == [1, 4]


def test_the_interval_of_a_difference() -> None:
    same = compare_scores([0, 1, 1, 0], [0, 1, 1, 0])
    assert (same.difference, same.low, same.high, same.is_clear) == (0, 0, 0, False)
    draws = np.random.default_rng(1)
    before = draws.integers(0, 2, 400).astype(float)
    after = np.where(draws.random(400) < 0.4, 1.0, before)
    found = compare_scores(before.tolist(), after.tolist())
    difference = after - before
    standard_error = difference.std() / 20
    assert found.difference == pytest.approx(difference.mean())
    assert found.low == pytest.approx(difference.mean() - 1.96 * standard_error, abs=0.01)
    assert found.high == pytest.approx(difference.mean() + 1.96 * standard_error, abs=0.01)
    assert found.is_clear


def test_the_interval_of_a_share() -> None:
    # both ends solve (p - share)^2 = z^2 p (1 - p) / n, which defines the interval
    for wins, n in ((7, 10), (0, 4), (50, 50), (18, 37)):
        for end in wilson_interval(wins, n):
            side = (end - wins / n) ** 2
            assert side == pytest.approx(1.959964**2 * end * (1 - end) / n, abs=1e-9)
    assert wilson_interval(0, 0) == (0.0, 1.0)
