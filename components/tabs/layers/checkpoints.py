"""The panel "checkpoints": the lens of one place in every checkpoint of a run."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.lens_grid import build_lens_grid
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.asking import NO_EXPORTS, Ask, Asking
from components.tabs.layers.figures import growth_message
from components.tabs.layers.lens import EVERY_S
from components.tabs.layers.place import say_target
from components.tabs.layers.rows import join_lines, write_head, write_row
from components.text import locale_of
from explorer.checkpoint_lens import CheckpointLens, stream_checkpoint_lens
from explorer.checkpoint_sources import run_of
from explorer.inspector_snippets import make_checkpoint_lens_snippet
from explorer.run_records import RunSummary
from explorer.snippets import source_file_of
from explorer.tokens import label_of_bytes

FORMULA = r"""
$$p_{s,l} = \mathrm{softmax}\big(W_U^{(s)} \cdot \mathrm{norm}^{(s)}(x_l^{(s)})\big)
\qquad s = \text{step of the checkpoint}, \quad l = \text{layer}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    run: gr.Dropdown
    asked: gr.Textbox
    start: gr.Button
    stop: gr.Button
    said: gr.HTML
    grid: gr.HTML
    cell: gr.HTML
    chart: gr.HTML
    working: Working
    kept: gr.State

    def outputs(self) -> list[Any]:
        """What reading fills."""
        drawer = self.working
        views = [self.run, self.said, self.grid, self.cell, self.chart]
        return [*views, drawer.facts, drawer.table, drawer.exports, self.kept]


