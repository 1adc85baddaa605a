"""What happens when somebody looks at a run, or asks something of it."""

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.code_block import make_code_block
from components.kit.number_matrix import MOST_TABLE_ROWS
from components.tabs.pretrain.run_views import make_run_list
from components.text import locale_of
from explorer.errors import JobError
from explorer.run_records import RunSummary, RunView
from explorer.training.run_snippets import (
    evaluation_file,
    make_run_commands,
    make_run_snippet,
)
from explorer.training.translation_setup import TRANSLATION

# Which buttons a state shows, in the order of `live.ACTIONS`.
BUTTONS: dict[str, tuple[str, ...]] = {
    "prepared": ("start",),
    "queued": ("stop",),
    "running": ("pause", "keep", "stop"),
    "pausing": ("resume", "keep", "stop"),
    "paused": ("resume", "keep", "stop"),
    "stopping": (),
    "finished": (),
    "stopped": ("resume",),
    "failed": ("resume",),
    "interrupted": ("resume",),
    "broken": (),
}
ACTIONS = ("start", "pause", "resume", "keep", "stop")


class RunHandlers:
    """Handlers of the panel "live"; all but those for programs return the values of `show`.

    Args:
        ctx: The page's context.
        tab: Whose runs: those that begin from nothing, that begin from a model, or translate.
    """

    def __init__(self, ctx: AppContext, tab: str = "pretrain") -> None:
        self._ctx = ctx
        self._tab = tab

    # ------------------------------------------------------------------------------- looking
    def visit(
        self, asked: str, memory: str | None, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """The page opens: the run of the address, else the last one, else the newest."""
        owned = self._list(self._ctx.owner_of(owner, request))
        known = [run_id for run_id in (asked, memory) if run_id and self._find(run_id) is not None]
        newest = [summary.id for summary in owned if summary.state != "broken"][:1]
        return self.show(next(iter(known + newest), None), owner, request)

    def pick(self, owner: str | None, event: gr.EventData, request: gr.Request) -> tuple[Any, ...]:
        """Look at another run."""
        return self.show(str(event._data["run"]), owner, request)

    def refresh(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """The state has changed, or there is a new checkpoint."""
        return self.show(run, owner, request)

    def show(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Values for `live.Parts.outputs`."""
        ctx, locale = self._ctx, locale_of(request)
        visitor = ctx.owner_of(owner, request)
        owned = self._list(visitor)
        view = None if run is None else self._find(run)
        listed = owned
        if view is not None and all(summary.id != run for summary in owned):
            listed = (view.summary, *owned)  # somebody gave the link of his run away
        may_change = view is not None and ctx.runs.owns(view.summary.id, visitor)
        shown = BUTTONS[view.summary.state] if view is not None and may_change else ()
        chosen = None if view is None else view.summary.id
        return (
            make_run_list(ctx.words, locale, listed, chosen),
            None if chosen is None else {"run": chosen},
            *(gr.Button(visible=name in shown) for name in ACTIONS),
            gr.Button(visible=view is not None and opens_elsewhere(view.summary)),
            *self._working(view, locale),
            *self._elsewhere(chosen),
            chosen,
            chosen,
            chosen or "",
        )

    def _list(self, visitor: str) -> tuple[RunSummary, ...]:
        """The visitor's runs of this tab."""
        return tuple(s for s in self._ctx.runs.list(visitor) if tab_of(s) == self._tab)

    def _find(self, run: str) -> RunView | None:
        """The run, or None where it was deleted or is none: an old link opens all the same."""
        try:
            view = self._ctx.runs.view(run)
        except JobError:
            return None
        return view if tab_of(view.summary) == self._tab else None

    def _elsewhere(self, run: str | None) -> tuple[Any, str]:
        """The drawer of the commands that train the run without the page, and what it says."""
        if run is None:
            return gr.Accordion(visible=False), ""
        # No stranger learns where things are on this host.
        named = None if self._ctx.settings.public else self._ctx.runs.folder(run).path
        commands = make_code_block(make_run_commands(run, named), "bash")
        return gr.Accordion(visible=True), commands

    def _working(self, view: RunView | None, locale: str) -> tuple[Any, Any, Any]:
        """Facts, table and exports of the drawer: the evaluations."""
        if view is None or not view.evaluated:
            return None, None, {"csv": None, "png": None, "python": None}
        say = self._ctx.words.say
        rows = view.evaluated
        columns = [say(locale, f"pretrain.column_{name}") for name in COLUMNS]
        cells = [[e.tokens, e.training_loss, e.validation_loss] for e in rows]
        table = {
            "corner": say(locale, "pretrain.column_step"),
            "rows": [f"{e.step:,}" for e in rows[-MOST_TABLE_ROWS:]],
            "cols": columns,
            "cells": [[f"{tokens:,}", *losses] for tokens, *losses in cells[-MOST_TABLE_ROWS:]],
            "digits": 4,
        }
        matrix = self._ctx.routes.publish(
            np.array(cells, dtype=np.float64),
            row_labels=[str(e.step) for e in rows],
            column_labels=columns,
        )
        facts = {
            "tensor": "logits",
            "shape": [
                view.config.data.batch_size,
                view.config.data.context,
                view.config.model.vocab_size,
            ],
            "dtype": view.config.precision,
            "file": evaluation_file(),
        }
        python = make_run_snippet(view.summary.id)
        return facts, table, {"csv": matrix, "png": None, "python": python}

    # -------------------------------------------------------------------------------- acting
    def start(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Let a run that was made begin."""
        return self._act(self._ctx.runs.start, run, owner, request)

    def pause(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Save and wait."""
        return self._act(self._ctx.runs.pause, run, owner, request)

    def resume(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """Go on, from where it waits or from the last checkpoint."""
        return self._act(self._ctx.runs.resume, run, owner, request)

    def keep(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """End with a last checkpoint."""
        return self._act(self._ctx.runs.stop_and_keep, run, owner, request)

    def stop(self, run: str | None, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """End without one."""
        return self._act(self._ctx.runs.stop, run, owner, request)

    def rename(
        self, run: str | None, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Call a run something else."""
        visitor = self._ctx.owner_of(owner, request)
        self._ctx.runs.rename(str(event._data["run"]), str(event._data["name"]), visitor)
        return self.show(run, owner, request)

    def remove(
        self, run: str | None, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Delete a run; the newest of the others is looked at next."""
        gone = str(event._data["run"])
        self._ctx.runs.delete(gone, self._ctx.owner_of(owner, request))
        return self.visit("", None if run == gone else run, owner, request)

    def open_newest(self, run: str | None, owner: str | None, request: gr.Request) -> str:
        """Open the newest checkpoint, or the best one of a fine-tuning, in every other tab."""
        summary = self._ctx.runs.view(run or "").summary
        step = 0 if summary.offered_step is None else summary.offered_step
        return self._ctx.runs.checkpoint_source(summary.id, step)

    def _act(
        self,
        action: Callable[[str, str], None],
        run: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        action(run or "", self._ctx.owner_of(owner, request))
        return self.show(run, owner, request)

    # -------------------------------------------------------------------------- for programs
    def start_run(self, run: str, request: gr.Request) -> dict[str, Any]:
        """Let a run begin, or go on from its last checkpoint or after a pause."""
        self._ctx.runs.resume(run, self._ctx.owner_of(None, request))
        return self.read_run(run)

    def pause_run(self, run: str, request: gr.Request) -> dict[str, Any]:
        """Save a run and let it wait."""
        self._ctx.runs.pause(run, self._ctx.owner_of(None, request))
        return self.read_run(run)

    def stop_run(self, run: str, keep: bool, request: gr.Request) -> dict[str, Any]:
        """End a run; with `keep`, after a last checkpoint."""
        runs = self._ctx.runs
        (runs.stop_and_keep if keep else runs.stop)(run, self._ctx.owner_of(None, request))
        return self.read_run(run)

    def list_runs(self, request: gr.Request) -> list[dict[str, Any]]:
        """List the runs of the caller, newest first."""
        return [_plain(s) for s in self._list(self._ctx.owner_of(None, request))]

    def read_run(self, run: str) -> dict[str, Any]:
        """Read a run by its id: its state, and all losses so far."""
        view = self._ctx.runs.view(run)
        return {
            **_plain(view.summary),
            "steps": view.steps.tolist(),
            "losses": [loss if np.isfinite(loss) else None for loss in view.losses.tolist()],
            "evaluated": [[e.step, e.training_loss, e.validation_loss] for e in view.evaluated],
        }

    def rename_run(self, run: str, name: str, request: gr.Request) -> dict[str, Any]:
        """Call a run something else."""
        self._ctx.runs.rename(run, name, self._ctx.owner_of(None, request))
        return self.read_run(run)

    def delete_run(self, run: str, request: gr.Request) -> bool:
        """Delete a run with all its checkpoints."""
        self._ctx.runs.delete(run, self._ctx.owner_of(None, request))
        return True


# Objectives whose runs are shown apart; all others are those of the Fine-tune tab.
OWN_TABS = ("pretrain", TRANSLATION)
COLUMNS = ("tokens", "training", "validation")


def tab_of(summary: RunSummary) -> str:
    """Where a run is shown: a tab, or the panel of translations."""
    return summary.objective if summary.objective in OWN_TABS else "finetune"


def opens_elsewhere(summary: RunSummary) -> bool:
    """Whether there is a checkpoint that other tabs can open: an encoder-decoder has its own."""
    return bool(summary.checkpoints) and summary.objective != TRANSLATION


def _plain(summary: RunSummary) -> dict[str, Any]:
    return {**asdict(summary), "checkpoints": list(summary.checkpoints)}
