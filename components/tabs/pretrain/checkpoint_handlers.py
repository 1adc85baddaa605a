"""Handlers of the panel "checkpoints": a prompt, read and continued by a checkpoint."""

from dataclasses import dataclass, field, replace
from typing import Any

import gradio as gr

from components.context import AppContext
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.views import Shown
from components.text import Words, locale_of
from explorer.errors import ConfigError, JobError
from explorer.logit_lens import LogitLens
from explorer.run_records import RunView

SAMPLE_TOKENS = 60
LENS_CHOICES = 2  # a third makes the table wider than its place
MOST_SAMPLE_TOKENS = 500
# What a run is asked to go on from whose text came without prompts.
USUAL_PROMPT = "The"


@dataclass(frozen=True)
class Look:
    """What the panel shows.

    Args:
        run: The run; "" before one was chosen.
        step: Of the checkpoint; -1 before there is one.
        prompt: What it read.
        active: Whether somebody has looked at the panel yet.
        shown: Its attention, as the Attention tab has it.
    """

    run: str = ""
    step: int = -1
    prompt: str = ""
    active: bool = False
    shown: Shown = field(default_factory=Shown)


class CheckpointHandlers:
    """Handlers of the panel's events; all but `open` and `sample` give `Parts.outputs`.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx
        self._heads = HeadsHandlers(ctx)

    def enter(
        self, look: Look, run: str | None, prompt: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """The panel is opened: the newest checkpoint, or the one that was looked at."""
        return self.follow(replace(look, active=True), run, prompt, owner, request)

    def follow(
        self, look: Look, run: str | None, prompt: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Another run, or a new checkpoint of this one: what is looked at stays if it can."""
        view = self._view(run)
        if view is None:
            return self._nothing(replace(look, run="", step=-1), "no_run", request)
        steps = view.summary.checkpoints
        if not steps:
            return self._nothing(replace(look, run=view.summary.id, step=-1), "none_yet", request)
        if not look.active:
            return self._skip(replace(look, run=view.summary.id, step=-1))
        if look.run == view.summary.id and look.step in steps:
            return self._only_place(look, view, request)
        if look.run != view.summary.id:
            prompt = _first_prompt(view)
        look = replace(look, run=view.summary.id, step=steps[-1])
        return self._show(look, view, prompt, owner, request)

    def step(
        self,
        look: Look,
        run: str | None,
        prompt: str,
        owner: str | None,
        event: gr.EventData,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Go to another checkpoint."""
        view = self._ctx.runs.view(run or "")
        steps = view.summary.checkpoints
        index = min(max(int(event._data["index"]), 0), len(steps) - 1)
        return self._show(replace(look, step=steps[index]), view, prompt, owner, request)

    def read(
        self, look: Look, run: str | None, prompt: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Read another prompt at the same checkpoint."""
        view = self._ctx.runs.view(run or "")
        if look.step < 0:
            return self.enter(look, run, prompt, owner, request)
        return self._show(look, view, prompt, owner, request)

    def layer(
        self, look: Look, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Show another layer."""
        return self._moved(look, self._heads.layer(look.shown, owner, event, request), gr.skip())

    def head(
        self, look: Look, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Enlarge another head."""
        return self._moved(look, self._heads.head(look.shown, owner, event, request), gr.skip())

    def query(
        self, look: Look, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Look at the row of another token."""
        values = self._heads.query(look.shown, owner, event, request)
        return self._moved(look, values, self._lens(values[-1], owner, request))

    def unit(
        self, look: Look, owner: str | None, event: gr.EventData, request: gr.Request
    ) -> tuple[Any, ...]:
        """Look at the row of a chip."""
        values = self._heads.unit(look.shown, owner, event, request)
        return self._moved(look, values, self._lens(values[-1], owner, request))

    def open(self, look: Look) -> str:
        """Open this checkpoint in every other tab."""
        return self._ctx.runs.checkpoint_source(look.run, look.step)

    def sample(
        self, run: str, step: int, prompt: str, n_tokens: int, request: gr.Request
    ) -> dict[str, Any]:
        """Let a checkpoint of a run go on from a prompt, taking the likeliest token each time."""
        if not 1 <= n_tokens <= MOST_SAMPLE_TOKENS:
            raise ConfigError(
                f"a sample of {n_tokens} tokens is not possible; choose 1 to {MOST_SAMPLE_TOKENS}",
                code="sample-length",
                found=n_tokens,
                most=MOST_SAMPLE_TOKENS,
            )
        source = self._ctx.runs.checkpoint_source(run, step)
        return {"source": source, "text": self._write(source, prompt, n_tokens, None, request)}

    # ------------------------------------------------------------------------------- showing
    def _view(self, run: str | None) -> RunView | None:
        try:
            return None if run is None else self._ctx.runs.view(run)
        except JobError:  # it was deleted on another page
            return None

    def _write(
        self, source: str, prompt: str, n_tokens: int, owner: str | None, request: gr.Request
    ) -> str:
        from explorer.training.evaluate import write_sample

        ctx = self._ctx
        with ctx.store.lease(source, ctx.owner_of(owner, request)) as loaded:
            return write_sample(
                loaded.model,
                loaded.tokenizer,
                prompt,
                n_tokens=min(n_tokens, loaded.config.context_length - 1) or 1,
                temperature=0.0,
                seed=0,
                turn=ctx.slots.turn,
            )

    def _show(
        self, look: Look, view: RunView, prompt: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Read the prompt with the checkpoint, and let it go on."""
        prompt = prompt or _first_prompt(view)
        source = self._ctx.runs.checkpoint_source(look.run, look.step)
        written = self._write(source, prompt, SAMPLE_TOKENS, owner, request)
        shown = replace(look.shown, stack_id="", matrix_id="")
        values = self._heads.text(shown, shown.asked, prompt, source, owner, request)
        look = replace(look, prompt=prompt, active=True, shown=values[-1])
        return (
            *self._place(look, view, request),
            prompt,
            prompt + written,
            gr.Button(visible=True),
            *_attention(values, self._lens(look.shown, owner, request)),
            look,
        )

    def _moved(self, look: Look, values: tuple[Any, ...], lens: Any) -> tuple[Any, ...]:
        look = replace(look, shown=values[-1])
        return (*[gr.skip()] * 5, *_attention(values, lens), look)

    def _lens(self, shown: Shown, owner: str | None, request: gr.Request) -> dict[str, Any]:
        """What each layer would say after the token that is looked at."""
        from explorer.logit_lens import compute_logit_lens

        ctx, ids = self._ctx, self._heads.maps(shown, owner, request).ids
        with ctx.store.lease(shown.source, ctx.owner_of(owner, request)) as loaded:
            lens = compute_logit_lens(
                loaded, ids, position=shown.query, n_top=LENS_CHOICES, turn=ctx.slots.turn
            )
        return make_lens_table(ctx.words, locale_of(request), lens)

    def _only_place(self, look: Look, view: RunView, request: gr.Request) -> tuple[Any, ...]:
        return (*self._place(look, view, request), *[gr.skip()] * 12, look)

    def _skip(self, look: Look) -> tuple[Any, ...]:
        return (*[gr.skip()] * 14, look)

    def _nothing(self, look: Look, key: str, request: gr.Request) -> tuple[Any, ...]:
        said = self._ctx.words.say(locale_of(request), f"pretrain.checkpoints_{key}")
        stepper = {"index": 0, "count": 0}
        return (
            said,
            stepper,
            gr.skip(),
            "",
            gr.Button(visible=False),
            *[gr.skip()] * 5,
            None,
            *[gr.skip()] * 3,
            look,
        )

    def _place(self, look: Look, view: RunView, request: gr.Request) -> tuple[Any, Any]:
        steps = view.summary.checkpoints
        said = self._ctx.words.say(
            locale_of(request),
            "pretrain.checkpoint_at",
            name=view.summary.name,
            step=f"{look.step:,}",
        )
        return said, {"index": steps.index(look.step), "count": len(steps)}


def _first_prompt(view: RunView) -> str:
    return next(iter(view.config.watch.prompts), USUAL_PROMPT)


def make_lens_table(words: Words, locale: str, lens: LogitLens) -> dict[str, Any]:
    """A row for each layer: its likeliest tokens, how sure it is, where the answer stands."""
    n_top = lens.top_probabilities.shape[1]
    columns: list[str] = []
    for place in range(1, n_top + 1):
        columns += [
            words.say(locale, "pretrain.lens_token", place=place),
            words.say(locale, "pretrain.lens_probability"),
        ]
    columns += [words.say(locale, f"pretrain.lens_{name}") for name in ("entropy", "rank")]
    cells: list[list[Any]] = []
    for stage in range(len(lens.stages)):
        row: list[Any] = []
        for token, probability in zip(
            lens.top_tokens[stage], lens.top_probabilities[stage].tolist(), strict=True
        ):
            row += [token, probability]
        cells.append(
            [*row, float(lens.entropies_nats[stage]), str(int(lens.answer_ranks[stage]) + 1)]
        )
    return {
        "corner": words.say(locale, "pretrain.lens_layer"),
        "rows": list(lens.stages),
        "cols": columns,
        "tokens": list(range(0, 2 * n_top, 2)),
        "cells": cells,
        "digits": 3,
    }


def _attention(values: tuple[Any, ...], lens: Any) -> tuple[Any, ...]:
    """Of what the Attention tab shows, what this panel has: layer to map, lens, the drawer."""
    _counts, layer, heading, chips, grid, big, _stepper, facts, table, exports, _place, _ = values
    if isinstance(exports, dict) and exports.get("png"):
        exports = {**exports, "png": "checkpoint-map"}
    return layer, heading, chips, grid, big, lens, facts, table, exports
