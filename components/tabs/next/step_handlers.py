"""Handlers of the panel "step"."""

from typing import Any

import gradio as gr
import numpy as np

from components.quantities import short_bytes
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.next.bars import make_table
from components.text import locale_of
from components.token_units import last_token_of, make_units, sum_over_units, unit_of_token
from explorer.inspector_snippets import make_walk_snippet
from explorer.lens_targets import find_target
from explorer.next_token import SamplingSettings, trace_next_token
from explorer.snippets import source_file_of
from explorer.step_through import Look, Walk, begin_walk, choose_next, look_at


class StepHandlers:
    """Handlers of the panel's events; most fill `Parts.outputs`.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    # Each of these takes the question, the walk, the layer of the attention, whose it is, and the
    # dials in the end.

    def begin(
        self,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Start at the end of a new prompt."""
        if not ask.text:
            empty = {"units": [], "more": 0, "total": 0}
            pause = gr.Timer(active=False)
            skipped = gr.skip()
            return (
                "",
                empty,
                empty,
                None,
                None,
                skipped,
                None,
                None,
                dict(NO_EXPORTS),
                pause,
                None,
            )
        with self._lease(ask, owner, request) as loaded:
            fresh = begin_walk(loaded, ask.text, chat=ask.chat)
        return self._show(ask, fresh, layer, owner, request, settings, playing=False)

    def write(
        self,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Choose the next token: behind the last, wherever one is looking."""
        if walk is None or walk.ended:
            return self._stay()
        with self._lease(ask, owner, request) as loaded:
            at_end = walk.go_to(len(walk.written))
            look = look_at(loaded, at_end, turn=self._ctx.slots.turn)
            token = choose_next(look, at_end, settings)
            walk = at_end.force(token, tuple(loaded.stop_ids))
        return self._show(ask, walk, layer, owner, request, settings, playing=not walk.ended)

    def tick(
        self,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Playing: the next token, until the model ends the text."""
        if walk is None or walk.ended:
            return (*self._stay()[:-2], gr.Timer(active=False), gr.skip())
        return self.write(ask, walk, layer, owner, request, settings)

    def rewind(
        self,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Drop the token that is looked at, and all after it; at the end drop the last."""
        if walk is None:
            return self._stay()
        if walk.at == len(walk.written):
            walk = walk.go_to(walk.at - 1)
        return self._show(ask, walk.rewind(), layer, owner, request, settings, playing=False)

    def look(
        self,
        event: gr.EventData,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Look at a token of the text; one of the prompt counts as the first that was written."""
        if walk is None:
            return self._stay()
        with self._lease(ask, owner, request) as loaded:
            units = look_at(loaded, walk, turn=self._ctx.slots.turn).units
        index = int(event._data["index"])
        first = last_token_of(units, index) - len(units[index].ids) + 1
        walk = walk.go_to(first - len(walk.prompt))
        return self._show(ask, walk, layer, owner, request, settings, playing=False)

    def force(
        self,
        event: gr.EventData,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Put the clicked candidate where one is looking."""
        if walk is None:
            return self._stay()
        with self._lease(ask, owner, request) as loaded:
            walk = walk.force(int(event._data["id"]), tuple(loaded.stop_ids))
        return self._show(ask, walk, layer, owner, request, settings, playing=False)

    def force_word(
        self,
        word: str,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Put the first token of a typed word where one is looking."""
        if walk is None:
            return self._stay()
        with self._lease(ask, owner, request) as loaded:
            walk = walk.force(find_target(loaded, word).id, tuple(loaded.stop_ids))
        return self._show(ask, walk, layer, owner, request, settings, playing=False)

    def refresh(
        self,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> tuple[Any, ...]:
        """Show the same place again, with another layer's attention."""
        if walk is None:
            return self._stay()
        return self._show(ask, walk, layer, owner, request, settings, playing=None)

    def play(self, speed: float) -> Any:
        """Write on, so many tokens a second."""
        return gr.Timer(value=1 / max(0.1, float(speed)), active=True)

    def change_speed(self, speed: float) -> Any:
        """Another speed; it neither starts nor stops."""
        return gr.Timer(value=1 / max(0.1, float(speed)))

    def pause(self) -> Any:
        """Stop writing."""
        return gr.Timer(active=False)

    def next_steps(
        self,
        text: str,
        request: gr.Request,
        n_tokens: int = 5,
        temperature: float = 1.0,
        seed: int = 123,
    ) -> dict[str, Any]:
        """Write tokens one at a time, and tell of each the model's own probability."""
        ctx, settings = self._ctx, SamplingSettings(temperature=temperature, seed=seed)
        with ctx.store.lease(ctx.source_of(None), ctx.owner_of(None, request)) as loaded:
            walk = begin_walk(loaded, text)
            for _ in range(min(max(1, n_tokens), 64)):
                look = look_at(loaded, walk, turn=ctx.slots.turn)
                walk = walk.force(choose_next(look, walk, settings), tuple(loaded.stop_ids))
                if walk.ended:
                    break
            look = look_at(loaded, walk, turn=ctx.slots.turn)
            said = loaded.tokenizer.decode(list(walk.written))
        chosen = look.probabilities[len(walk.prompt) :]
        return {"text": said, "ids": list(walk.written), "probabilities": chosen.tolist()}

    def _lease(self, ask: Ask, owner: str | None, request: gr.Request) -> Any:
        return self._ctx.store.lease(ask.source, self._ctx.owner_of(owner, request))

    def _stay(self) -> tuple[Any, ...]:
        return (gr.skip(),) * 11

    def _show(
        self,
        ask: Ask,
        walk: Walk,
        layer: Any,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
        *,
        playing: bool | None,
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`; `playing` False stops the clock, True and None leave it."""
        chosen = int(layer["index"]) if isinstance(layer, dict) and layer.get("count") else -1
        with self._lease(ask, owner, request) as loaded:
            n_layers = loaded.config.n_layers
            look = look_at(loaded, walk, layer=min(chosen, n_layers - 1), turn=self._ctx.slots.turn)
        locale = locale_of(request)
        kept = self._ctx.results.put(look.given)
        found = trace_next_token(look.given, settings)
        snippet = make_walk_snippet(ask.source, ask.text, ask.chat, settings, walk)
        return (
            self._say(walk, look, locale),
            make_chips(look),
            make_reads(look),
            {"id": kept, "settings": vars(settings)},
            self._lens(look, locale),
            {"index": look.layer, "count": n_layers},
            {
                "tensor": f"blocks.{look.layer}.attn.pattern",
                "shape": [1, len(walk.ids), len(walk.ids)],
                "file": source_file_of(look_at),
                "test": "tests/explorer/test_inspector_writing.py",
            },
            make_table(self._ctx.words, found, locale),
            {"csv": self._publish(look), "png": "step-bars", "python": snippet},
            gr.Timer(active=False) if playing is False else gr.skip(),
            walk,
        )

    def _say(self, walk: Walk, look: Look, locale: str) -> str:
        say = self._ctx.words.say
        where = say(locale, "next.step.at", n=walk.at + 1, written=len(walk.written))
        there = (
            say(locale, "next.step.chosen", token=look.chosen)
            if walk.at < len(walk.written)
            else say(locale, "next.step.ended" if walk.ended else "next.step.open")
        )
        cache = say(locale, "next.step.cache", n=look.position, size=short_bytes(look.cache_bytes))
        return f"{where} · {there} · {cache}"

    def _lens(self, look: Look, locale: str) -> dict[str, Any]:
        say, n_top = self._ctx.words.say, look.lens_probabilities.shape[1]
        columns = []
        for place in range(1, n_top + 1):
            columns += [
                say(locale, "next.step.lens_token", place=place),
                say(locale, "next.column_own"),
            ]
        cells = [
            [value for pair in zip(labels, shares, strict=True) for value in pair]
            for labels, shares in zip(
                look.lens_labels, look.lens_probabilities.tolist(), strict=True
            )
        ]
        return {
            "corner": say(locale, "next.step.layer"),
            "rows": list(look.stages),
            "cols": columns,
            "tokens": list(range(0, 2 * n_top, 2)),
            "cells": cells,
            "digits": 3,
        }

    def _publish(self, look: Look) -> str:
        cells = np.stack([look.probabilities, look.attention.astype(np.float64)], axis=1)
        return self._ctx.routes.publish(cells, column_labels=("probability", "attention"))


def make_chips(look: Look) -> dict[str, Any]:
    """The whole text, each token with the model's own probability for it."""
    described, at = make_units(look.units), 0
    for chip, unit in zip(described, look.units, strict=True):
        shares = look.probabilities[at : at + len(unit.ids)]
        at += len(unit.ids)
        if not np.isnan(shares).any():
            chip["p"] = round(float(np.prod(shares)), 6)
    return {"units": described, "more": 0, "total": len(look.probabilities)}


def make_reads(look: Look) -> Any:
    """The whole text, each token with how much the place reads of it."""
    return gr.update(
        value={"units": make_units(look.units), "more": 0, "total": len(look.attention)},
        weights=sum_over_units(look.units, look.attention.tolist()),
        selected=unit_of_token(look.units, look.position - 1),
    )
