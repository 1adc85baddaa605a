"""The part "what a step reads" of the panel "live": the windows of its batch."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.line import build_line
from components.kit.number_matrix import MOST_TABLE_ROWS, build_number_matrix
from components.kit.numbers import Number
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.tab import TabHead
from components.text import locale_of
from explorer.training.batch_windows import StepWindows


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the part."""

    drawer: gr.Accordion
    step: gr.Number
    said: gr.HTML
    table: gr.HTML


def build(ctx: AppContext) -> Parts:
    """Build the part, closed at first.

    Args:
        ctx: The page's context.
    """
    t = ctx.words.t
    with gr.Accordion(t("pretrain.batch"), open=False, elem_id="pretrain-batch") as drawer:
        step = Number(
            None,
            label=t("pretrain.batch_step"),
            info=t("pretrain.batch_step_info"),
            elem_id="pretrain-batch-step",
        )
        said = build_line(ctx.words, elem_id="pretrain-batch-said", look="help")
        table = build_number_matrix(ctx.words, elem_id="pretrain-batch-table")
    return Parts(drawer, step, said, table)


def wire_part(ctx: AppContext, head: TabHead, parts: Parts, choice: RunChoice) -> None:
    """Connect the part's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
        choice: The run that is looked at.
    """
    on = WindowHandlers(ctx)
    outputs = [parts.said, parts.table]
    for event in (parts.drawer.expand, parts.step.submit, parts.step.input):
        wire(
            event,
            on.show,
            [choice.run, parts.step],
            outputs,
            card=head.card,
            words=ctx.words,
            trigger_mode="always_last",
        )
    expose(on.read_batch, "pretrain_batch")


class WindowHandlers:
    """Handlers of the part's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def show(self, run: str | None, step: float | None, request: gr.Request) -> tuple[Any, Any]:
        """The windows of a step; of the newest one where none was typed."""
        if run is None:
            return "", None
        newest = max(1, self._ctx.runs.view(run).summary.step)
        found = self._ctx.runs.windows(run, newest if step is None else int(step))
        locale, say = locale_of(request), self._ctx.words.say
        said = say(
            locale,
            "pretrain.batch_said",
            step=f"{found.step:,}",
            epoch=f"{found.epoch:.2f}",
            chosen=f"{len(found.windows):,}",
            all=f"{found.n_windows:,}",
        )
        return said, self._table(found, locale)

    def read_batch(self, run: str, step: int) -> dict[str, Any]:
        """Read which windows of the text a step of a run reads."""
        found = self._ctx.runs.windows(run, step)
        return {
            "step": found.step,
            "epoch": found.epoch,
            "windows": [[w.number, w.first_token, w.text, w.target] for w in found.windows],
        }

    def _table(self, found: StepWindows, locale: str) -> dict[str, Any]:
        columns = ("column_first_token", "column_window", "column_next")
        shown = found.windows[:MOST_TABLE_ROWS]
        return {
            "corner": self._ctx.words.say(locale, "pretrain.column_number"),
            "rows": [f"{window.number:,}" for window in shown],
            "cols": [self._ctx.words.say(locale, f"pretrain.{name}") for name in columns],
            "cells": [[f"{w.first_token:,}", w.text, w.target] for w in shown],
            "tokens": [1, 2],
            "digits": 0,
        }
