"""Handlers of the panel "step"."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
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

Values = tuple[Any, ...]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What an event of the panel finds.

    Args:
        ask: The question of the tab.
        walk: The text so far; None before there is one.
        layer: Value of the picker: whose attention is shown.
        word: What is typed to be put at the place.
        owner: Whose it is.
        request: The visitor's.
        settings: The dials.
        data: What came with the event.
    """

    ask: Ask
    walk: Walk | None = None
    layer: Any = None
    word: str = ""
    owner: str | None = None
    request: gr.Request
    settings: SamplingSettings
    data: Mapping[str, Any] = field(default_factory=dict)


def with_scene(handler: Callable[[Scene], Values]) -> Callable[..., Values]:
    """Let a handler of a `Scene` take its parts one by one, as Gradio gives them.

    Args:
        handler: Gives values for `Parts.outputs`.
    """

    def call(
        event: gr.EventData,
        ask: Ask,
        walk: Walk | None,
        layer: Any,
        word: str,
        owner: str | None,
        request: gr.Request,
        settings: SamplingSettings,
    ) -> Values:
        data = event._data or {}
        return handler(
            Scene(
                ask=ask,
                walk=walk,
                layer=layer,
                word=word,
                owner=owner,
                request=request,
                settings=settings,
                data=data,
            )
        )

    return call


class StepHandlers:
    """Handlers of the panel's events; those of a `Scene` fill `Parts.outputs`.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._ctx = asking.ctx

    def begin(self, scene: Scene) -> Values:
        """Start at the end of a new prompt."""
        if not scene.ask.text:
            return self._nothing()
        with self._lease(scene) as loaded:
            fresh = begin_walk(loaded, scene.ask.text, chat=scene.ask.chat)
        return self._show(scene, fresh, playing=False)

    def write(self, scene: Scene) -> Values:
        """Choose the next token: behind the last, wherever one is looking."""
        walk = scene.walk
        if walk is None or walk.ended:
            return self._stay()
        with self._lease(scene) as loaded:
            at_end = walk.go_to(len(walk.written))
            look = look_at(loaded, at_end, turn=self._ctx.slots.turn)
            token = choose_next(look, at_end, scene.settings)
            walk = at_end.force(token, tuple(loaded.stop_ids))
        return self._show(scene, walk, playing=not walk.ended)

    def tick(self, scene: Scene) -> Values:
        """Playing: the next token, until the model ends the text."""
        if scene.walk is None or scene.walk.ended:
            return (*self._stay()[:-2], gr.Timer(active=False), gr.skip())
        return self.write(scene)

    def rewind(self, scene: Scene) -> Values:
        """Drop the token that is looked at, and all after it; at the end drop the last."""
        walk = scene.walk
        if walk is None:
            return self._stay()
        if walk.at == len(walk.written):
            walk = walk.go_to(walk.at - 1)
        return self._show(scene, walk.rewind(), playing=False)

    def look(self, scene: Scene) -> Values:
        """Look at a token of the text; one of the prompt counts as the first that was written."""
        walk = scene.walk
        if walk is None:
            return self._stay()
        with self._lease(scene) as loaded:
            units = look_at(loaded, walk, turn=self._ctx.slots.turn).units
        index = int(scene.data["index"])
        first = last_token_of(units, index) - len(units[index].ids) + 1
        return self._show(scene, walk.go_to(first - len(walk.prompt)), playing=False)

    def force(self, scene: Scene) -> Values:
        """Put the clicked candidate where one is looking."""
        return self._force(scene, lambda loaded: int(scene.data["id"]))

    def force_word(self, scene: Scene) -> Values:
        """Put the first token of a typed word where one is looking."""
        return self._force(scene, lambda loaded: find_target(loaded, scene.word).id)

    def refresh(self, scene: Scene) -> Values:
        """Show the same place again, with another layer's attention."""
        return self._stay() if scene.walk is None else self._show(scene, scene.walk, playing=None)

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

    def _force(self, scene: Scene, token_of: Callable[[Any], int]) -> Values:
        if scene.walk is None:
            return self._stay()
        with self._lease(scene) as loaded:
            walk = scene.walk.force(token_of(loaded), tuple(loaded.stop_ids))
        return self._show(scene, walk, playing=False)

    def _lease(self, scene: Scene) -> Any:
        owner = self._ctx.owner_of(scene.owner, scene.request)
        return self._ctx.store.lease(scene.ask.source, owner)

    def _stay(self) -> Values:
        return (gr.skip(),) * 11

    def _nothing(self) -> Values:
        empty = {"units": [], "more": 0, "total": 0}
        views = ("", empty, empty, None, None, gr.skip())
        return (*views, None, None, dict(NO_EXPORTS), gr.Timer(active=False), None)

    def _show(self, scene: Scene, walk: Walk, *, playing: bool | None) -> Values:
        """Values for `Parts.outputs`; `playing` False stops the clock, True and None leave it."""
        layer, ask = scene.layer, scene.ask
        chosen = int(layer["index"]) if isinstance(layer, dict) and layer.get("count") else -1
        with self._lease(scene) as loaded:
            n_layers = loaded.config.n_layers
            look = look_at(loaded, walk, layer=min(chosen, n_layers - 1), turn=self._ctx.slots.turn)
        locale = locale_of(scene.request)
        kept = self._ctx.results.put(look.given)
        found = trace_next_token(look.given, scene.settings)
        snippet = make_walk_snippet(ask.source, ask.text, ask.chat, scene.settings, walk)
        return (
            self._say(walk, look, locale),
            make_chips(look),
            make_reads(look),
            {"id": kept, "settings": vars(scene.settings)},
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
        part = [] if look.part is None else [say(locale, f"next.step.{look.part}")]
        return " · ".join([where, there, *part, cache])

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
