"""The panel "steer": add the difference of two texts to the stream, and see the answer change."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.forms import Form, build_form, read_form
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.line import build_line
from components.kit.pickers import build_picker
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.next.writing import make_written_chips, make_written_table
from components.text import locale_of
from explorer.continuations import as_chips
from explorer.inspector_snippets import make_steer_snippet
from explorer.snippets import source_file_of
from explorer.steering import Steered, SteerSettings, stream_steering

FIELDS = ("strength", "max_new_tokens", "temperature", "seed")
FORMULA = r"""
$$v = x_l(\text{towards}) - x_l(\text{away}) \qquad x_l \leftarrow x_l + s\,v
\quad \text{at every token}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    towards: gr.Textbox
    away: gr.Textbox
    layer: gr.HTML
    form: Form
    run: gr.Button
    stop: gr.Button
    said: gr.HTML
    plain: gr.HTML
    steered: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What every handler fills."""
        drawer = self.working
        views = [self.said, self.plain, self.steered, self.layer]
        return [*views, drawer.facts, drawer.table, drawer.exports]


def build(asking: Asking) -> Parts:
    """Build the panel and connect its events.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    with gr.Row(elem_classes=["panel-controls"]):
        towards = gr.Textbox("Love", label=t("layers.steer.towards"), elem_id="steer-towards")
        away = gr.Textbox("Hate", label=t("layers.steer.away"), elem_id="steer-away")
        layer = build_picker(words, "layer", elem_id="steer-layer")
        form = build_form(
            words, SteerSettings, prefix="layers.steer", elem_id="steer", names=FIELDS
        )
    with gr.Row(elem_classes=["button-row"]):
        run = gr.Button(
            t("layers.steer.write"), variant="primary", elem_id="steer-run", min_width=0
        )
        stop = gr.Button(t("layers.stop"), elem_id="steer-stop", min_width=0)
    said = build_line(words, elem_id="steer-said", look="help")
    with gr.Column(elem_id="steer-texts", elem_classes=["as-picture"], min_width=0):
        gr.HTML(t("layers.steer.plain"), elem_classes=["heading"])
        plain = build_token_chips(
            words, elem_id="steer-plain", mode="probability", readout="popover"
        )
        gr.HTML(t("layers.steer.steered"), elem_classes=["heading"])
        steered = build_token_chips(
            words, elem_id="steer-steered", mode="probability", readout="popover"
        )
    working = build_working(words, elem_id="steer-working", formula=FORMULA, png="steer-texts")
    build_note(words, "layers.look_for_steer", elem_id="steer-note")
    parts = Parts(towards, away, layer, form, run, stop, said, plain, steered, working)
    ctx, held, options = asking.ctx, asking.held["steer"], asking.options
    on = SteerHandlers(asking)
    strength = form.controls["strength"]
    events = [held.change, run.click, towards.submit, away.submit, strength.release]
    inputs = [held, towards, away, layer, ctx.owner, *form.inputs]
    for event in (events, layer.pick):  # an event of a view cannot stand in a list with others
        wire(event, on.write, inputs, parts.outputs(), **options)
    wire(stop.click, asking.stopper("steer"), [], [], queue=False, **options)
    expose(on.layers_steer, "layers_steer")
    return parts


class SteerHandlers:
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
        towards: str,
        away: str,
        layer: Any,
        owner: str | None,
        strength: float,
        max_new_tokens: int,
        temperature: float,
        seed: int,
        request: gr.Request,
    ) -> Iterator[tuple[Any, ...]]:
        """Write both answers, token by token."""
        if not ask.text:
            empty = {"units": [], "more": 0, "total": 0}
            yield ("", empty, empty, gr.skip(), None, None, dict(NO_EXPORTS))
            return
        given = dict(zip(FIELDS, (strength, max_new_tokens, temperature, seed), strict=True))
        settings = read_form(SteerSettings, given)
        ctx, locale = self._ctx, locale_of(request)
        chosen = int(layer["index"]) if isinstance(layer, dict) and layer.get("count") else -1
        with (
            self._asking.working("steer", request) as turn,
            ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded,
        ):
            n_layers = loaded.config.n_layers
            settings = replace(settings, layer=min(chosen, n_layers - 1))
            for found in stream_steering(loaded, ask.text, towards, away, settings, turn=turn):
                chips = [
                    make_written_chips(as_chips(loaded, tokens))
                    for tokens in (found.plain, found.steered)
                ]
                if not found.finished:
                    yield (gr.skip(), *chips, *[gr.skip()] * 4)
        snippet = make_steer_snippet(
            ask.source, ask.text, towards, away, replace(settings, layer=found.layer)
        )
        names = [ctx.words.say(locale, f"layers.steer.{name}") for name in ("plain", "steered")]
        yield (
            self._say(found, settings.strength, locale),
            *chips,
            {"index": found.layer, "count": n_layers},
            {
                "tensor": f"blocks.{found.layer}.resid_post",
                "file": source_file_of(stream_steering),
                "test": "tests/explorer/test_inspector_texts.py",
            },
            make_written_table(ctx.words, locale, names, [found.plain, found.steered]),
            {"csv": self._publish(found), "png": "steer-texts", "python": snippet},
        )

    def layers_steer(
        self,
        text: str,
        towards: str,
        away: str,
        request: gr.Request,
        layer: int = -1,
        strength: float = 4.0,
        max_new_tokens: int = 24,
    ) -> dict[str, Any]:
        """Write an answer with and without the difference of two texts in the stream."""
        ctx = self._ctx
        settings = SteerSettings(layer=layer, strength=strength, max_new_tokens=max_new_tokens)
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            *_, found = stream_steering(loaded, text, towards, away, settings, turn=ctx.slots.turn)
        return {
            "plain": found.plain_text,
            "steered": found.steered_text,
            "layer": found.layer,
            "vector_length": found.vector_length,
        }

    def _say(self, found: Steered, strength: float, locale: str) -> str:
        return self._ctx.words.say(
            locale,
            "layers.steer.said",
            layer=found.layer,
            vector=f"{found.vector_length:.2f}",
            stream=f"{found.stream_length:.2f}",
            share=f"{abs(strength) * found.vector_length / max(found.stream_length, 1e-9):.2f}",
        )

    def _publish(self, found: Steered) -> str:
        n_rows = max(len(found.plain), len(found.steered), 1)
        cells = np.full((n_rows, 4), np.nan)
        for column, tokens in ((0, found.plain), (2, found.steered)):
            for place, token in enumerate(tokens):
                cells[place, column : column + 2] = token.id, token.probability
        columns = ("id plain", "probability plain", "id steered", "probability steered")
        return self._ctx.routes.publish(cells, column_labels=columns)
