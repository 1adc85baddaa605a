"""What the panel "evaluate" does: scores base and tuned model, and shows where they fail."""

import math
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.text import locale_of
from explorer.errors import JobError
from explorer.snippets import source_file_of
from explorer.tuning_evaluation import Evaluation, Evaluator
from explorer.tuning_runs import TuningRuns
from explorer.tuning_scores import ClassScores, compare_scores
from explorer.tuning_snippets import make_score_snippet

MOST_TESTED = 1_000
MOST_WORST = 12


class EvaluateHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings
        self._evaluator = Evaluator(tunings, ctx.store)

    def offer(self, run: str | None, owner: str | None, request: gr.Request) -> Any:
        """What the run may be compared with: its base, and runs that learned the same kind."""
        base = (self._ctx.words.say(locale_of(request), "finetune.against_base"), "")
        if run is None:
            return gr.update(choices=[base], value="")
        kind, visitor = self._tunings.objective(run), self._ctx.owner_of(owner, request)
        others = [
            (f"{s.name} · {s.id[:6]}", s.id)
            for s in self._tunings.list(visitor)
            if s.id != run and s.objective == kind and s.checkpoints
        ]
        return gr.update(choices=[base, *others], value="")

    def show(
        self,
        run: str | None,
        number: float,
        against: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`."""
        if run is None:
            raise JobError("there is no run yet; train one first", code="tune-no-run")
        visitor, locale = self._ctx.owner_of(owner, request), locale_of(request)
        found = self._evaluate(run, int(number), visitor, against or "")
        classes = found.classes
        return (
            self._say_result(found, locale),
            self._scores(found, locale),
            None if classes is None else self._confusion(classes, locale),
            "" if classes is None else self._say_cut(classes, 0.5, locale),
            self._worst(found, locale),
            gr.update(visible=classes is not None, value=0.5),
            classes,
            *self._drawer(found, locale),
        )

    def cut(self, classes: ClassScores | None, threshold: float, request: gr.Request) -> str:
        """Precision and recall where a text counts as the last class from this probability on."""
        return "" if classes is None else self._say_cut(classes, threshold, locale_of(request))

    def evaluate(
        self, run: str, rows: int, request: gr.Request, against: str = ""
    ) -> dict[str, Any]:
        """Score a run's best checkpoint and its base, or another run, on its held-out part."""
        found = self._evaluate(run, rows, self._ctx.owner_of(None, request), against)
        return {
            "scores": {
                name: [x if math.isfinite(x) else None for x in both]
                for name, both in found.scores.items()
            },
            "baseline": found.baseline,
            "difference": found.comparison.difference,
            "interval": [found.comparison.low, found.comparison.high],
            "settings": dict(found.settings),
        }

    # ------------------------------------------------------------------------------- in words
    def _evaluate(self, run: str, number: int, visitor: str, against: str) -> Evaluation:
        step = self._tunings.best_step(run)
        number = min(max(number, 1), MOST_TESTED)
        return self._evaluator.evaluate(
            run, step, number, visitor, self._ctx.slots.turn, against=against
        )

    def _say_result(self, found: Evaluation, locale: str) -> str:
        compared = found.comparison
        return self._ctx.words.say(
            locale,
            "finetune.result_clear" if compared.is_clear else "finetune.result_unclear",
            n=found.n_examples,
            step=found.step,
            difference=f"{100 * compared.difference:+.1f}",
            low=f"{100 * compared.low:+.1f}",
            high=f"{100 * compared.high:+.1f}",
        )

    def _scores(self, found: Evaluation, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        rows = [say(locale, f"finetune.score.{name}") for name in found.scores]
        cells = [[shown(x) for x in both] for both in found.scores.values()]
        rows.append(say(locale, "finetune.score.baseline"))
        cells.append(["-", shown(found.baseline)])
        return {
            "corner": say(locale, "finetune.column_score"),
            "rows": rows,
            "cols": [
                found.against or say(locale, "finetune.column_base"),
                say(locale, "finetune.column_tuned"),
            ],
            "cells": cells,
        }

    def _confusion(self, classes: ClassScores, locale: str) -> dict[str, Any]:
        counts = classes.confusion()
        say = self._ctx.words.say
        return {
            "corner": say(locale, "finetune.confusion"),
            "rows": list(classes.labels),
            "cols": list(classes.labels),
            "cells": counts.astype(float).tolist(),
            "digits": 0,
            "shade": float(counts.max()),
        }

    def _say_cut(self, classes: ClassScores, threshold: float, locale: str) -> str:
        label = len(classes.labels) - 1
        precision, recall = classes.at_threshold(label, threshold)
        return self._ctx.words.say(
            locale,
            "finetune.cut",
            label=classes.labels[label],
            threshold=f"{threshold:.2f}",
            precision=shown(precision),
            recall=shown(recall),
        )

    def _worst(self, found: Evaluation, locale: str) -> dict[str, Any] | None:
        say = self._ctx.words.say
        if found.classes is not None:
            classes = found.classes
            columns = ("row", "truth", "chance", "text")
            rows = [
                [
                    str(found.examples[i].row),
                    found.examples[i].label,
                    f"{100 * classes.probabilities[i, classes.truth[i]]:.1f} %",
                    found.examples[i].text,
                ]
                for i in classes.worst(MOST_WORST)
            ]
        elif found.answers:
            columns = ("row", "question", "wanted", "tuned")
            wrong = [
                [str(e.row), e.prompt.input or e.prompt.instruction, e.answer, answer]
                for e, answer in zip(found.examples, found.answers, strict=True)
                if answer != e.answer.strip()
            ]
            rows = wrong[:MOST_WORST]
        else:
            return None
        heads = [say(locale, f"finetune.column_{name}") for name in columns]
        return {"cols": heads, "rows": rows}

    def _drawer(self, found: Evaluation, locale: str) -> tuple[Any, Any, Any]:
        names = list(found.scores)
        cells = np.array([list(both) for both in found.scores.values()], dtype=np.float64)
        matrix = self._ctx.routes.publish(cells, row_labels=names, column_labels=["base", "tuned"])
        facts = {
            "tensor": "class_logits" if found.classes is not None else "logits",
            "shape": [found.n_examples],
            "file": source_file_of(compare_scores),
            "test": "tests/explorer/test_tuning_scores.py",
        }
        kept = [[name, str(value)] for name, value in found.settings.items()]
        table = {
            "corner": self._ctx.words.say(locale, "finetune.settings"),
            "rows": [name for name, _ in kept],
            "cols": [""],
            "cells": [[value] for _, value in kept],
        }
        python = make_score_snippet(
            str(found.settings["run"]), found.step, found.n_examples, found.against_run
        )
        return facts, table, {"csv": matrix, "png": None, "python": python}


def shown(value: float) -> str:
    """A score as text; what cannot be computed is a dash."""
    return f"{value:.4f}" if math.isfinite(value) else "–"