def build(asking: Asking) -> None:
    """Build the panel and connect its events.

    Args:
        asking: The question of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    with gr.Row(elem_classes=["panel-controls"]):
        run = gr.Dropdown(
            [],
            label=t("layers.checkpoints_run"),
            info=t("layers.checkpoints_run_info"),
            scale=2,
            elem_id="checkpoints-run",
        )
        start = gr.Button(
            t("layers.checkpoints_read"),
            variant="primary",
            elem_id="checkpoints-read",
            min_width=0,
        )
        stop = gr.Button(t("layers.stop"), elem_id="checkpoints-stop", min_width=0)
        asked = gr.Textbox("", visible=False)
    said = build_line(words, elem_id="checkpoints-said", look="help")
    grid = build_lens_grid(words, elem_id="checkpoints-grid")
    gr.HTML(t("layers.checkpoints_cell"), elem_classes=["heading"])
    cell = build_number_matrix(words, elem_id="checkpoints-cell")
    chart = build_plotly_panel(
        words, elem_id="checkpoints-chart", label_key="layers.checkpoints_label", height=260
    )
    working = build_working(
        words, elem_id="checkpoints-working", formula=FORMULA, png="checkpoints-grid"
    )
    build_note(words, "layers.look_for_checkpoints", elem_id="checkpoints-note")
    _wire(asking, Parts(run, asked, start, stop, said, grid, cell, chart, working, gr.State("")))


def _wire(asking: Asking, parts: Parts) -> None:
    ctx, held, options = asking.ctx, asking.held["checkpoints"], asking.options
    on = CheckpointHandlers(asking)
    events = [held.change, parts.run.input, parts.start.click]
    inputs = [held, parts.run, parts.asked, ctx.owner]
    nothing = (gr.skip(), "", "", None, None, None, None, dict(NO_EXPORTS), "")
    wire(events, on.read, inputs, parts.outputs(), nothing=nothing, **options)
    wire(parts.stop.click, asking.stopper("checkpoints"), [], [], queue=False, **options)
    wire(parts.grid.cell, on.cell, [parts.kept], [parts.cell], queue=False, **options)
    ctx.address.register("layers", "run", parts.asked, shared=parts.run)
    expose(on.layers_checkpoints, "layers_checkpoints")


class CheckpointHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._ctx = asking.ctx

    def read(
        self, ask: Ask, chosen: str | None, asked: str, owner: str | None, request: gr.Request
    ) -> Iterator[tuple[Any, ...]]:
        """Read one checkpoint after the other, and show what is there already."""
        ctx, locale, holder = self._ctx, locale_of(request), self._ctx.owner_of(owner, request)
        runs = list_runs(ctx, holder)
        run = find_run(runs, chosen, asked, run_of(ask.source))
        offered = gr.Dropdown([name_run(run) for run in runs], value=run.id if run else None)
        if run is None or not ask.text:
            said = "" if run else ctx.words.say(locale, "layers.checkpoints_none")
            yield (offered, said, "", None, None, None, None, dict(NO_EXPORTS), "")
            return
        yield (offered, *[gr.skip()] * 8)
        shown_at, lens, lines = time.monotonic(), None, list[str]()
        with self._asking.working("checkpoints", request) as turn:
            for lens in stream_checkpoint_lens(
                lambda step: self._open(run.id, step, holder),
                run.checkpoints,
                ask.text,
                position=ask.position,
                target=ask.target,
                turn=turn,
            ):
                lines.append(make_line(lens, len(lens.lenses) - 1))
                if time.monotonic() - shown_at >= EVERY_S:
                    shown_at = time.monotonic()
                    head = make_head(lens, ctx.words.say(locale, "layers.checkpoints_step"))
                    yield (gr.skip(), gr.skip(), join_lines(head, lines), *[gr.skip()] * 6)
        assert lens is not None
        yield (gr.skip(), self._say(run, lens, locale), *self._rest(run, ask, lens, lines, locale))

    def cell(self, event: gr.EventData, kept: str, request: gr.Request) -> Any:
        """Show what the clicked layer of the clicked checkpoint would say."""
        lens = self._ctx.results.get(kept)
        if not isinstance(lens, CheckpointLens):
            return gr.skip()
        row, column = int(event._data["row"]), int(event._data["column"])
        return self._cell(lens, row, column, locale_of(request))

    def layers_checkpoints(
        self, run: str, text: str, request: gr.Request, position: int = -1, target: str = ""
    ) -> dict[str, Any]:
        """What every layer of a run's checkpoints would say at one position of a text."""
        ctx = self._ctx
        holder, view = ctx.owner_of(None, request), ctx.runs.view(run)
        *_, lens = stream_checkpoint_lens(
            lambda step: self._open(run, step, holder),
            view.summary.checkpoints,
            text,
            position=position,
            target=target,
            turn=ctx.slots.turn,
        )
        return {
            "steps": list(lens.steps),
            "stages": list(lens.stages),
            "tokens": [[row[0] for row in one.top_tokens] for one in lens.lenses],
            "target": lens.target.label,
            "probabilities": [one.answer_probabilities.tolist() for one in lens.lenses],
            "ranks": [(one.answer_ranks + 1).tolist() for one in lens.lenses],
        }

    def _open(self, run: str, step: int, owner: str) -> AbstractContextManager[Any]:
        return self._ctx.store.lease(self._ctx.runs.checkpoint_source(run, step), owner)

    def _say(self, run: RunSummary, lens: CheckpointLens, locale: str) -> str:
        said = self._ctx.words.say(
            locale,
            "layers.checkpoints_said",
            n=len(lens.steps),
            total=len(run.checkpoints),
            name=run.name,
            place=lens.position,
            token=lens.labels[lens.position],
        )
        cut = self._ctx.words.say(locale, "layers.checkpoints_cut", n=lens.n_left_out)
        followed = say_target(self._ctx.words, locale, lens.target)
        return " · ".join([said, followed, *([cut] if lens.n_left_out else [])])

    def _rest(
        self, run: RunSummary, ask: Ask, lens: CheckpointLens, lines: list[str], locale: str
    ) -> tuple[Any, ...]:
        head = make_head(lens, self._ctx.words.say(locale, "layers.checkpoints_step"))
        n_steps, n_stages = len(lens.steps), len(lens.stages)
        snippet = make_checkpoint_lens_snippet(run.id, ask.text, lens.position, ask.target)
        return (
            join_lines(head, lines),
            self._cell(lens, n_steps - 1, n_stages - 1, locale),
            growth_message(self._ctx.words, locale, lens),
            {
                "tensor": "blocks.*.resid_post",
                "shape": [n_steps, n_stages],
                "file": source_file_of(stream_checkpoint_lens),
                "test": "tests/explorer/test_checkpoint_lens.py",
            },
            self._table(lens, locale),
            {"csv": self._publish(lens), "png": "checkpoints-grid", "python": snippet},
            self._ctx.results.put(lens),
        )

    def _cell(self, lens: CheckpointLens, row: int, column: int, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        row = min(max(row, 0), len(lens.lenses) - 1)
        column = min(max(column, 0), len(lens.stages) - 1)
        one = lens.lenses[row]
        place = {"step": f"{lens.steps[row]:,}", "stage": lens.stages[column]}
        return {
            "corner": say(locale, "layers.checkpoints_at", **place),
            "rows": [str(rank + 1) for rank in range(one.top_ids.shape[1])],
            "cols": [say(locale, "layers.column_token"), say(locale, "layers.probability")],
            "tokens": [0],
            "cells": [
                [token, share]
                for token, share in zip(
                    one.top_tokens[column], one.top_probabilities[column].tolist(), strict=True
                )
            ],
            "digits": 4,
        }

    def _table(self, lens: CheckpointLens, locale: str) -> dict[str, Any]:
        """Of the last layer of each checkpoint: its answer, and where the followed token is."""
        say = self._ctx.words.say
        names = ("column_token", "probability", "lens_entropy", "lens_rank", "lens_target")
        return {
            "corner": say(locale, "layers.checkpoints_step"),
            "rows": [f"{step:,}" for step in lens.steps],
            "cols": [say(locale, f"layers.{name}") for name in names],
            "tokens": [0],
            "cells": [
                [
                    one.top_tokens[-1][0],
                    float(one.top_probabilities[-1, 0]),
                    float(one.entropies_nats[-1]),
                    str(int(one.answer_ranks[-1]) + 1),
                    float(one.answer_probabilities[-1]),
                ]
                for one in lens.lenses
            ],
            "digits": 4,
        }

    def _publish(self, lens: CheckpointLens) -> str:
        rows, names = [], []
        for step, one in zip(lens.steps, lens.lenses, strict=True):
            for i, stage in enumerate(lens.stages):
                names.append(f"{stage} > {one.top_tokens[i][0]}")
                best, entropy = one.top_probabilities[i, 0], one.entropies_nats[i]
                rank, share = one.answer_ranks[i] + 1, one.answer_probabilities[i]
                rows.append([step, best, entropy, rank, share])
        columns = ("step", "probability", "entropy_nats", "target_rank", "target_probability")
        return self._ctx.routes.publish(
            np.array(rows, dtype=np.float64), row_labels=names, column_labels=columns
        )


def list_runs(ctx: AppContext, owner: str) -> list[RunSummary]:
    """The visitor's runs that have checkpoints, newest first."""
    return [run for run in ctx.runs.list(owner) if run.checkpoints]


def name_run(run: RunSummary) -> tuple[str, str]:
    """(name, id), as the list offers it."""
    return f"{run.name} · {len(run.checkpoints):,}", run.id


def find_run(runs: list[RunSummary], *wanted: str | None) -> RunSummary | None:
    """The first run of those wanted that there is, else the newest."""
    known = {run.id: run for run in runs}
    found = (known[name] for name in wanted if name in known)
    return next(found, runs[0] if runs else None)


def make_head(lens: CheckpointLens, corner: str) -> str:
    """First line of the grid's value."""
    columns = [*lens.stages]
    return write_head(columns, corner, n_rows=len(lens.steps), at=len(columns) - 1)


def make_line(lens: CheckpointLens, row: int) -> str:
    """The row of one checkpoint."""
    one = lens.lenses[row]
    return write_row(
        f"{lens.steps[row]:,}",
        [label_of_bytes(tokens[0].encode()) for tokens in one.top_tokens],
        one.top_probabilities[:, 0],
        one.answer_ranks,
        one.entropies_nats,
    )
