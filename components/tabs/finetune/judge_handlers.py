"""What the panel "judge" does: lets both models answer, and a third one grade."""

from collections.abc import Iterator, Sequence
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.server_fields import open_server
from components.tabs.finetune.evaluate_handlers import shown
from components.text import locale_of
from explorer.errors import JobError
from explorer.judge import (
    RUBRIC,
    JudgedAnswer,
    JudgeScores,
    Verdict,
    Who,
    ask_judge,
    pair_scores,
    sum_up,
    write_question,
)
from explorer.openai_server import OpenAIServer
from explorer.snippets import source_file_of
from explorer.tuning_runs import TuningRuns
from explorer.tuning_scores import compare_scores
from explorer.tuning_snippets import make_judge_snippet

MOST_JUDGED = 50
MODELS: tuple[Who, ...] = ("base", "tuned")
GOOD, BAD = "good", "bad"


class JudgeHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def find(self, url: str | None, key: str) -> Any:
        """List the models of a server."""
        names = open_server(self._ctx, url, key).models()
        return gr.Dropdown(list(names), value=names[0] if names else None)

    def stop(self, request: gr.Request) -> None:
        """Ask for no further grade."""
        self._ctx.stops.stop(_work_id(request))

    def show(
        self,
        run: str | None,
        owner: str | None,
        url: str | None,
        key: str,
        model: str | None,
        rubric: str,
        number: float,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """Values for `Parts.outputs`, anew after each grade."""
        if run is None:
            raise JobError("there is no run yet; train one first", code="tune-no-run")
        server, locale = open_server(self._ctx, url, key), locale_of(request)
        visitor = self._ctx.owner_of(owner, request)
        yield (self._ctx.words.say(locale, "finetune.judge_answering"), *[gr.skip()] * 5)
        asked = self._answer(run, int(number), rubric, visitor)
        verdicts: list[Verdict] = []
        with self._ctx.stops.armed(_work_id(request)) as switch:
            for verdict in ask_judge(server, model or "", rubric, asked, stopped=switch.is_set):
                verdicts.append(verdict)
                yield self._describe(verdicts, asked, run, server, model or "", rubric, locale)

    def judge(
        self,
        run: str,
        url: str,
        model: str,
        questions: int,
        request: gr.Request,
        key: str = "",
        rubric: str = RUBRIC,
    ) -> dict[str, Any]:
        """Let a model on a server grade the answers of base and tuned model, 0 to 100."""
        asked = self._answer(run, questions, rubric, self._ctx.owner_of(None, request))
        verdicts = list(ask_judge(open_server(self._ctx, url, key), model, rubric, asked))
        return {
            who: {"mean": s.mean, "asked": s.n_asked, "failed": s.n_failed}
            for who in MODELS
            for s in (sum_up(verdicts, who),)
        }

    # ------------------------------------------------------------------------------- how
    def _answer(self, run: str, number: int, rubric: str, visitor: str) -> list[JudgedAnswer]:
        """The questions with the answers of both models, those of one question together."""
        examples = self._tunings.examples(run)[: min(max(number, 1), MOST_JUDGED)]
        probe = JudgedAnswer(row=0, question="", wanted="", answer="", who="base")
        write_question(rubric, probe)  # a rubric that cannot be used is told before minutes pass
        step = self._tunings.best_step(run)
        both = self._tunings.answer_both(run, step, examples, visitor, self._ctx.slots.turn)
        return [
            JudgedAnswer(
                row=e.row, question=e.prompt.joined, wanted=e.answer, answer=answer, who=who
            )
            for e, *answers in zip(examples, *both, strict=True)
            for who, answer in zip(MODELS, answers, strict=True)
        ]

    def _describe(
        self,
        verdicts: Sequence[Verdict],
        asked: Sequence[JudgedAnswer],
        run: str,
        server: OpenAIServer,
        model: str,
        rubric: str,
        locale: str,
    ) -> tuple[Any, ...]:
        scores = {who: sum_up(verdicts, who) for who in MODELS}
        step, n_questions = self._tunings.best_step(run), len(asked) // len(MODELS)
        python = make_judge_snippet(run, step, n_questions, server.url, model, rubric)
        kept = {"run": run, "server": server.url, "model": model, "temperature": "0", "seed": "0"}
        return (
            self._say(verdicts, len(asked), model, locale),
            self._matrix(scores, locale),
            self._table(verdicts, locale),
            *self._drawer(verdicts, python, kept, locale),
        )

    def _say(self, verdicts: Sequence[Verdict], n: int, model: str, locale: str) -> str:
        say, done = self._ctx.words.say, len(verdicts)
        failed = sum(verdict.score is None for verdict in verdicts)
        said = say(locale, "finetune.judge_done", model=model, done=done, all=n, failed=failed)
        both = pair_scores(verdicts)
        if len(both[0]) < 2:
            return said
        compared = compare_scores(*both)
        difference = say(
            locale,
            "finetune.judge_clear" if compared.is_clear else "finetune.judge_unclear",
            difference=f"{compared.difference:+.1f}",
            low=f"{compared.low:+.1f}",
            high=f"{compared.high:+.1f}",
        )
        return f"{said} · {difference}"

    def _matrix(self, scores: dict[Who, JudgeScores], locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        names = ("mean", "asked", "failed")
        cells = [
            ["–" if s.mean is None else f"{s.mean:.1f}" for s in scores.values()],
            [str(s.n_asked) for s in scores.values()],
            [str(s.n_failed) for s in scores.values()],
        ]
        return {
            "corner": say(locale, "finetune.judge_corner"),
            "rows": [say(locale, f"finetune.judge.{name}") for name in names],
            "cols": [say(locale, f"finetune.column_{who}") for who in MODELS],
            "cells": cells,
        }

    def _table(self, verdicts: Sequence[Verdict], locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        columns = ("row", "question", "model", "answer", "grade", "reply")
        rows = [
            [
                str(v.asked.row),
                v.asked.question,
                say(locale, f"finetune.column_{v.asked.who}"),
                v.asked.answer or "∅",
                say(locale, "finetune.judge_none") if v.score is None else f"{v.score:g}",
                v.reply or "∅",
            ]
            for v in verdicts
        ]
        marks = {str(i): {"4": BAD} for i, v in enumerate(verdicts) if v.score is None}
        heads = [say(locale, f"finetune.column_{name}") for name in columns]
        return {"cols": heads, "rows": rows, "marks": marks}

    def _drawer(
        self, verdicts: Sequence[Verdict], python: str, kept: dict[str, str], locale: str
    ) -> tuple[Any, Any, Any]:
        names = [f"{v.asked.row} {v.asked.who}" for v in verdicts]
        grades = [float("nan") if v.score is None else v.score for v in verdicts]
        cells = np.array(grades, dtype=np.float64)[:, None]
        matrix = self._ctx.routes.publish(cells, row_labels=names, column_labels=["grade"])
        facts = {
            "tensor": "grades",
            "shape": [len(verdicts)],
            "file": source_file_of(ask_judge),
            "test": "tests/explorer/test_judge.py",
        }
        table = {
            "corner": self._ctx.words.say(locale, "finetune.settings"),
            "rows": [*kept, *names],
            "cols": [""],
            "cells": [*[[value] for value in kept.values()], *[[shown(x)] for x in grades]],
        }
        return facts, table, {"csv": matrix, "png": None, "python": python}


def _work_id(request: gr.Request) -> str:
    return f"judge-{request.session_hash}"
