"""The part "compare" of the panel "losses": one text, several models and checkpoints."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.errors import wire
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.working import build_exports
from components.model_choices import list_models
from components.tabs.asking import Ask, Asking
from components.text import locale_of
from explorer.errors import Stopped, TokenizerError
from explorer.inspector_snippets import make_comparison_snippet
from explorer.token_losses import stream_token_losses

COLUMNS = ("nats", "perplexity", "tokens", "bits")
MOST_MODELS = 6


@dataclass(frozen=True, eq=False)
class Comparison:
    """Components of the part."""

    models: gr.Dropdown
    asked: gr.Textbox
    run: gr.Button
    stop: gr.Button
    said: gr.HTML
    table: gr.HTML
    exports: gr.HTML

    def wire(self, asking: Asking) -> None:
        """Connect the events.

        Args:
            asking: The question of the tab.
        """
        ctx, held, options = asking.ctx, asking.held["losses"], asking.options
        on = ComparisonHandlers(asking)
        known = [held, self.models, self.asked, ctx.owner]
        wire(held.change, on.offer, known, [self.models], **options)
        inputs, outputs = [held, self.models, ctx.owner], [self.said, self.table, self.exports]
        wire(self.run.click, on.compare, inputs, outputs, **options)
        wire(self.stop.click, asking.stopper("compare"), [], [], queue=False, **options)
        ctx.address.register("layers", "models", self.asked, shared=self.models)


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
            scale=3,
            elem_id="losses-models",
        )
        run = gr.Button(t("layers.compare_run"), elem_id="losses-compare", min_width=0)
        stop = gr.Button(t("layers.stop"), elem_id="losses-compare-stop", min_width=0)
        asked = gr.Textbox("", visible=False)
    said = build_line(words, elem_id="losses-compared", look="help")
    table = build_number_matrix(words, elem_id="losses-table")
    exports = build_exports(words, elem_id="losses-compared-exports")
    return Comparison(models, asked, run, stop, said, table, exports)


class ComparisonHandlers:
    """Handlers of the part's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def offer(
        self, ask: Ask, chosen: list[str], asked: str, owner: str | None, request: gr.Request
    ) -> Any:
        """Models that are here, and checkpoints of runs; an address may ask for some."""
        offered = list_models(self._ctx, ask.source, self._ctx.owner_of(owner, request))
        known = [source for _, source in offered]
        kept = [source for source in chosen or asked.split(",") if source in known]
        return gr.Dropdown(offered, value=kept or known[:2])

    def compare(
        self, ask: Ask, chosen: list[str], owner: str | None, request: gr.Request
    ) -> Iterator[tuple[Any, ...]]:
        """Read the text with each of them; the rows come one by one."""
        ctx, locale = self._ctx, locale_of(request)
        holder = ctx.owner_of(owner, request)
        names = {source: name for name, source in list_models(ctx, ask.source, holder)}
        read: list[str] = []
        refused: TokenizerError | None = None
        cells: list[list[Any]] = []
        try:
            with self._asking.working("compare", request) as turn:
                for source in (chosen or [])[:MOST_MODELS]:
                    said = ctx.words.say(locale, "layers.comparing", name=names.get(source, source))
                    yield said, gr.skip(), gr.skip()
                    try:
                        with ctx.store.lease(source, holder) as loaded:
                            *_, found = stream_token_losses(loaded, ask.text, turn=turn)
                    except TokenizerError as problem:  # the others can read the text all the same
                        refused = problem
                        continue
                    read.append(source)
                    n_tokens = len(found.nats)
                    cells.append([found.mean_nats, found.perplexity, n_tokens, found.bits_per_byte])
                    rows = [names.get(one, one) for one in read]
                    exports = self._take_along(read, rows, cells, ask)
                    yield "", self._table(rows, cells, locale), exports
        except Stopped:
            yield "", gr.skip(), gr.skip()
        if refused is not None:
            yield "", gr.skip(), gr.skip()
            raise refused

    def _table(self, rows: list[str], cells: list[list[Any]], locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        return {
            "corner": say(locale, "layers.compare_model"),
            "rows": list(rows),
            "cols": [say(locale, f"layers.compare_{name}") for name in COLUMNS],
            "cells": [[nats, ppl, f"{n:,}", bits] for nats, ppl, n, bits in cells],
            "digits": 4,
        }

    def _take_along(
        self, read: list[str], rows: list[str], cells: list[list[Any]], ask: Ask
    ) -> dict[str, Any]:
        return {
            "csv": self._ctx.routes.publish(
                np.array(cells, dtype=np.float64), row_labels=rows, column_labels=COLUMNS
            ),
            "png": None,
            "python": make_comparison_snippet(read, ask.text),
        }
