"""Better and worse answer of a held-out pair, token by token, before and after; in "answers"."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.context import AppContext
from components.kit.chips import build_token_chips
from components.kit.line import build_line
from components.kit.numbers import Slider
from components.kit.working import Working, build_working
from components.tabs.finetune.steps import chosen_step
from components.tabs.finetune.train_handlers import FORMULAS
from components.tabs.finetune.tuning_tab import TuningTab
from components.text import locale_of
from components.token_units import make_units, sum_over_units
from explorer.answer_tokens import AnswerTokens, join_models, read_answer_tokens
from explorer.errors import JobError
from explorer.snippets import source_file_of
from explorer.tuning_runs import TuningRuns
from explorer.tuning_snippets import make_pair_snippet

SIDES = ("chosen", "rejected")
MODELS = ("base", "tuned")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the section."""

    number: gr.Slider
    go: gr.Button
    said: gr.HTML
    lines: Mapping[tuple[str, str], gr.HTML]
    chips: Mapping[tuple[str, str], gr.HTML]
    working: Working

    def outputs(self) -> list[Any]:
        """What `PairHandlers.show` fills."""
        drawer = self.working
        views = [view for key in self.lines for view in (self.lines[key], self.chips[key])]
        return [self.said, *views, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the section, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    lines, chips = {}, {}
    with gr.Accordion(t("finetune.pairs"), open=False, elem_id="finetune-pairs"):
        gr.HTML(t("finetune.pairs_help"), elem_classes=["help"])
        with gr.Row(elem_classes=["tab-body"]):
            with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
                number = Slider(
                    1,
                    100,
                    value=1,
                    step=1,
                    label=t("finetune.pair_number"),
                    info=t("finetune.pair_number_info"),
                    elem_id="finetune-pair-number",
                )
                go = gr.Button(t("finetune.pairs_go"), elem_id="finetune-pairs-go", min_width=0)
            with gr.Column(elem_classes=["figure"], min_width=0):
                said = build_line(words, elem_id="finetune-pairs-said", look="text")
                for side in SIDES:
                    for model in MODELS:
                        elem_id = f"finetune-pair-{side}-{model}"
                        lines[side, model] = build_line(
                            words, elem_id=f"{elem_id}-line", look="heading"
                        )
                        chips[side, model] = build_token_chips(
                            words, elem_id=elem_id, mode="probability", readout="popover"
                        )
                working = build_working(
                    words, elem_id="finetune-pairs-working", formula=FORMULAS["dpo"]
                )
    return Parts(number, go, said, lines, chips, working)


def wire_part(tune: TuningTab, parts: Parts, step: gr.Dropdown) -> None:
    """Connect the section's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
        step: The checkpoint that is looked at.
    """
    on = PairHandlers(tune.ctx, tune.tunings)
    asked = [tune.choice.run, step, parts.number, tune.ctx.owner]
    for event in (parts.go.click, parts.number.release):
        tune.wire(event, on.show, asked, parts.outputs(), trigger_mode="always_last")
    expose(on.pair, "finetune_pair")


class PairHandlers:
    """Handlers of the section's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def show(
        self,
        run: str | None,
        step: int | None,
        number: float,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`."""
        run, step = chosen_step(self._tunings, run, step)
        visitor, locale = self._ctx.owner_of(owner, request), locale_of(request)
        asked, found = self._read(run, step, int(number), visitor)
        views = []
        for side in SIDES:
            for model in MODELS:
                logs = _logs(found[side], model)
                views += [self._line(side, model, logs, locale), _chips(found[side], logs)]
        return asked, *views, *self._drawer(run, step, int(number), found, locale)

    def pair(self, run: str, step: int, number: int, request: gr.Request) -> dict[str, Any]:
        """Log-probability of each token of both answers of a held-out pair, before and after."""
        asked, found = self._read(run, step, number, self._ctx.owner_of(None, request))
        return {
            "question": asked,
            **{
                side: {
                    "tokens": [unit.text for unit in tokens.units],
                    "base": tokens.reference.tolist(),
                    "tuned": tokens.policy.tolist(),
                }
                for side, tokens in found.items()
            },
        }

    # ------------------------------------------------------------------------------- how
    def _read(
        self, run: str, step: int, number: int, visitor: str
    ) -> tuple[str, dict[str, AnswerTokens]]:
        if self._tunings.objective(run) != "preference":
            raise JobError(
                "this run has not learned from pairs of answers; choose one on preferences",
                code="tune-no-pairs",
            )
        examples, tuning = self._tunings.examples(run), self._tunings.tuning(run)
        example = examples[(max(number, 1) - 1) % len(examples)]
        answers = {"chosen": example.answer, "rejected": example.rejected}
        read: dict[str, list[Any]] = {side: [] for side in SIDES}
        for source in (self._tunings.base(run), self._ctx.runs.checkpoint_source(run, step)):
            with self._ctx.store.lease(source, visitor) as loaded:
                for side in SIDES:
                    read[side].append(
                        read_answer_tokens(
                            loaded, example, answers[side], tuning, turn=self._ctx.slots.turn
                        )
                    )
                tokenizer = loaded.tokenizer
        found = {
            side: join_models(after, before, tokenizer) for side, (before, after) in read.items()
        }
        return example.prompt.joined, found

    def _line(self, side: str, model: str, logs: np.ndarray, locale: str) -> str:
        say = self._ctx.words.say
        return say(
            locale,
            "finetune.pair_line",
            side=say(locale, f"finetune.role.{side}"),
            model=say(locale, f"finetune.column_{model}"),
            total=f"{logs.sum():.2f}",
            mean=f"{logs.mean():.2f}",
            n=len(logs),
        )

    def _drawer(
        self, run: str, step: int, number: int, found: dict[str, AnswerTokens], locale: str
    ) -> tuple[Any, Any, Any]:
        say = self._ctx.words.say
        columns = [say(locale, f"finetune.column_{name}") for name in (*MODELS, "gain")]
        rows, cells = [], []
        for side in SIDES:
            tokens = found[side]
            gained = [sum_over_units(tokens.units, list(x)) for x in _columns(tokens)]
            rows += [f"{say(locale, f'finetune.role.{side}')} {u.text!r}" for u in tokens.units]
            cells += [list(row) for row in zip(*gained, strict=True)]
        matrix = self._ctx.routes.publish(
            np.array(cells, dtype=np.float64), row_labels=rows, column_labels=columns
        )
        facts = {
            "tensor": "logits",
            "shape": [len(found["chosen"].policy) + len(found["rejected"].policy)],
            "file": source_file_of(read_answer_tokens),
            "test": "tests/explorer/test_answer_tokens.py",
        }
        table = {
            "corner": say(locale, "finetune.pair_corner"),
            "rows": rows,
            "cols": columns,
            "cells": cells,
            "digits": 3,
        }
        python = make_pair_snippet(run, step, number)
        return facts, table, {"csv": matrix, "png": None, "python": python}


def _columns(tokens: AnswerTokens) -> tuple[np.ndarray, ...]:
    return tokens.reference, tokens.policy, tokens.gains


def _logs(tokens: AnswerTokens, model: str) -> np.ndarray:
    return tokens.policy if model == "tuned" else tokens.reference


def _chips(tokens: AnswerTokens, logs: np.ndarray) -> dict[str, Any]:
    units = make_units(tokens.units)
    for unit, total in zip(units, sum_over_units(tokens.units, list(logs)), strict=True):
        unit["p"] = round(float(np.exp(total)), 6)
    return {"units": units, "more": 0, "total": len(logs)}
