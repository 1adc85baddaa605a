"""The panel "adapter": LoRA beside its matrices, merged, taken out again, and at any strength."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.context import AppContext
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.numbers import Slider
from components.kit.working import Working, build_working
from components.quantities import short_bytes, short_count
from components.tabs.finetune.steps import (
    build_question,
    build_step_choice,
    chosen_step,
    first_question,
    offer_question,
)
from components.tabs.finetune.tuning_tab import TuningTab
from components.text import locale_of
from explorer.snippets import source_file_of
from explorer.tuning_adapter import AdapterReport, inspect_adapter
from explorer.tuning_runs import TuningRuns
from explorer.tuning_snippets import make_adapter_snippet

FORMULA = r"""
$$y = W x + \frac{\alpha}{r} B A x \qquad W' = W + \frac{\alpha}{r} B A
\qquad A \in \mathbb{R}^{r \times n},\ B \in \mathbb{R}^{m \times r}$$
"""
BYTES_A_NUMBER = 4  # float32
COLUMNS = ("time", "numbers", "from_base", "from_beside")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    step: gr.Dropdown
    text: gr.Textbox
    offered: gr.State
    strength: gr.Slider
    go: gr.Button
    said: gr.HTML
    memory: gr.HTML
    choices_said: gr.HTML
    choices: gr.HTML
    states: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `AdapterHandlers.show` fills."""
        said = [self.said, self.memory, self.choices_said]
        return [*said, self.choices, self.states, *self.working.outputs]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "finetune-controls"], min_width=0):
            step = build_step_choice(words, "finetune-adapter-step")
            text = build_question(words, "finetune.adapter_text", "finetune-adapter-text")
            strength = Slider(
                0.0,
                2.0,
                value=1.0,
                step=0.1,
                label=t("finetune.adapter_strength"),
                info=t("finetune.adapter_strength_info"),
                elem_id="finetune-adapter-strength",
            )
            go = gr.Button(
                t("finetune.adapter_go"),
                variant="primary",
                elem_id="finetune-adapter-go",
                min_width=0,
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="finetune-adapter-said", look="heading")
            memory = build_line(words, elem_id="finetune-adapter-memory", look="help")
            states = build_number_matrix(words, elem_id="finetune-adapter-states")
            choices_said = build_line(words, elem_id="finetune-adapter-next", look="heading")
            choices = build_bar_list(words, elem_id="finetune-adapter-choices")
            working = build_working(words, elem_id="finetune-adapter-working", formula=FORMULA)
    build_note(words, "finetune.look_for_adapter", elem_id="finetune-adapter-note")
    return Parts(
        step, text, gr.State(""), strength, go, said, memory, choices_said, choices, states, working
    )


