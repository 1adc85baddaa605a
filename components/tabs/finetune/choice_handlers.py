"""What the panel "choices" does: reads the questions, and lets the models choose."""

from collections.abc import Sequence
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.text import locale_of
from explorer.multiple_choice import (
    ChoiceQuestion,
    ChoiceScores,
    ChoiceSet,
    read_choice_set,
    score_choices,
)
from explorer.snippets import source_file_of
from explorer.training.tuning_config import TuningConfig
from explorer.tuning_runs import TuningRuns
from explorer.tuning_scores import compare_scores
from explorer.tuning_snippets import make_choice_snippet

GOOD, BAD = "good", "bad"


class ChoiceHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def place(self, source: str) -> tuple[Any, Any]:
        """Where questions are typed, and where a file is uploaded."""
        return gr.update(visible=source == "typed"), gr.update(visible=source == "upload")

    def show(
        self,
        run: str | None,
        model: str | None,
        owner: str | None,
        source: str,
        typed: str,
        upload: str | None,
        number: float,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`."""
        found = read_choice_set(source, typed, upload)
        questions = found.questions[: max(1, int(number))]
        visitor, locale = self._ctx.owner_of(owner, request), locale_of(request)
        models, tuning = self._models(run, model)
        scores = self._score(models, tuning, questions, visitor)
        python = make_choice_snippet(models, run, source, typed, len(questions))
        return (
            self._say(found, questions, scores, locale),
            self._matrix(found, scores, locale),
            self._table(questions, scores, locale),
            self._problems(found, locale),
            *self._drawer(questions, scores, python, locale),
        )

    def score(self, run: str, rows: str, request: gr.Request) -> dict[str, Any]:
        """Score multiple choice with base and best checkpoint of a run; no rows take the sample."""
        found = read_choice_set("typed" if rows else "sample", rows, None)
        models, tuning = self._models(run or None, None)
        visitor = self._ctx.owner_of(None, request)
        scores = self._score(models, tuning, found.questions, visitor)
        return {
            name: {"sum": s.accuracy(), "byte": s.accuracy(mean=True), "chance": found.chance}
            for name, s in scores.items()
        }

    # ------------------------------------------------------------------------------- how
    def _models(self, run: str | None, model: str | None) -> tuple[dict[str, str], TuningConfig]:
        """Sources of the models that choose: base and tuned one, or the open one alone."""
        if run is None:
            source = self._ctx.source_of(model)
            return {"base": source}, TuningConfig(base=source)
        tuning = self._tunings.tuning(run)
        tuned = self._ctx.runs.checkpoint_source(run, self._tunings.best_step(run))
        return {"base": self._tunings.base(run), "tuned": tuned}, tuning

    def _score(
        self,
        models: dict[str, str],
        tuning: TuningConfig,
        questions: Sequence[ChoiceQuestion],
        visitor: str,
    ) -> dict[str, ChoiceScores]:
        found = {}
        for name, source in models.items():
            with self._ctx.store.lease(source, visitor) as loaded:
                found[name] = score_choices(loaded, questions, tuning, turn=self._ctx.slots.turn)
        return found

    def _say(
        self,
        found: ChoiceSet,
        questions: Sequence[ChoiceQuestion],
        scores: dict[str, ChoiceScores],
        locale: str,
    ) -> str:
        say = self._ctx.words.say
        said = say(
            locale,
            "finetune.choice_said",
            name=found.name,
            n=len(questions),
            chance=f"{100 * found.chance:.1f}",
        )
        if len(scores) < 2 or len(questions) < 2:
            return said
        compared = compare_scores(scores["base"].hits(), scores["tuned"].hits())
        difference = say(
            locale,
            "finetune.choice_clear" if compared.is_clear else "finetune.choice_unclear",
            difference=f"{100 * compared.difference:+.1f}",
            low=f"{100 * compared.low:+.1f}",
            high=f"{100 * compared.high:+.1f}",
        )
        return f"{said} · {difference}"

    def _matrix(
        self, found: ChoiceSet, scores: dict[str, ChoiceScores], locale: str
    ) -> dict[str, Any]:
        say = self._ctx.words.say
        return {
            "corner": say(locale, "finetune.score.accuracy"),
            "rows": [say(locale, f"finetune.choice_{name}") for name in ("sum", "byte", "chance")],
            "cols": [say(locale, f"finetune.column_{name}") for name in scores],
            "cells": [
                [s.accuracy() for s in scores.values()],
                [s.accuracy(mean=True) for s in scores.values()],
                [found.chance] * len(scores),
            ],
        }

    def _table(
        self, questions: Sequence[ChoiceQuestion], scores: dict[str, ChoiceScores], locale: str
    ) -> dict[str, Any]:
        say = self._ctx.words.say
        rows, marks = [], {}
        for i, question in enumerate(questions):
            chosen = [question.choices[s.by_sum[i]] for s in scores.values()]
            right = question.choices[question.right]
            rows.append([str(question.row), question.question, right, *chosen])
            marks[str(i)] = {
                str(3 + place): GOOD if text == right else BAD for place, text in enumerate(chosen)
            }
        columns = ("row", "question", "wanted", *scores)
        heads = [say(locale, f"finetune.column_{name}") for name in columns]
        return {"cols": heads, "rows": rows, "marks": marks}

    def _problems(self, found: ChoiceSet, locale: str) -> dict[str, Any] | None:
        if not found.problems:
            return None
        say = self._ctx.words.say
        return {
            "cols": [say(locale, f"finetune.column_{name}") for name in ("row", "problem")],
            "rows": [
                [str(p.number), say(locale, f"finetune.problem.{p.code}", what=p.what)]
                for p in found.problems
            ],
        }

    def _drawer(
        self,
        questions: Sequence[ChoiceQuestion],
        scores: dict[str, ChoiceScores],
        python: str,
        locale: str,
    ) -> tuple[Any, Any, Any]:
        names = [f"{q.row} {choice}" for q in questions for choice in q.choices]
        cells = np.array([[x for row in s.sums for x in row] for s in scores.values()]).T
        matrix = self._ctx.routes.publish(cells, row_labels=names, column_labels=list(scores))
        facts = {
            "tensor": "logits",
            "shape": [len(names)],
            "file": source_file_of(score_choices),
            "test": "tests/explorer/test_multiple_choice.py",
        }
        table = {
            "corner": self._ctx.words.say(locale, "finetune.choice_logs"),
            "rows": names[:50],
            "cols": [self._ctx.words.say(locale, f"finetune.column_{name}") for name in scores],
            "cells": cells[:50].tolist(),
        }
        return facts, table, {"csv": matrix, "png": None, "python": python}
