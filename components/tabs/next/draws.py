"""The panel "draws": the dice thrown a thousand times, against what the probabilities promise."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.forms import Form, with_form
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.numbers import Slider
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.next.figures import draws_message
from components.tabs.next.reading import read_logits
from components.text import locale_of
from explorer.draws import MOST_DRAWS, Draws, draw_many
from explorer.inspector_snippets import make_draws_snippet
from explorer.next_token import SamplingSettings
from explorer.snippets import source_file_of
from explorer.tokens import label_of

FORMULA = r"""
$$\mathbb{E}[n_i] = n\,p_i \qquad \sigma_i = \sqrt{n\,p_i\,(1 - p_i)}$$
"""
COLUMNS = ("count", "expected", "deviation", "probability")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    n_draws: gr.Slider
    said: gr.HTML
    chart: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        return [self.said, self.chart, drawer.facts, drawer.table, drawer.exports]


def build(asking: Asking, dials: Form) -> gr.Slider:
    """Build the panel and connect its events; returns the slider of the number of draws.

    Args:
        asking: The question of the tab.
        dials: The sampling settings of the tab.
    """
    words = asking.ctx.words
    n_draws = Slider(
        10,
        MOST_DRAWS,
        value=1_000,
        step=10,
        label=words.t("next.n_draws"),
        info=words.t("next.n_draws_info"),
        elem_id="draws-n",
    )
    said = build_line(words, elem_id="draws-said", look="help")
    chart = build_plotly_panel(words, elem_id="draws-chart", label_key="next.draws_label")
    working = build_working(words, elem_id="draws-working", formula=FORMULA, png="draws-chart")
    build_note(words, "next.look_for_draws", elem_id="draws-note")
    _wire(asking, dials, Parts(n_draws, said, chart, working))
    return n_draws


def _wire(asking: Asking, dials: Form, parts: Parts) -> None:
    ctx, held = asking.ctx, asking.held["draws"]
    on = DrawsHandlers(asking)
    options = asking.options
    inputs = [held, asking.opened, parts.n_draws, ctx.owner, *dials.inputs]
    events = [held.change, parts.n_draws.change, *(c.change for c in dials.inputs)]
    wire(events, with_form(on.draw, SamplingSettings), inputs, parts.outputs(), **options)
    expose(on.next_draws, "next_draws")


class DrawsHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._ctx = asking.ctx

    def draw(
        self,
        ask: Ask,
        opened: str,
        n_draws: int,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Draw, and show the counts."""
        if opened != "draws":
            return (gr.skip(),) * 5
        if not ask.text and not ask.logits:
            return ("", None, None, None, dict(NO_EXPORTS))
        draws = self._draw(ask, int(n_draws), owner, request, settings)
        locale = locale_of(request)
        snippet = make_draws_snippet(
            ask.source, ask.text, ask.chat, ask.logits, settings, int(n_draws)
        )
        return (
            self._say(draws, locale),
            draws_message(self._ctx.words, locale, draws),
            {"tensor": "logits", "file": source_file_of(draw_many)},
            self._table(draws, locale),
            {"csv": self._publish(draws), "png": "draws-chart", "python": snippet},
        )

    def next_draws(
        self,
        text: str,
        request: gr.Request,
        n_draws: int = 1_000,
        seed: int = 123,
        temperature: float = 1.0,
        top_k: int = 0,
        logits: str = "",
    ) -> dict[str, Any]:
        """Draw the next token many times; counts beside what was to be expected."""
        settings = SamplingSettings(temperature=temperature, top_k=top_k, seed=seed)
        ask = Ask(text=text, source=self._ctx.source_of(None), logits=logits)
        draws = self._draw(ask, n_draws, None, request, settings)
        return {
            "tokens": [token.label for token in draws.tokens],
            **{name: [getattr(t, name) for t in draws.tokens] for name in COLUMNS},
            "seed": draws.seed,
        }

    def _draw(
        self,
        ask: Ask,
        n_draws: int,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> Draws:
        ctx = self._ctx
        given = read_logits(ctx, ask, owner, request)
        if ask.logits:
            return draw_many(given, settings, n_draws=n_draws)
        with ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded:
            label = partial(label_of, loaded.tokenizer)
            return draw_many(given, settings, n_draws=n_draws, label=label)

    def _say(self, draws: Draws, locale: str) -> str:
        off = sum(abs(t.count - t.expected) > 2 * t.deviation for t in draws.tokens)
        return self._ctx.words.say(
            locale,
            "next.draws_said",
            n=f"{draws.n_draws:,}",
            seed=draws.seed,
            different=draws.n_different,
            off=off,
            listed=len(draws.tokens),
        )

    def _table(self, draws: Draws, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        return {
            "corner": say(locale, "next.column_token"),
            "rows": [token.label for token in draws.tokens],
            "cols": [say(locale, f"next.column_{name}") for name in COLUMNS],
            "cells": [[str(t.count), t.expected, t.deviation, t.probability] for t in draws.tokens],
            "digits": 4,
        }

    def _publish(self, draws: Draws) -> str:
        cells = [[getattr(token, name) for name in COLUMNS] for token in draws.tokens]
        return self._ctx.routes.publish(
            np.array(cells, dtype=np.float64),
            row_labels=[token.label for token in draws.tokens],
            column_labels=COLUMNS,
        )
