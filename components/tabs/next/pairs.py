"""The panel "pairs": one prompt written on twice, under the dials and under one change of them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.forms import Form, with_form
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.line import build_line
from components.kit.numbers import Slider
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.next.writing import make_written_chips, make_written_table
from components.text import locale_of
from explorer.continuations import Pair, as_chips, stream_pair
from explorer.inspector_snippets import make_pair_snippet
from explorer.next_token import SamplingSettings
from explorer.snippets import source_file_of

# What is changed against the dials on the left; "seed" is one more.
CHANGES: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "greedy": {"temperature": 0.0},
        "hot": {"temperature": 1.6},
        "top_k": {"top_k": 5},
        "top_p": {"top_p": 0.9},
        "min_p": {"min_p": 0.1},
        "penalty": {"repetition_penalty": 1.3},
        "seed": {},
    }
)
FORMULA = r"""
$$x_{t+1} \sim p_{A}(\cdot \mid x_{\le t}) \qquad \text{and} \qquad
x'_{t+1} \sim p_{B}(\cdot \mid x'_{\le t}) \qquad \text{from the same seed}$$
"""

# What the panel shows when there is no text, or none that it can read.
NOTHING: tuple[Any, ...] = (
    "",
    {"units": [], "more": 0, "total": 0},
    {"units": [], "more": 0, "total": 0},
    None,
    None,
    dict(NO_EXPORTS),
)


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    change: gr.Radio
    length: gr.Slider
    run: gr.Button
    stop: gr.Button
    said: gr.HTML
    first: gr.HTML
    second: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        return [
            self.said,
            self.first,
            self.second,
            drawer.facts,
            drawer.table,
            drawer.exports,
        ]


def build(asking: Asking, dials: Form) -> dict[str, Any]:
    """Build the panel and connect its events; returns what an address may name.

    Args:
        asking: The question of the tab.
        dials: The sampling settings of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    change = gr.Radio(
        [(t(f"next.change.{name}"), name) for name in CHANGES],
        value="greedy",
        label=t("next.change"),
        info=t("next.change_info"),
        elem_id="pair-change",
    )
    with gr.Row(elem_classes=["panel-controls"]):
        length = Slider(1, 100, value=30, step=1, label=t("next.length"), elem_id="pair-length")
        run = gr.Button(t("next.write"), variant="primary", elem_id="pair-run", min_width=0)
        stop = gr.Button(t("next.stop"), elem_id="pair-stop", min_width=0)
    said = build_line(words, elem_id="pair-said", look="help")
    with gr.Column(elem_id="pair-texts", elem_classes=["as-picture"], min_width=0):
        gr.HTML(t("next.pair_first"), elem_classes=["heading"])
        first = build_token_chips(
            words, elem_id="pair-first", mode="probability", readout="popover"
        )
        gr.HTML(t("next.pair_second"), elem_classes=["heading"])
        second = build_token_chips(
            words, elem_id="pair-second", mode="probability", readout="popover"
        )
    working = build_working(words, elem_id="pair-working", formula=FORMULA, png="pair-texts")
    build_note(words, "next.look_for_pairs", elem_id="pair-note")
    _wire(asking, dials, Parts(change, length, run, stop, said, first, second, working))
    return {"change": change, "length": length}


def _wire(asking: Asking, dials: Form, parts: Parts) -> None:
    ctx, held, options = asking.ctx, asking.held["pairs"], asking.options
    on = PairHandlers(asking)
    inputs = [held, parts.change, parts.length, ctx.owner, *dials.inputs]
    events = [held.change, parts.change.input, parts.run.click]
    write = with_form(on.write, SamplingSettings)
    wire(events, write, inputs, parts.outputs(), nothing=NOTHING, **options)
    wire(parts.stop.click, asking.stopper("pairs"), [], [], queue=False, **options)
    expose(on.next_pair, "next_pair")


class PairHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def write(
        self,
        ask: Ask,
        change: str,
        length: int,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> Iterator[tuple[Any, ...]]:
        """Write both, a token of each in turn."""
        if not ask.text:
            yield NOTHING
            return
        ctx, locale, other = self._ctx, locale_of(request), changed(settings, change)
        with (
            self._asking.working("pairs", request) as turn,
            ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded,
        ):
            for pair in stream_pair(
                loaded,
                ask.text,
                settings,
                other,
                chat=ask.chat,
                max_new_tokens=int(length),
                turn=turn,
            ):
                chips = [make_written_chips(as_chips(loaded, t)) for t in (pair.first, pair.second)]
                if not pair.finished:
                    yield (gr.skip(), *chips, gr.skip(), gr.skip(), gr.skip())
        names = [ctx.words.say(locale, f"next.pair_{which}") for which in ("first", "second")]
        snippet = make_pair_snippet(ask.source, ask.text, ask.chat, settings, other, int(length))
        yield (
            self._say(pair, locale),
            *chips,
            {"tensor": "logits", "file": source_file_of(stream_pair)},
            make_written_table(ctx.words, locale, names, [pair.first, pair.second]),
            {"csv": self._publish(pair), "png": "pair-texts", "python": snippet},
        )

    def next_pair(
        self,
        text: str,
        change: str,
        request: gr.Request,
        temperature: float = 1.0,
        seed: int = 123,
        max_new_tokens: int = 30,
    ) -> dict[str, Any]:
        """Write a text on under two settings: greedy, hot, top_k, top_p, min_p, penalty or seed."""
        ctx, settings = self._ctx, SamplingSettings(temperature=temperature, seed=seed)
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            *_, pair = stream_pair(
                loaded,
                text,
                settings,
                changed(settings, change),
                max_new_tokens=max_new_tokens,
                turn=ctx.slots.turn,
            )
        return {"first": pair.texts[0], "second": pair.texts[1], "parting": pair.parting}

    def _say(self, pair: Pair, locale: str) -> str:
        same = pair.parting == len(pair.first) == len(pair.second)
        key = "next.pair_same" if same else "next.pair_parts"
        return self._ctx.words.say(locale, key, n=pair.parting)

    def _publish(self, pair: Pair) -> str:
        n_rows = max(len(pair.first), len(pair.second))
        cells = np.full((n_rows, 4), np.nan)
        for column, tokens in ((0, pair.first), (2, pair.second)):
            for place, token in enumerate(tokens):
                cells[place, column : column + 2] = token.id, token.probability
        return self._ctx.routes.publish(
            cells, column_labels=("id A", "probability A", "id B", "probability B")
        )


def changed(settings: SamplingSettings, change: str) -> SamplingSettings:
    """The other settings of a pair: the dials with one change."""
    if change not in CHANGES:
        change = "greedy"
    if change == "seed":
        return replace(settings, seed=(settings.seed + 1) % 2**31)
    values: dict[str, Any] = dict(CHANGES[change])
    return replace(settings, **values)
