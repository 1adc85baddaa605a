"""The panel "gradients": which tokens of the prompt speak for the chosen one."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.line import build_line
from components.kit.working import Working, build_working
from components.quantities import short_duration
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.layers.place import place_within, say_target, update_chips
from components.text import locale_of
from components.token_units import sum_over_units
from explorer.errors import ConfigError
from explorer.inspector_snippets import make_salience_snippet
from explorer.prompts import read_prompt
from explorer.salience import (
    METHODS,
    Salience,
    SalienceSettings,
    SalienceStep,
    stream_salience,
)
from explorer.snippets import source_file_of

MOST_BARS = 40
QUICK_S = 30.0  # what takes longer waits for the button
FORMULA = r"""
$$f = \ln p(w \mid e_1 \dots e_n) \qquad
\text{gradient} \times \text{input: } e_i \cdot \frac{\partial f}{\partial e_i} \qquad
\text{integrated: } (e_i - b) \cdot \int_0^1 \frac{\partial f}{\partial e_i}
\big(b + \alpha (e - b)\big)\, d\alpha$$
"""


@dataclass(frozen=True)
class Measured:
    """Scores of one question by every method that was tried.

    Args:
        ask: The question.
        scores: For each method its scores.
    """

    ask: Ask
    scores: tuple[tuple[str, tuple[float, ...]], ...] = ()


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    method: gr.Radio
    run: gr.Button
    stop: gr.Button
    said: gr.HTML
    chips: gr.HTML
    bars: gr.HTML
    working: Working
    measured: gr.State

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        views = [self.said, self.chips, self.bars]
        return [*views, drawer.facts, drawer.table, drawer.exports, self.measured]


def build(asking: Asking) -> gr.Radio:
    """Build the panel and connect its events; returns the choice of the method.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    method = gr.Radio(
        [(t(f"layers.method.{name}"), name) for name in METHODS],
        value=METHODS[0],
        label=t("layers.method"),
        info=t("layers.method_info"),
        elem_id="gradients-method",
    )
    with gr.Row(elem_classes=["button-row"]):
        run = gr.Button(t("layers.run"), variant="primary", elem_id="gradients-run", min_width=0)
        stop = gr.Button(t("layers.stop"), elem_id="gradients-stop", min_width=0)
    said = build_line(words, elem_id="gradients-said", look="help")
    with gr.Column(elem_id="gradients-picture", elem_classes=["as-picture"], min_width=0):
        chips = build_token_chips(
            words, elem_id="gradients-chips", mode="weight", readout="popover"
        )
        gr.HTML(t("layers.salience_bars"), elem_classes=["heading"])
        bars = build_bar_list(words, elem_id="gradients-bars")
    working = build_working(
        words, elem_id="gradients-working", formula=FORMULA, png="gradients-picture"
    )
    build_note(words, "layers.look_for_gradients", elem_id="gradients-note")
    parts = Parts(method, run, stop, said, chips, bars, working, gr.State(None))
    ctx, held, options = asking.ctx, asking.held["gradients"], asking.options
    on = GradientHandlers(asking)
    inputs = [held, method, parts.measured, ctx.owner]
    wire([held.change, method.input], on.begin, inputs, parts.outputs(), **options)
    wire(run.click, on.measure, inputs, parts.outputs(), **options)
    wire(stop.click, asking.stopper("gradients"), [], [], queue=False, **options)
    expose(on.layers_salience, "layers_salience")
    return method


class GradientHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def begin(
        self,
        ask: Ask,
        method: str,
        measured: Measured | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """Measure if that is quick; else say how long it takes, and leave it to the visitor."""
        for step in self._steps(ask, method, owner, request):
            if step.result is None and step.done == 0 and step.seconds_left > QUICK_S:
                yield (self._announce(step, "layers.takes_long", request), *self._nothing())
                return
            yield self._report(step, ask, measured, request)
        if not ask.text:
            yield ("", *self._nothing())

    def measure(
        self,
        ask: Ask,
        method: str,
        measured: Measured | None,
        owner: str | None,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """Measure, saying first how long it will take, then how far it is."""
        for step in self._steps(ask, method, owner, request):
            yield self._report(step, ask, measured, request)
        if not ask.text:
            yield ("", *self._nothing())

    def _steps(
        self, ask: Ask, method: str, owner: str | None, request: gr.Request
    ) -> Iterator[SalienceStep]:
        if not ask.text:
            return
        ctx = self._ctx
        with (
            self._asking.working("gradients", request) as turn,
            ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded,
        ):
            ids = read_prompt(loaded, ask.text)
            place, settings = place_within(ask, ids), read_method(method)
            yield from stream_salience(
                loaded, ids, settings, position=place, target=ask.target, turn=turn
            )

    def _report(
        self, step: SalienceStep, ask: Ask, measured: Measured | None, request: gr.Request
    ) -> tuple[Any, ...]:
        if step.result is None:
            return (self._announce(step, "layers.measuring", request), *[gr.skip()] * 6)
        found = step.result
        return self._show(ask, found, _add(measured, ask, found), locale_of(request))

    def _announce(self, step: SalienceStep, key: str, request: gr.Request) -> str:
        left = short_duration(step.seconds_left)
        going = {"done": step.done, "total": step.total, "left": left}
        return self._ctx.words.say(locale_of(request), key, **going)

    def _nothing(self) -> tuple[Any, ...]:
        """Values for all outputs but the first."""
        empty = {"units": [], "more": 0, "total": 0}
        return (empty, None, None, None, dict(NO_EXPORTS), None)

    def layers_salience(
        self,
        text: str,
        request: gr.Request,
        method: str = "gradient",
        position: int = -1,
        target: str = "",
    ) -> dict[str, Any]:
        """How much each token speaks for the chosen one: gradient, integrated, leave_one_out."""
        ctx, settings = self._ctx, read_method(method)
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            ids = read_prompt(loaded, text)
            *_, last = stream_salience(
                loaded, ids, settings, position=position, target=target, turn=ctx.slots.turn
            )
        found = last.result
        assert found is not None
        return {
            "tokens": list(found.labels),
            "scores": found.scores.tolist(),
            "target": found.target.label,
            "log_probability": found.f_input,
        }

    def _show(self, ask: Ask, found: Salience, measured: Measured, locale: str) -> tuple[Any, ...]:
        most = float(np.abs(found.scores).max()) or 1.0
        shares = np.clip(found.scores / most, 0, None).tolist()
        order = np.argsort(-np.abs(found.scores), kind="stable")[:MOST_BARS]
        bars = [
            {"label": found.labels[i], "value": float(found.scores[i]), "note": str(i)}
            for i in sorted(order.tolist())
        ]
        snippet = make_salience_snippet(
            ask.source, ask.text, found.method, found.position, ask.target
        )
        return (
            self._say(found, locale),
            update_chips(
                found.units,
                found.position,
                [min(1.0, w) for w in sum_over_units(found.units, shares)],
            ),
            {"bars": bars, "digits": 3, "unit": "nats"},
            {
                "tensor": "embed",
                "shape": [1, len(found.ids), 1],
                "file": source_file_of(stream_salience),
                "test": "tests/explorer/test_inspector_texts.py",
            },
            self._table(found, measured, locale),
            {"csv": self._publish(found, measured), "png": "gradients-picture", "python": snippet},
            measured,
        )

    def _say(self, found: Salience, locale: str) -> str:
        say = self._ctx.words.say
        total = f"{found.scores.sum():.3f}"
        said = say(
            locale,
            "layers.salience_said",
            model=found.model_name,
            f=f"{found.f_input:.3f}",
            total=total,
        )
        target = say_target(self._ctx.words, locale, found.target)
        if found.method != "integrated":
            return f"{target} · {said}"
        complete = say(
            locale,
            "layers.complete",
            whole=f"{found.f_input - found.f_baseline:.3f}",
            share=f"{found.incompleteness:.2%}",
            steps=found.n_steps,
        )
        return f"{target} · {said} · {complete}"

    def _table(self, found: Salience, measured: Measured, locale: str) -> dict[str, Any]:
        """The tokens with the scores of every method that was tried for this question."""
        say, scores = self._ctx.words.say, dict(measured.scores)
        return {
            "corner": say(locale, "layers.column_token"),
            "rows": [f"{i} {label}" for i, label in enumerate(found.labels)][:200],
            "cols": [say(locale, f"layers.method.{name}") for name in scores],
            "cells": [list(row) for row in zip(*scores.values(), strict=True)][:200],
            "digits": 4,
        }

    def _publish(self, found: Salience, measured: Measured) -> str:
        scores = dict(measured.scores)
        return self._ctx.routes.publish(
            np.array(list(scores.values())).T, row_labels=found.labels, column_labels=list(scores)
        )


def read_method(method: str) -> SalienceSettings:
    """The settings for a method's name.

    Raises:
        ConfigError: There is no such method.
    """
    for known in METHODS:
        if known == method:
            return SalienceSettings(method=known)
    raise ConfigError(f"method={method!r} is unknown; choose {', '.join(METHODS)}")


def _add(measured: Measured | None, ask: Ask, found: Salience) -> Measured:
    """What was measured, with this result; another question begins anew."""
    before = dict(measured.scores) if measured is not None and measured.ask == ask else {}
    before[found.method] = tuple(found.scores.tolist())
    return Measured(ask, tuple((name, before[name]) for name in METHODS if name in before))
