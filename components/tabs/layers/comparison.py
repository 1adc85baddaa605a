"""The part "compare" of the panel "losses": one text, several models and checkpoints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.tabs.asking import Ask, Asking
from components.text import locale_of
from explorer.token_losses import stream_token_losses
from explorer.training.translation_setup import TRANSLATION

MOST_MODELS = 6
MOST_RUNS, MOST_CHECKPOINTS = 8, 6  # that are offered


@dataclass(frozen=True, eq=False)
class Comparison:
    """Components of the part."""

    models: gr.Dropdown
    run: gr.Button
    said: gr.HTML
    table: gr.HTML

    def wire(self, asking: Asking) -> None:
        """Connect the events.

        Args:
            asking: The question of the tab.
        """
        ctx, held, options = asking.ctx, asking.held["losses"], asking.options
        on = ComparisonHandlers(asking)
        wire(held.change, on.offer, [held, self.models, ctx.owner], [self.models], **options)
        inputs = [held, self.models, ctx.owner]
        wire(self.run.click, on.compare, inputs, [self.said, self.table], **options)


def build_comparison(asking: Asking) -> Comparison:
    """Build the part; `wire` it when the panel is there.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    gr.HTML(t("layers.compare"), elem_classes=["heading"])
    with gr.Row(elem_classes=["panel-controls"]):
        models = gr.Dropdown(
            [],
            value=[],
            multiselect=True,
            max_choices=MOST_MODELS,
            label=t("layers.compare_models"),
            info=t("layers.compare_models_info"),
            elem_id="losses-models",
        )
        run = gr.Button(t("layers.compare_run"), elem_id="losses-compare", min_width=0)
    said = build_line(words, elem_id="losses-compared", look="help")
    table = build_number_matrix(words, elem_id="losses-table")
    return Comparison(models, run, said, table)


class ComparisonHandlers:
    """Handlers of the part's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def offer(self, ask: Ask, chosen: list[str], owner: str | None, request: gr.Request) -> Any:
        """Models that are here, and checkpoints of the visitor's runs."""
        offered = list_models(self._ctx, ask.source, self._ctx.owner_of(owner, request))
        known = [source for _, source in offered]
        kept = [source for source in chosen or [] if source in known]
        return gr.Dropdown(offered, value=kept or known[:2])

    def compare(
        self, ask: Ask, chosen: list[str], owner: str | None, request: gr.Request
    ) -> Iterator[tuple[Any, Any]]:
        """Read the text with each of them; the rows come one by one."""
        ctx, locale = self._ctx, locale_of(request)
        holder = ctx.owner_of(owner, request)
        rows: list[str] = []
        cells: list[list[Any]] = []
        with self._asking.working("compare", request) as turn:
            for source in (chosen or [])[:MOST_MODELS]:
                yield ctx.words.say(locale, "layers.comparing", name=source), gr.skip()
                with ctx.store.lease(source, holder) as loaded:
                    *_, found = stream_token_losses(loaded, ask.text, turn=turn)
                rows.append(source)
                cells.append(
                    [
                        found.mean_nats,
                        found.perplexity,
                        str(len(found.nats)),
                        found.bits_per_byte,
                    ]
                )
                yield "", self._table(rows, cells, locale)

    def _table(self, rows: list[str], cells: list[list[Any]], locale: str) -> dict[str, Any]:
        say, names = self._ctx.words.say, ("nats", "perplexity", "tokens", "bits")
        return {
            "corner": say(locale, "layers.compare_model"),
            "rows": list(rows),
            "cols": [say(locale, f"layers.compare_{name}") for name in names],
            "cells": [list(row) for row in cells],
            "digits": 4,
        }


def list_models(ctx: AppContext, source: str, owner: str) -> list[tuple[str, str]]:
    """(name, source) of what can be compared: the open model first."""
    found = {source: source} if source else {}
    for entry in ctx.store.catalogue():
        if entry.presence == "here":
            found.setdefault(entry.id, entry.name)
    opened = [run for run in ctx.runs.list(owner) if run.objective != TRANSLATION]
    for run in opened[:MOST_RUNS]:
        for step in run.checkpoints[-MOST_CHECKPOINTS:]:
            found.setdefault(f"run:{run.id}@{step}", f"{run.name} · {step:,}")
    return [(name, key) for key, name in found.items()]
