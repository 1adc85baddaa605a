"""Parts of a data set: what is learned from, what is looked at meanwhile, and what is kept apart.

A data set that has a column `split` is divided by it. Otherwise it is shuffled with a seed and cut:
whole numbers of rows, rounded down, the rest to the part that comes last, as in *Build a Large
Language Model (From Scratch)* (Raschka 2024), sections 6.2 and 7.2. The draws are those of pandas'
`sample(random_state=seed)`, so that its numbers come out here, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from explorer.datasets.examples import PARTS, Example
from explorer.datasets.records import RowProblem
from explorer.errors import DataError

MOST_DUPLICATES = 50


@dataclass(frozen=True, kw_only=True)
class SplitConfig:
    """How a data set is divided.

    Args:
        training: Share that is learned from.
        validation: Share that is looked at meanwhile; the rest is the test part.
        seed: Of the shuffle; None keeps the order of the file.
        balance: Whether every class keeps only as many rows as the smallest.
        by_file: Whether the column `split` decides, where the file has one.
    """

    training: float = 0.7
    validation: float = 0.1
    seed: int | None = 123
    balance: bool = False
    by_file: bool = True


@dataclass(frozen=True, kw_only=True)
class Parts:
    """A data set in three.

    Args:
        training: Learned from.
        validation: Looked at meanwhile.
        test: Kept apart until the end; of few rows, those of the validation.
    """

    training: tuple[Example, ...]
    validation: tuple[Example, ...]
    test: tuple[Example, ...]

    @property
    def test_is_validation(self) -> bool:
        """Whether the same rows serve for both, so that a score on them says little."""
        return self.test == self.validation

    def items(self) -> Mapping[str, tuple[Example, ...]]:
        """Name -> examples."""
        return {name: getattr(self, name) for name in PARTS}


@dataclass(frozen=True, kw_only=True)
class Duplicate:
    """The same question in training and in a part that is kept apart.

    Args:
        row: In the part.
        training_row: The same in training.
        part: Which part.
        text: The beginning of it.
    """

    row: int
    training_row: int
    part: str
    text: str


def split_examples(
    examples: Sequence[Example], config: SplitConfig, left_out: Sequence[RowProblem] = ()
) -> Parts:
    """Divide examples.

    Args:
        examples: In the order of the file.
        config: How.
        left_out: Rows that could not be used, to be told where too few remain.

    Raises:
        DataError: Shares that are none, or a part would be empty.
    """
    if not (0 < config.training < 1 and 0 <= config.validation < 1 - config.training + 1e-9):
        raise DataError(
            f"shares of {config.training} and {config.validation} leave nothing; choose 0.7 and "
            "0.1 for training and validation",
            code="data-split-shares",
            training=config.training,
            validation=config.validation,
        )
    if config.by_file and any(example.part for example in examples):
        return _check(_by_file(examples, config), len(examples), left_out)
    chosen = balance_examples(examples, config.seed or 0) if config.balance else list(examples)
    if config.seed is not None:
        chosen = [chosen[i] for i in draw_order(len(chosen), config.seed)]
    n_training = int(len(chosen) * config.training)
    n_validation = int(len(chosen) * config.validation)
    rest = chosen[n_training:]
    return _check(
        Parts(
            training=tuple(chosen[:n_training]),
            validation=tuple(rest[:n_validation]),
            test=tuple(rest[n_validation:]),
        ),
        len(examples),
        left_out,
    )


def draw_order(n: int, seed: int, n_taken: int | None = None) -> list[int]:
    """The rows that pandas' `sample(n_taken, random_state=seed)` takes, in its order."""
    drawn = np.random.RandomState(seed).choice(
        n, size=n if n_taken is None else n_taken, replace=False
    )
    return [int(i) for i in drawn]


def balance_examples(examples: Sequence[Example], seed: int) -> list[Example]:
    """As many of each class as the smallest has; the others are drawn.

    Args:
        examples: In the order of the file.
        seed: Of the draws.
    """
    counts = Counter(example.label for example in examples)
    fewest = min(counts.values())
    kept: list[Example] = []
    for label in sorted(counts):
        of_class = [example for example in examples if example.label == label]
        full = len(of_class) > fewest
        kept += [of_class[i] for i in draw_order(len(of_class), seed, fewest)] if full else of_class
    return kept


def _by_file(examples: Sequence[Example], config: SplitConfig) -> Parts:
    parts = {name: [e for e in examples if (e.part or "training") == name] for name in PARTS}
    if not parts["validation"]:  # something must be looked at while it learns
        order = draw_order(len(parts["training"]), config.seed or 0)
        n = max(1, len(order) // 10)
        parts["validation"] = [parts["training"][i] for i in order[:n]]
        parts["training"] = [parts["training"][i] for i in sorted(order[n:])]
    if not parts["test"]:
        parts["test"] = parts["validation"]
    return Parts(**{name: tuple(entries) for name, entries in parts.items()})


def _check(parts: Parts, n_rows: int, left_out: Sequence[RowProblem]) -> Parts:
    parts = parts if parts.validation else replace(parts, validation=parts.test)
    parts = parts if parts.test else replace(parts, test=parts.validation)
    if parts.training and parts.validation:
        return parts
    found = {"rows": n_rows, "training": len(parts.training), "test": len(parts.test)}
    said = (
        f"rows that remain: {n_rows}, too few for these shares: {len(parts.training)} to learn "
        f"from and {len(parts.test)} to test with; "
    )
    remedy = "write at least 4 rows, or choose other shares"
    if not left_out:
        raise DataError(said + remedy, code="data-too-few", **found)
    first = left_out[0]
    raise DataError(
        f"{said}left out: {len(left_out)} (row {first.number}: {first}); {remedy}",
        code="data-too-few-left-out",
        left_out=len(left_out),
        row=first.number,
        problem=first,
        **found,
    )


def find_duplicates(parts: Parts) -> tuple[Duplicate, ...]:
    """Questions of the test or validation part that stand in training word for word.

    Case and spaces make no difference. A model that has learned one by heart answers it without
    having understood anything.
    """
    seen: dict[str, int] = {}
    for example in parts.training:
        seen.setdefault(example.key, example.row)
    found: dict[int, Duplicate] = {}
    for name in ("test", "validation"):
        for example in getattr(parts, name):
            if example.key in seen and example.row not in found:
                found[example.row] = Duplicate(
                    row=example.row,
                    training_row=seen[example.key],
                    part=name,
                    text=example.key[:80],
                )
    return tuple(found.values())


def count_classes(examples: Sequence[Example]) -> Mapping[str, int]:
    """Class -> how many examples, in alphabetical order."""
    counts = Counter(example.label for example in examples)
    return {label: counts[label] for label in sorted(counts)}
