"""What the panel "answers" does: asks the base and a checkpoint the same."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from components.context import AppContext
from components.kit.views import update_view
from components.tabs.finetune.steps import chosen_step, list_steps
from components.text import locale_of
from components.token_units import make_units, sum_over_units
from explorer.datasets.examples import Example, Prompt
from explorer.errors import ConfigError
from explorer.tokens import units_of
from explorer.tuning_runs import TuningRuns
from explorer.tuning_scores import (
    ask_for_label,
    score_classes,
    weigh_tokens,
)

MOST_ROWS = 30
GOOD, BAD = "good", "bad"


class AnswerHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def list_steps(self, run: str | None, request: gr.Request) -> tuple[Any, str]:
        """The checkpoints there are, the best of them chosen."""
        return list_steps(self._ctx, self._tunings, run, request)

    def ask(
        self,
        run: str | None,
        step: int | None,
        number: float,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """The first held-out questions, answered by both."""
        run, step = chosen_step(self._tunings, run, step)
        examples = self._tunings.examples(run)[: min(int(number), MOST_ROWS)]
        visitor = self._ctx.owner_of(owner, request)
        if self._tunings.objective(run) == "classification":
            return self._classes(run, step, examples, visitor, locale_of(request))
        return self._answers(run, step, examples, visitor, locale_of(request))

    def ask_own(
        self, run: str | None, step: int | None, text: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """One's own text: its class with what speaks for it, or both answers."""
        run, step = chosen_step(self._tunings, run, step)
        if not text.strip():
            raise ConfigError("there is no text; type one", code="text-empty")
        visitor, locale = self._ctx.owner_of(owner, request), locale_of(request)
        if self._tunings.objective(run) == "classification":
            return self._classify_own(run, step, text, visitor, locale)
        example = Example(row=0, prompt=Prompt(instruction=text))
        said, table = self._answers(run, step, (example,), visitor, locale)
        return said, gr.update(visible=False), None, None, table

    # -------------------------------------------------------------------------- for programs
    def classify(self, run: str, step: int, text: str, request: gr.Request) -> dict[str, float]:
        """Put a text into a class with a checkpoint of a classification."""
        visitor = self._ctx.owner_of(None, request)
        source = self._ctx.runs.checkpoint_source(run, step)
        with self._ctx.store.lease(source, visitor) as loaded:
            found = self._tunings.classifier(run, step, loaded)
            example = Example(row=0, text=text, label=found.labels[0])
            scores = score_classes(
                found,
                [example],
                limit=self._tunings.tuning(run).row_limit,
                turn=self._ctx.slots.turn,
            )
        return dict(zip(found.labels, scores.probabilities[0].tolist(), strict=True))

    def answer(self, run: str, step: int, text: str, request: gr.Request) -> dict[str, str]:
        """Ask the base and a checkpoint the same question."""
        example = Example(row=0, prompt=Prompt(instruction=text))
        visitor = self._ctx.owner_of(None, request)
        base, tuned = self._answer_both(run, step, (example,), visitor)
        return {"base": base[0], "tuned": tuned[0]}

    # ------------------------------------------------------------------------------- how
    def _answer_both(
        self, run: str, step: int, examples: Sequence[Example], visitor: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self._tunings.answer_both(run, step, examples, visitor, self._ctx.slots.turn)

    def _answers(
        self, run: str, step: int, examples: Sequence[Example], visitor: str, locale: str
    ) -> tuple[str, dict[str, Any]]:
        base, tuned = self._answer_both(run, step, examples, visitor)
        say = self._ctx.words.say
        wanted = [example.answer for example in examples]
        marks = {
            str(i): {str(3 + place): GOOD if answer == want.strip() else BAD}
            for i, want in enumerate(wanted)
            for place, answer in ((1, tuned[i]),)
            if want
        }
        for i, want in enumerate(wanted):
            if want:
                marks[str(i)]["3"] = GOOD if base[i] == want.strip() else BAD
        columns = ("row", "question", "wanted", "base", "tuned")
        rows = [
            [str(e.row or "-"), e.prompt.joined, e.answer or "-", base[i], tuned[i]]
            for i, e in enumerate(examples)
        ]
        said = say(locale, "finetune.answers_said", step=step)
        table = {
            "cols": [say(locale, f"finetune.column_{name}") for name in columns],
            "rows": rows,
            "marks": marks,
        }
        return said, table

    def _classes(
        self, run: str, step: int, examples: Sequence[Example], visitor: str, locale: str
    ) -> tuple[str, dict[str, Any]]:
        tuning, turn, say = self._tunings.tuning(run), self._ctx.slots.turn, self._ctx.words.say
        with self._ctx.store.lease(self._tunings.base(run), visitor) as base:
            guesses = ask_for_label(base, examples, tuning, turn=turn)
        source = self._ctx.runs.checkpoint_source(run, step)
        with self._ctx.store.lease(source, visitor) as loaded:
            scores = score_classes(
                self._tunings.classifier(run, step, loaded),
                examples,
                limit=tuning.row_limit,
                turn=turn,
            )
        rows, marks = [], {}
        for i, example in enumerate(examples):
            best = int(scores.probabilities[i].argmax())
            chosen = scores.labels[best]
            share = f"{chosen} {100 * scores.probabilities[i, best]:.1f} %"
            rows.append([str(example.row), example.text, example.label, guesses[i], share])
            marks[str(i)] = {
                "3": GOOD if guesses[i] == example.label else BAD,
                "4": GOOD if chosen == example.label else BAD,
            }
        columns = ("row", "text", "truth", "zero_shot", "tuned")
        heads = [say(locale, f"finetune.column_{name}") for name in columns]
        said = say(locale, "finetune.classes_said", step=step)
        return said, {"cols": heads, "rows": rows, "marks": marks}

    def _classify_own(
        self, run: str, step: int, text: str, visitor: str, locale: str
    ) -> tuple[Any, ...]:
        tuning, turn = self._tunings.tuning(run), self._ctx.slots.turn
        source = self._ctx.runs.checkpoint_source(run, step)
        with self._ctx.store.lease(source, visitor) as loaded:
            found = self._tunings.classifier(run, step, loaded)
            example = Example(row=0, text=text, label=found.labels[0])
            scores = score_classes(found, [example], limit=tuning.row_limit, turn=turn)
            p = scores.probabilities[0]
            n_tokens = len(loaded.tokenizer.encode(text))
            ids = loaded.tokenizer.encode(text)[: tuning.row_limit]
            weights = weigh_tokens(found, ids, int(p.argmax()), turn)
            units = units_of(loaded.tokenizer, ids)
        bars = [{"label": n, "value": float(x)} for n, x in zip(found.labels, p, strict=True)]
        chips = update_view(
            value={"units": make_units(units), "more": n_tokens - len(ids), "total": n_tokens},
            weights=sum_over_units(units, [max(0.0, float(w)) for w in weights]),
        )
        said = self._ctx.words.say(
            locale, "finetune.own_said", label=found.labels[int(p.argmax())], step=step
        )
        if n_tokens > len(ids):
            cut = self._ctx.words.say(locale, "finetune.own_cut", n=len(ids), all=n_tokens)
            said = f"{said} {cut}"
        return said, gr.update(visible=True), {"bars": bars, "unit": "%", "max": 1}, chips, None