def wire_panel(tune: TuningTab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        tune: The tab.
        parts: What `build` gave.
    """
    on = AdapterHandlers(tune.ctx, tune.tunings)
    offered = [parts.step, parts.text, parts.said, parts.offered]
    tune.wire(
        tune.when_looked_at("adapter"),
        on.offer,
        [tune.choice.run, parts.text, parts.offered],
        offered,
    )
    asked = [tune.choice.run, parts.step, parts.text, parts.strength, tune.ctx.owner]
    nothing = ["", "", "", None, None, None, None, None]
    for event in (parts.go.click, parts.text.submit, parts.strength.release):
        tune.wire(
            event,
            on.show,
            asked,
            parts.outputs(),
            trigger_mode="always_last",
            nothing=nothing,
        )
    expose(on.adapter, "finetune_adapter")


class AdapterHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def offer(
        self, run: str | None, text: str, offered: str, request: gr.Request
    ) -> tuple[Any, ...]:
        """The checkpoints there are, and the first held-out question, where nothing was typed."""
        return offer_question(self._ctx, self._tunings, run, text, offered, request)

    def show(
        self,
        run: str | None,
        step: int | None,
        text: str,
        strength: float,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`."""
        run, step = chosen_step(self._tunings, run, step)
        visitor, say = self._ctx.owner_of(owner, request), self._ctx.words.say
        locale = locale_of(request)
        text = text or first_question(self._tunings, run)
        report = self._inspect(run, step, text, strength, visitor)
        python = make_adapter_snippet(run, step, text, strength)
        bars = [{"label": name, "value": share} for name, share in report.choices]
        return (
            say(
                locale,
                "finetune.adapter_said",
                n=len(report.layers),
                rank=report.rank,
                alpha=f"{report.alpha:g}",
                numbers=short_count(report.n_adapter),
                base=short_count(report.n_base),
                percent=f"{100 * report.n_adapter / report.n_base:.2f}",
            ),
            self._memory(report, locale),
            say(locale, "finetune.adapter_next", strength=f"{strength:g}"),
            {"bars": bars, "unit": "%", "max": 1},
            self._states(report, locale),
            *self._drawer(run, step, report, python, locale),
        )

    def adapter(
        self, run: str, step: int, text: str, strength: float, request: gr.Request
    ) -> dict[str, Any]:
        """The adapter of a run beside its matrices, merged and taken out: distances and times."""
        report = self._inspect(run, step, text, strength, self._ctx.owner_of(None, request))
        base, beside = report.states[:2]
        return {
            "rank": report.rank,
            "alpha": report.alpha,
            "layers": list(report.layers),
            "n_adapter": report.n_adapter,
            "n_base": report.n_base,
            "n_bytes": report.memory.n_bytes,
            "n_shared_bytes": report.memory.n_base_bytes,
            "states": {
                state.name: {
                    "milliseconds": 1000 * state.seconds,
                    "n_numbers": state.n_numbers,
                    "from_base": state.distance(base),
                    "from_beside": state.distance(beside),
                }
                for state in report.states
            },
            "choices": dict(report.choices),
        }

    # ------------------------------------------------------------------------------- how
    def _inspect(
        self, run: str, step: int, text: str, strength: float, visitor: str
    ) -> AdapterReport:
        runs, store, tuning = self._ctx.runs, self._ctx.store, self._tunings.tuning(run)
        source = runs.checkpoint_source(run, step)
        with (
            store.lease(self._tunings.base(run), visitor) as base,
            store.lease(source, visitor) as tuned,
        ):
            return inspect_adapter(
                base,
                tuned,
                runs.checkpoint(run, step),
                tuning,
                text or first_question(self._tunings, run),
                strength=strength,
                turn=self._ctx.slots.turn,
            )

    def _memory(self, report: AdapterReport, locale: str) -> str:
        memory = report.memory
        name = "shared" if memory.base_name else "whole"
        if memory.base_name and memory.n_bytes > BYTES_A_NUMBER * report.n_adapter:
            name = "stacked"
        return self._ctx.words.say(
            locale,
            f"finetune.adapter_{name}",
            own=short_bytes(memory.n_bytes),
            shared=short_bytes(memory.n_base_bytes),
            base=memory.base_name,
        )

    def _states(self, report: AdapterReport, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        base, beside = report.states[:2]
        return {
            "corner": say(locale, "finetune.adapter_corner"),
            "rows": [say(locale, f"finetune.adapter_state.{s.name}") for s in report.states],
            "cols": [say(locale, f"finetune.adapter_column.{name}") for name in COLUMNS],
            "cells": [
                [
                    f"{1000 * state.seconds:.1f}",
                    f"{state.n_numbers:,}",
                    f"{state.distance(base):.2g}",
                    f"{state.distance(beside):.2g}",
                ]
                for state in report.states
            ],
            "digits": 4,
            "wide": True,
        }

    def _drawer(
        self, run: str, step: int, report: AdapterReport, python: str, locale: str
    ) -> tuple[Any, Any, Any]:
        say = self._ctx.words.say
        base, beside = report.states[:2]
        cells = [
            [1000 * s.seconds, float(s.n_numbers), s.distance(base), s.distance(beside)]
            for s in report.states
        ]
        matrix = self._ctx.routes.publish(
            np.array(cells), row_labels=[s.name for s in report.states], column_labels=list(COLUMNS)
        )
        facts = {
            "tensor": "lora_A, lora_B",
            "shape": [report.n_adapter],
            "file": source_file_of(inspect_adapter),
            "test": "tests/explorer/test_tuning_adapter.py",
        }
        table = {
            "corner": say(locale, "finetune.adapter_matrix"),
            "rows": [str(i + 1) for i in range(len(report.layers))],
            "cols": [say(locale, "finetune.adapter_name")],
            "cells": [[name] for name in report.layers],
            "wide": True,
        }
        link = {
            "path": f"run/{run}/step-{step}/adapter.zip",
            "words": say(locale, "finetune.adapter_save"),
        }
        return facts, table, {"csv": matrix, "png": None, "python": python, "file": link}
