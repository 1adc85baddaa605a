"""Handlers of the panel "experts": a model with experts, or one trained here; what layers cost."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.plotly_panel import figure_message
from components.model_choices import list_models_with_experts
from components.tabs.attention.drawer import Shown, draw_map, fill_drawer
from components.tabs.attention.figures import make_spread_bars
from components.tabs.attention.reading import (
    Reader,
    index_of,
    make_probability_bars,
    number_or_none,
    say_share,
    within,
    work_id,
)
from components.text import locale_of
from explorer.attention_lab.experts import (
    ExpertChoices,
    LayerSettings,
    compute_experts,
    find_published_experts,
    measure_layers,
)
from explorer.attention_lab.snippets import make_experts_snippet, make_layer_cost_snippet
from explorer.errors import ConfigError
from explorer.training.setup import recommended_setup

EXAMPLES = (
    "The blue cat sat on the warm mat.",
    "1, 2, 3, 5, 8, 13, 21, 34",
    "def area(w, h):\n    return w * h",
)
TEST_FILE = "tests/explorer/attention_lab/test_costs_of_attention.py"
MILLISECONDS = 1_000
TRAINED_STEPS, VOCABULARY, POLL_S = 300, 512, 1.0
ENDED = ("finished", "stopped", "failed", "interrupted", "broken")


class ExpertHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._reader = Reader(ctx)

    def offer(
        self, chosen: str | None, model_id: str | None, owner: str | None, request: gr.Request
    ) -> Any:
        """Models with experts, the open one first; the newest training where nothing was chosen."""
        found = self._list(model_id, owner, request)
        known = [source for _, source in found]
        opened = self._ctx.source_of(model_id)
        first = opened if opened in known else next(iter(known), "")
        return gr.Dropdown(found, value=chosen or first, allow_custom_value=True)

    def begin(
        self,
        chosen: str | None,
        text: str,
        layer: dict[str, int] | None,
        expert: float | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Show what was chosen at once; where nothing can be, say how to come by a model."""
        if chosen:
            return self.show(chosen, text, layer, expert, owner, request)
        say = self._ctx.words.say
        return gr.skip(), say(locale_of(request), "attention.experts.none"), *(gr.skip(),) * 7

    def show(
        self,
        chosen: str | None,
        text: str,
        layer: dict[str, int] | None,
        expert: float | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Read the text, and again with the chosen expert off."""
        locale, say = locale_of(request), self._ctx.words.say
        off = _read_expert(expert)
        with self._reader.open(chosen or None, owner, request) as (source, loaded):
            at = within(index_of(layer), loaded.config.n_layers)
            found = compute_experts(
                loaded, text, layer=at["index"], expert=off, turn=self._ctx.slots.turn
            )
        index = at["index"]
        names = [f"e{i}" for i in range(found.n_experts)]
        labels = [f"{i} {label}" for i, label in enumerate(found.labels)]
        drawer = Shown(
            tensor=f"blocks.{index}.router.logits",
            cells=found.probabilities[index],
            rows=labels,
            columns=names,
            function=compute_experts,
            test=TEST_FILE,
            python=make_experts_snippet(source, text, index, off),
            png="lab-experts-map",
        )
        title = say(locale, "attention.experts.map", layer=index)
        return (
            at,
            self._said(found, index, locale),
            draw_map(self._ctx, found.probabilities[index], labels, title, columns=names),
            self._taken(found, index, labels, locale),
            self._loads(found, index, off is not None, locale),
            make_probability_bars(found, self._ctx.words, locale),
            *fill_drawer(self._ctx, drawer),
        )

    def train(self, owner: str | None, request: gr.Request) -> Iterator[tuple[Any, Any]]:
        """Train a small model with experts; its newest checkpoint is chosen when it ends."""
        ctx, locale, say = self._ctx, locale_of(request), self._ctx.words.say
        holder = ctx.owner_of(owner, request)
        # byte pairs: a vocabulary of characters would know no others than its text has
        setup = replace(
            recommended_setup("tiny"),
            name="experts",
            style="moe",
            tokenizer="bpe",
            vocab_size=VOCABULARY,
            n_steps=TRAINED_STEPS,
        )
        with ctx.stops.armed(work_id(request, "experts")) as switch:
            *_, ready = ctx.runs.create(setup, holder, cancelled=switch.is_set)
            assert ready.run_id is not None, "the last step of making a run names it"
            ctx.runs.start(ready.run_id, holder)
            stopping = False
            while (run := ctx.runs.view(ready.run_id).summary).state not in ENDED:
                yield (
                    gr.skip(),
                    say(locale, "attention.experts.training", step=run.step, steps=run.n_steps),
                )
                if stopping:  # it ends with the step that it is at
                    time.sleep(POLL_S)
                elif switch.wait(POLL_S):
                    ctx.runs.stop(run.id, holder)
                    stopping = True
        found = self._list(None, owner, request)
        newest = next((source for _, source in found if run.id in source), "")
        key = "attention.experts.trained" if newest else "attention.experts.not_trained"
        yield (
            gr.Dropdown(found, value=newest, allow_custom_value=True),
            say(locale, key, name=run.name, step=run.step),
        )

    def stop(self, request: gr.Request) -> None:
        """Stop the training."""
        self._ctx.stops.stop(work_id(request, "experts"))

    def measure(self, request: gr.Request, settings: LayerSettings) -> tuple[Any, ...]:
        """Measure a layer with experts beside dense ones."""
        locale, say = locale_of(request), self._ctx.words.say
        costs = measure_layers(settings, turn=self._ctx.slots.turn)
        names = [say(locale, f"attention.experts.name.{cost.name}") for cost in costs]
        columns = [
            say(locale, f"attention.experts.{key}") for key in ("held", "used", "bytes", "time")
        ]
        cells = [
            [c.n_parameters, c.n_active, c.n_bytes / 10**6, MILLISECONDS * c.forward_s[1]]
            for c in costs
        ]
        spread = [tuple(MILLISECONDS * s for s in cost.forward_s) for cost in costs]
        figure = make_spread_bars(
            names,
            {columns[3]: spread},  # type: ignore[dict-item]
            x_title=columns[3],
        )
        table = {
            "rows": names,
            "cols": columns,
            "cells": [[f"{a:,}", f"{b:,}", f"{c:.2f}", f"{d:.2f}"] for a, b, c, d in cells],
        }
        drawer = Shown(
            tensor="router, experts.*",
            cells=np.array(cells, dtype=np.float64),
            rows=names,
            columns=columns,
            function=measure_layers,
            test=TEST_FILE,
            python=make_layer_cost_snippet(settings),
            png="lab-experts-plot",
        )
        said = ""
        if settings.at_work < settings.n_active:
            asked, experts = settings.n_active, settings.n_experts
            said = say(locale, "attention.experts.fewer", asked=asked, experts=experts)
        return said, figure_message(figure), table, *fill_drawer(self._ctx, drawer)

    def published(self, request: gr.Request) -> dict[str, Any]:
        """Published models with experts: weights held, weights at work."""
        locale, say = locale_of(request), self._ctx.words.say
        found = find_published_experts()
        return {
            "rows": [model.name for model in found],
            "cols": [say(locale, f"attention.experts.{key}") for key in ("held", "used", "share")],
            "cells": [
                [
                    f"{model.n_parameters:,}",
                    f"{model.n_active:,}",
                    f"{100 * model.n_active / model.n_parameters:.1f} %",
                ]
                for model in found
            ],
        }

    def example(self, event: gr.EventData) -> str:
        """Type an example."""
        return EXAMPLES[int(event._data["index"])]

    def attention_experts(
        self, text: str, layer: int, expert: int, request: gr.Request
    ) -> dict[str, Any]:
        """Experts of each token in the page's first model; expert -1 switches none off."""
        with self._reader.open(None, None, request) as (_, loaded):
            found = compute_experts(
                loaded,
                text,
                layer=layer,
                expert=None if expert < 0 else expert,
                turn=self._ctx.slots.turn,
            )
        return {
            "labels": list(found.labels),
            "probabilities": found.probabilities[layer].tolist(),
            "chosen": found.chosen[layer].tolist(),
            "load": found.load.tolist(),
            "load_without": found.load_without.tolist(),
            "loss": number_or_none(found.loss),
            "loss_without": number_or_none(found.loss_without),
        }

    def attention_experts_cost(self, *, settings: LayerSettings) -> list[dict[str, Any]]:
        """Measure a layer with experts beside dense ones with as much work or as many weights."""
        return [vars(cost) for cost in measure_layers(settings, turn=self._ctx.slots.turn)]

    def _said(self, found: ExpertChoices, layer: int, locale: str) -> str:
        say = self._ctx.words.say
        key = "attention.experts.losses"
        if np.isnan(found.loss):
            key = "attention.lab_no_loss"
        losses = say(locale, key, before=f"{found.loss:.4f}", after=f"{found.loss_without:.4f}")
        loads = (found.load[layer], found.load_without[layer])
        most = " → ".join(dict.fromkeys(f"{100 * load.max():.1f}" for load in loads))
        even = f"{100 / found.n_experts:.1f}"
        busiest = say(locale, "attention.experts.busiest", most=most, even=even)
        return f"{losses} {busiest}"

    def _loads(
        self, found: ExpertChoices, layer: int, is_one_off: bool, locale: str
    ) -> dict[str, Any]:
        """The load of each expert now, and beside it what it was before one was switched off."""
        bars: list[dict[str, Any]] = [
            {"label": f"e{expert}", "value": float(share)}
            for expert, share in enumerate(found.load_without[layer])
        ]
        if is_one_off:
            for bar, before in zip(bars, found.load[layer].tolist(), strict=True):
                was = say_share(before)
                bar["note"] = self._ctx.words.say(locale, "attention.lab_was", before=was)
        return {"bars": bars, "unit": "%"}

    def _taken(
        self, found: ExpertChoices, layer: int, labels: list[str], locale: str
    ) -> dict[str, Any]:
        """For each token its experts and their weights."""
        say = self._ctx.words.say
        rows = zip(found.chosen[layer].tolist(), found.weights[layer].tolist(), strict=True)
        pairs = [zip(chosen, weights, strict=True) for chosen, weights in rows]
        return {
            "corner": say(locale, "attention.experts.token"),
            "rows": labels,
            "cols": [say(locale, "attention.experts.taken")],
            "cells": [[" + ".join(f"e{expert} {w:.2f}" for expert, w in row)] for row in pairs],
        }

    def _list(
        self, model_id: str | None, owner: str | None, request: gr.Request
    ) -> list[tuple[str, str]]:
        return list_models_with_experts(
            self._ctx, self._ctx.source_of(model_id), self._ctx.owner_of(owner, request)
        )


def _read_expert(typed: float | None) -> int | None:
    """The expert that is switched off; None where the number is below 0 or there is none."""
    if typed is None:
        return None
    if not float(typed).is_integer():
        raise ConfigError(
            f"{typed:g} is no expert; type a whole number, or -1 to switch none off",
            code="lab-expert-whole",
            found=f"{typed:g}",
        )
    return None if typed < 0 else int(typed)
