"""Whether a fine-tuning helped: scores of a model on the part that it never saw.

    accuracy       share of texts put into their class
    exact match    share of answers that are the wanted one letter for letter, but for outer spaces
    ROUGE-L        F measure of the longest common subsequence of words (Lin 2004, section 3)
    perplexity     e to the mean loss of the wanted answers' tokens
    preferred      share of pairs whose better answer is the likelier one

Two models on the same questions are compared question by question: the interval holds 95 % of the
differences of means when the questions are drawn anew, with replacement (Efron 1979, the
bootstrap). If it has 0 in it, the test set is too small to tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from explorer.datasets.examples import Example, Prompt
from explorer.datasets.word_baseline import find_words

if TYPE_CHECKING:
    from explorer.training.learner import LoadedClassifier
    from explorer.training.tuning_config import TuningConfig
    from models.loading import LoadedModel

BATCH = 16
SPARE = 8  # tokens: pieces that meet may be cut differently, and an end token follows
BOOTSTRAP_DRAWS = 2_000
ANSWER_TOKENS = 60
Turn = Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassScores:
    """A classifier on a test part.

    Args:
        labels: The classes.
        probabilities: Of each text and class, (texts, classes).
        truth: Number of each text's class.
    """

    labels: tuple[str, ...]
    probabilities: np.ndarray
    truth: np.ndarray

    @property
    def is_right(self) -> np.ndarray:
        """Whether each text was put into its class."""
        found: np.ndarray = self.probabilities.argmax(axis=1) == self.truth
        return found

    @property
    def accuracy(self) -> float:
        """Share of them."""
        return float(self.is_right.mean())

    @property
    def loss(self) -> float:
        """Mean of -ln p of the true class, in nats."""
        p = self.probabilities[np.arange(len(self.truth)), self.truth]
        return float(-np.log(np.maximum(p, 1e-30)).mean())

    def confusion(self) -> np.ndarray:
        """Counts, (true class, chosen class)."""
        n = len(self.labels)
        found = np.zeros((n, n), dtype=np.int64)
        np.add.at(found, (self.truth, self.probabilities.argmax(axis=1)), 1)
        return found

    def at_threshold(self, label: int, threshold: float) -> tuple[float, float]:
        """Precision and recall where a text counts as `label` from this probability on.

        Args:
            label: Number of the class.
            threshold: From 0 to 1.

        Returns:
            NaN where nothing was found, or there is nothing to find.
        """
        chosen, true = self.probabilities[:, label] >= threshold, self.truth == label
        hits = int((chosen & true).sum())
        precision = hits / int(chosen.sum()) if chosen.any() else math.nan
        return precision, hits / int(true.sum()) if true.any() else math.nan

    def worst(self, n: int) -> list[int]:
        """The texts whose true class got the lowest probability, worst first."""
        p = self.probabilities[np.arange(len(self.truth)), self.truth]
        return [int(i) for i in np.argsort(p)[:n]]


def score_classes(
    classifier: LoadedClassifier,
    examples: Sequence[Example],
    *,
    limit: int,
    turn: Turn = nullcontext,
) -> ClassScores:
    """Put texts into classes.

    Args:
        classifier: Model and head.
        examples: Texts with their classes.
        limit: Tokens of a text; longer ones are cut on the right.
        turn: Entered for each pass.
    """
    import torch

    from explorer.training.objectives.classification import collate_texts, encode_text

    found = []
    for start in range(0, len(examples), BATCH):
        few = examples[start : start + BATCH]
        rows = [encode_text(classifier.tokenizer, e.text, limit, e.row).ids for e in few]
        batch = collate_texts(rows, [0] * len(rows), 0)
        with torch.no_grad(), turn():
            logits = classifier.model(batch.ids, batch.valid)
        found.append(logits.float().softmax(dim=-1).numpy())
    return ClassScores(
        labels=classifier.labels,
        probabilities=np.concatenate(found),
        truth=np.array([classifier.labels.index(e.label) for e in examples]),
    )


def weigh_tokens(
    classifier: LoadedClassifier, ids: Sequence[int], label: int, turn: Turn = nullcontext
) -> np.ndarray:
    """How much each token speaks for a class: how far its probability falls without the token.

    Args:
        classifier: Model and head.
        ids: A text of at least one token.
        label: Number of the class.
        turn: Entered for the pass.

    Returns:
        For each token p(text) - p(text without it); of a single token, p itself.
    """
    import torch

    from explorer.training.objectives.classification import collate_texts

    shorter = [[*ids[:i], *ids[i + 1 :]] for i in range(len(ids))] if len(ids) > 1 else []
    texts = [list(ids), *shorter]
    found = []
    for start in range(0, len(texts), BATCH):
        batch = collate_texts(
            texts[start : start + BATCH], [0] * len(texts[start : start + BATCH]), 0
        )
        with torch.no_grad(), turn():
            found.append(classifier.model(batch.ids, batch.valid).float().softmax(dim=-1)[:, label])
    p = torch.cat(found).numpy()
    return p[0] - p[1:] if shorter else p


@dataclass(frozen=True, kw_only=True)
class AnswerScores:
    """A model's answers to held-out questions.

    Args:
        answers: What it wrote.
        exact: Whether each is the wanted answer.
        rouge: ROUGE-L of each.
        losses: Loss of the wanted answer, in nats a token.
        n_tokens: Tokens of each wanted answer.
    """

    answers: tuple[str, ...]
    exact: tuple[bool, ...]
    rouge: tuple[float, ...]
    losses: tuple[float, ...]
    n_tokens: tuple[int, ...]

    @property
    def exact_match(self) -> float:
        """Share of exact answers."""
        return sum(self.exact) / len(self.exact)

    @property
    def perplexity(self) -> float:
        """Of the wanted answers, over all their tokens."""
        total = sum(loss * n for loss, n in zip(self.losses, self.n_tokens, strict=True))
        return math.exp(total / sum(self.n_tokens))


def answer_examples(
    loaded: LoadedModel,
    examples: Sequence[Example],
    tuning: TuningConfig,
    *,
    n_tokens: int = ANSWER_TOKENS,
    temperature: float = 0.0,
    seed: int = 0,
    turn: Turn = nullcontext,
) -> tuple[str, ...]:
    """Let a model answer questions.

    Args:
        loaded: Any model.
        examples: The questions.
        tuning: Says in which template they are asked.
        n_tokens: Longest answer.
        temperature: 0 takes the likeliest token.
        seed: Of the draws.
        turn: Entered for each pass.
    """
    from explorer.training.answer_rows import RowWriter
    from explorer.training.evaluate import write_sample

    room = min(tuning.row_limit, loaded.config.context_length)
    writer = RowWriter(loaded.tokenizer, tuning.template, loaded.chat, room)
    return tuple(
        write_sample(
            loaded.model,
            loaded.tokenizer,
            writer.write_prompt(example.prompt),
            n_tokens=n_tokens,
            temperature=temperature,
            seed=seed + i,
            special=tuning.template == "chat",
            turn=turn,
        ).strip()
        for i, example in enumerate(examples)
    )


def score_answers(
    loaded: LoadedModel,
    examples: Sequence[Example],
    tuning: TuningConfig,
    *,
    turn: Turn = nullcontext,
) -> AnswerScores:
    """Let a model answer, and say how well.

    Args:
        loaded: Any model.
        examples: Questions with the wanted answers.
        tuning: Says in which template they are asked.
        turn: Entered for each pass.
    """
    answers = answer_examples(loaded, examples, tuning, turn=turn)
    losses = measure_answers(loaded, examples, [e.answer for e in examples], tuning, turn=turn)
    wanted = [example.answer.strip() for example in examples]
    return AnswerScores(
        answers=answers,
        exact=tuple(a == w for a, w in zip(answers, wanted, strict=True)),
        rouge=tuple(compute_rouge_l(a, w) for a, w in zip(answers, wanted, strict=True)),
        losses=tuple(-total / n for total, n in losses),
        n_tokens=tuple(n for _, n in losses),
    )


def measure_answers(
    loaded: LoadedModel,
    examples: Sequence[Example],
    answers: Sequence[str],
    tuning: TuningConfig,
    *,
    turn: Turn = nullcontext,
) -> list[tuple[float, int]]:
    """Log-probability that a model gives to answers, in nats, and how many tokens they have.

    Args:
        loaded: Any model.
        examples: The questions.
        answers: An answer to each.
        tuning: Says in which template they are asked.
        turn: Entered for each pass.
    """
    import torch

    from explorer.training.answer_rows import RowWriter
    from explorer.training.objectives.objective import IGNORED
    from explorer.training.objectives.preference import score_answers as score
    from explorer.training.objectives.row_examples import collate_rows

    room = min(tuning.row_limit, loaded.config.context_length)
    writer = RowWriter(loaded.tokenizer, tuning.template, loaded.chat, room)
    rows = [writer.write_row(e.prompt, a, e.row) for e, a in zip(examples, answers, strict=True)]
    found: list[tuple[float, int]] = []
    for start in range(0, len(rows), BATCH):
        batch = collate_rows(rows[start : start + BATCH], 0)
        with torch.no_grad(), turn():
            totals, _ = score(loaded.model, batch)
        counts = (batch.targets != IGNORED).sum(dim=1)
        found += list(zip(totals.tolist(), counts.tolist(), strict=True))
    return found


def ask_for_label(
    loaded: LoadedModel,
    examples: Sequence[Example],
    tuning: TuningConfig,
    *,
    turn: Turn = nullcontext,
) -> list[str]:
    """What a model says without any training: the class whose name it finds likeliest next.

    Args:
        loaded: Any model.
        examples: Texts.
        tuning: Its classes and template; the question lists the classes.
        turn: Entered for each pass.
    """
    from explorer.training.answer_rows import RowWriter

    listed, room = " / ".join(tuning.labels), loaded.config.context_length
    tokenizer = loaded.tokenizer

    def ask(text: str) -> Prompt:
        return Prompt(instruction=f"{text}\n{listed}?")

    # The texts as the classifier reads them; what is asked around them stands in no limit of rows.
    longest = max(len(tokenizer.encode(label)) for label in tuning.labels)
    writer = RowWriter(tokenizer, tuning.template, loaded.chat, room)
    around = len(writer.encode_prompt(ask(""))) + longest
    most = max(1, min(tuning.row_limit, room - around - SPARE))
    texts = [tokenizer.decode(tokenizer.encode(e.text)[:most]) for e in examples]
    asked = [Example(row=e.row, prompt=ask(t)) for e, t in zip(examples, texts, strict=True)]
    tuning = replace(tuning, row_limit=room)
    by_label = [
        [
            total / n
            for total, n in measure_answers(loaded, asked, [label] * len(asked), tuning, turn=turn)
        ]
        for label in tuning.labels
    ]
    best = np.array(by_label).argmax(axis=0)
    return [tuning.labels[int(place)] for place in best]


def compute_rouge_l(answer: str, wanted: str) -> float:
    """ROUGE-L between two texts, from 0 to 1: F1 of the longest common subsequence of words."""
    a, b = find_words(answer), find_words(wanted)
    if not a or not b:
        return float(a == b)
    lengths = [0] * (len(b) + 1)
    for word in a:
        before = 0
        for place, other in enumerate(b, start=1):
            kept = lengths[place]
            longer = before + 1 if word == other else max(lengths[place], lengths[place - 1])
            lengths[place], before = longer, kept
    common = lengths[-1]
    return 2 * common / (len(a) + len(b))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two models on the same questions.

    Args:
        difference: Mean of the second minus mean of the first.
        low: Lower end of the interval that holds 95 % of the redrawn differences.
        high: Its upper end.
    """

    difference: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves 0 out."""
        return self.low > 0 or self.high < 0


def compare_scores(first: Sequence[float], second: Sequence[float], *, seed: int = 0) -> Comparison:
    """Compare two models question by question.

    Args:
        first: A score of each question.
        second: The other model's, in the same order.
        seed: Of the draws.
    """
    differences = np.asarray(second, dtype=np.float64) - np.asarray(first, dtype=np.float64)
    draws = np.random.default_rng(seed).integers(
        len(differences), size=(BOOTSTRAP_DRAWS, len(differences))
    )
    low, high = np.quantile(differences[draws].mean(axis=1), (0.025, 0.975))
    return Comparison(difference=float(differences.mean()), low=float(low), high=float(high))


def wilson_interval(wins: int, n: int) -> tuple[float, float]:
    """95 % interval of a share of `n` (Wilson 1927, equation 6); (0, 1) of nothing."""
    if not n:
        return 0.0, 1.0
    z, share = 1.959964, wins / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return max(0.0, centre - half), min(1.0, centre + half)
