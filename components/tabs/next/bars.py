"""The panel "bars": every step from logits to the next token, redrawn while a slider moves."""

from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.forms import Form, with_form
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.next_bars import build_next_bars
from components.kit.working import Working, build_working
from components.next_routes import as_json
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.next.reading import read_logits, summarise
from components.text import locale_of
from explorer.inspector_snippets import make_next_snippet
from explorer.next_token import NextLogits, NextToken, SamplingSettings, trace_next_token
from explorer.snippets import source_file_of

FORMULA = r"""
$$p_i = \frac{e^{s_i / T}}{\sum_{j\ \text{kept}} e^{s_j / T}} \qquad
H = -\sum_i p_i \ln p_i \qquad \text{perplexity} = e^{H}$$
"""
COLUMNS = ("logit", "probability", "score", "final", "rank")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    said: gr.HTML
    bars: gr.HTML
    working: Working
    kept: gr.State

    def drawer(self) -> list[Any]:
        """What changes with every dial."""
        return [self.said, self.working.facts, self.working.table, self.working.exports]


def build(asking: Asking, dials: Form) -> None:
    """Build the panel and connect its events.

    Args:
        asking: The question of the tab.
        dials: The sampling settings of the tab.
    """
    words = asking.ctx.words
    said = build_line(words, elem_id="next-said", look="help")
    bars = build_next_bars(words, elem_id="next-bars")
    working = build_working(words, elem_id="next-working", formula=FORMULA, png="next-bars")
    build_note(words, "next.look_for_bars", elem_id="next-bars-note")
    _wire(asking, dials, Parts(said, bars, working, gr.State("")))


def _wire(asking: Asking, dials: Form, parts: Parts) -> None:
    ctx, held = asking.ctx, asking.held["bars"]
    on = BarsHandlers(asking)
    options = asking.options
    inputs = [held, ctx.owner, *dials.inputs]
    read = with_form(on.read, SamplingSettings)
    wire(held.change, read, inputs, [parts.bars, *parts.drawer(), parts.kept], **options)
    moved = [control.change for control in dials.inputs]
    turn = with_form(on.turn, SamplingSettings)
    wire(moved, turn, [held, parts.kept, *dials.inputs], parts.drawer(), **options)
    expose(on.next_token, "next_token")


class BarsHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._ctx = asking.ctx

    def read(
        self, ask: Ask, owner: str | None, request: gr.Request, settings: SamplingSettings
    ) -> tuple[Any, ...]:
        """Read the text and show the choice."""
        if not ask.text and not ask.logits:
            return (None, *_no_drawer(), "")
        given = read_logits(self._ctx, ask, owner, request)
        kept = self._ctx.results.put(given)
        value = {"id": kept, "settings": vars(settings)}
        return (value, *self._drawer(ask, given, settings, request), kept)

    def turn(
        self, ask: Ask, kept: str, request: gr.Request, settings: SamplingSettings
    ) -> tuple[Any, ...]:
        """A dial was turned: the bars have followed by themselves, here comes the drawer."""
        given = self._ctx.results.get(kept)
        if not isinstance(given, NextLogits):
            return (gr.skip(),) * 4
        return self._drawer(ask, given, settings, request)

    def next_token(
        self,
        text: str,
        request: gr.Request,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        min_p: float = 0.0,
        repetition_penalty: float = 1.0,
        logits: str = "",
    ) -> dict[str, Any]:
        """Steps from the logits after a text (or typed `logits`) to the next token."""
        settings = SamplingSettings(
            temperature=temperature,
            top_k=top_k,
            top_p=top_p,
            min_p=min_p,
            repetition_penalty=repetition_penalty,
        )
        ask = Ask(text=text, source=self._ctx.source_of(None), logits=logits)
        return as_json(trace_next_token(read_logits(self._ctx, ask, None, request), settings))

    def _drawer(
        self, ask: Ask, given: NextLogits, settings: SamplingSettings, request: gr.Request
    ) -> tuple[Any, ...]:
        found = trace_next_token(given, settings)
        locale = locale_of(request)
        snippet = make_next_snippet(ask.source, ask.text, ask.chat, ask.logits, settings)
        return (
            summarise(self._ctx, given, found, locale),
            make_facts(given),
            make_table(self._ctx.words, found, locale),
            {"csv": self._publish(found), "png": "next-bars", "python": snippet},
        )

    def _publish(self, found: NextToken) -> str:
        cells = [[getattr(c, column) for column in COLUMNS] for c in found.candidates]
        return self._ctx.routes.publish(
            np.array(cells, dtype=np.float64),
            row_labels=[candidate.label for candidate in found.candidates],
            column_labels=COLUMNS,
        )


def _no_drawer() -> tuple[Any, ...]:
    return ("", None, None, dict(NO_EXPORTS))


def make_facts(given: NextLogits) -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "tensor": "logits",
        "shape": [1, max(1, len(given.ids)), len(given.logits)],
        "dtype": str(given.logits.dtype),
        "file": source_file_of(trace_next_token),
        "test": "tests/explorer/test_next_token.py",
    }


def make_table(words: Any, found: NextToken, locale: str) -> dict[str, Any]:
    """The candidates with every number of their way."""
    names = ("column_logit", "column_own", "column_score", "column_final", "column_fate")
    return {
        "corner": words.say(locale, "next.column_token"),
        "rows": [candidate.label for candidate in found.candidates],
        "cols": [words.say(locale, f"next.{name}") for name in names],
        "cells": [
            [
                candidate.logit,
                candidate.probability,
                candidate.score,
                candidate.final,
                words.say(locale, f"next.fate_{candidate.removed_by or 'kept'}"),
            ]
            for candidate in found.candidates
        ],
        "digits": 4,
    }
