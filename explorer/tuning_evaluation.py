"""Base and tuned model on the same held-out part, as one frozen result that keeps its settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from typing import Any

from explorer.datasets.examples import Example
from explorer.datasets.word_baseline import score_baseline
from explorer.errors import ConfigError
from explorer.training.tuning_config import TuningConfig
from explorer.tuning_data import OBJECTIVE_OF
from explorer.tuning_runs import ModelSource, TuningRuns
from explorer.tuning_scores import (
    ClassScores,
    Comparison,
    Turn,
    answer_examples,
    ask_for_label,
    compare_scores,
    measure_answers,
    score_answers,
    score_classes,
)

MOST_ANSWERED = 12  # questions that are answered to see whether answers have become longer


@dataclass(frozen=True, kw_only=True, eq=False)
class Evaluation:
    """What base and tuned model scored.

    Args:
        objective: What was learned.
        step: Checkpoint of the tuned model.
        against: Name of the other model: that of another run, or empty for the base.
        against_run: Id of that run, or empty.
        n_examples: Held-out examples.
        scores: Name of a score -> base, tuned.
        baseline: Share that counting words gets right; None where it means nothing.
        comparison: The first score of both models, question by question.
        classes: Of a classification: all probabilities of the tuned model.
        examples: The examples.
        answers: What the tuned model wrote, where it wrote.
        settings: The run's own settings, and those of this evaluation.
    """

    objective: str
    step: int
    against: str
    against_run: str
    n_examples: int
    scores: Mapping[str, tuple[float, float]]
    baseline: float
    comparison: Comparison
    classes: ClassScores | None
    examples: tuple[Example, ...]
    answers: tuple[str, ...]
    settings: Mapping[str, Any]


class Evaluator:
    """Scores runs.

    Args:
        tunings: Knows the runs.
        store: Lends the models.
    """

    def __init__(self, tunings: TuningRuns, store: ModelSource) -> None:
        self._tunings = tunings
        self._store = store

    def evaluate(
        self,
        run: str,
        step: int,
        n_examples: int,
        owner: str,
        turn: Turn = nullcontext,
        *,
        against: str = "",
    ) -> Evaluation:
        """Score a checkpoint, and its base or another run, on the first held-out examples.

        Args:
            run: The run.
            step: Of the checkpoint.
            n_examples: How many at most.
            owner: Id of the visitor.
            turn: Entered for each pass.
            against: Id of another run, whose best checkpoint takes the base's place.

        Raises:
            ExplorerError: A run or a model is not there, or the two learn different things.
        """
        tuning, objective = self._tunings.tuning(run), self._tunings.objective(run)
        examples = self._tunings.examples(run)[:n_examples]
        other = self._other_source(against, objective) if against else self._tunings.base(run)
        lend = _Lender(self._store, owner, other, f"run:{run}@{step}")
        if objective == "classification":
            scores, comparison, classes = self._classes(
                run, step, examples, tuning, lend, turn, against
            )
            answers: tuple[str, ...] = ()
        elif objective == "sft":
            scores, comparison, answers = _answers(examples, tuning, lend, turn)
            classes = None
        else:
            scores, comparison = _pairs(examples, tuning, lend, turn)
            classes, answers = None, ()
        kind = next(kind for kind, name in OBJECTIVE_OF.items() if name == objective)
        training = self._tunings.examples(run, "training")
        return Evaluation(
            objective=objective,
            step=step,
            against=self._tunings.name(against) if against else "",
            against_run=against,
            n_examples=len(examples),
            scores=scores,
            baseline=score_baseline(kind, training[:3_000], examples),
            comparison=comparison,
            classes=classes,
            examples=tuple(examples),
            answers=answers,
            settings={
                "run": run,
                "step": step,
                "against": other,
                "rows": n_examples,
                **asdict(tuning),
            },
        )

    def _other_source(self, against: str, objective: str) -> str:
        """Source of the best checkpoint of another run that learned the same kind of thing."""
        if self._tunings.objective(against) != objective:
            raise ConfigError(
                "the other run learned something else, so their scores cannot be compared; choose "
                "one of the same kind",
                code="tune-other-kind",
            )
        return f"run:{against}@{self._tunings.best_step(against)}"

    def _classes(
        self,
        run: str,
        step: int,
        examples: Sequence[Example],
        tuning: TuningConfig,
        lend: _Lender,
        turn: Turn,
        against: str,
    ) -> tuple[dict[str, tuple[float, float]], Comparison, ClassScores]:
        limit, loss = tuning.row_limit, float("nan")
        with lend.base() as loaded:
            if against:
                head = self._tunings.classifier(against, self._tunings.best_step(against), loaded)
                other = score_classes(head, examples, limit=limit, turn=turn)
                before, loss = other.is_right.astype(float).tolist(), other.loss
            else:
                guesses = ask_for_label(loaded, examples, tuning, turn=turn)
                before = [float(g == e.label) for g, e in zip(guesses, examples, strict=True)]
        with lend.tuned() as loaded:
            classifier = self._tunings.classifier(run, step, loaded)
            found = score_classes(classifier, examples, limit=limit, turn=turn)
        after = found.is_right.astype(float).tolist()
        scores = {"accuracy": (sum(before) / len(before), found.accuracy)}
        scores["loss"] = (loss, found.loss)
        return scores, compare_scores(before, after), found


@dataclass(frozen=True)
class _Lender:
    """Lends the two models of a comparison."""

    store: ModelSource
    owner: str
    base_source: str
    tuned_source: str

    def base(self) -> AbstractContextManager[Any]:
        return self.store.lease(self.base_source, self.owner)

    def tuned(self) -> AbstractContextManager[Any]:
        return self.store.lease(self.tuned_source, self.owner)


def _answers(
    examples: Sequence[Example], tuning: TuningConfig, lend: _Lender, turn: Turn
) -> tuple[dict[str, tuple[float, float]], Comparison, tuple[str, ...]]:
    with lend.base() as loaded:
        before = score_answers(loaded, examples, tuning, turn=turn)
    with lend.tuned() as loaded:
        after = score_answers(loaded, examples, tuning, turn=turn)
    both = (before, after)
    exact = tuple(s.exact_match for s in both)
    rouge = tuple(sum(s.rouge) / len(s.rouge) for s in both)
    scores = {
        "exact_match": (exact[0], exact[1]),
        "rouge_l": (rouge[0], rouge[1]),
        "perplexity": (before.perplexity, after.perplexity),
    }
    first, second = ([float(x) for x in s.exact] for s in both)
    return scores, compare_scores(first, second), after.answers


def _pairs(
    examples: Sequence[Example], tuning: TuningConfig, lend: _Lender, turn: Turn
) -> tuple[dict[str, tuple[float, float]], Comparison]:
    found, lengths = [], []
    for model in (lend.base, lend.tuned):
        with model() as loaded:
            sides = [
                measure_answers(loaded, examples, answers, tuning, turn=turn)
                for answers in ([e.answer for e in examples], [e.rejected for e in examples])
            ]
            written = answer_examples(loaded, examples[:MOST_ANSWERED], tuning, turn=turn)
        found.append([(c[0], r[0]) for c, r in zip(*sides, strict=True)])
        lengths.append(sum(len(loaded.tokenizer.encode(a)) for a in written) / len(written))
    before, after = ([float(c > r) for c, r in pairs] for pairs in found)
    gained = [float(a[0] - b[0] > a[1] - b[1]) for b, a in zip(found[0], found[1], strict=True)]
    margins = [sum(c - r for c, r in pairs) / len(pairs) for pairs in found]
    scores = {
        "preferred": (sum(before) / len(before), sum(after) / len(after)),
        "gained": (float("nan"), sum(gained) / len(gained)),
        "margin": (margins[0], margins[1]),
        "length": (lengths[0], lengths[1]),
    }
    return scores, compare_scores(before, after)
