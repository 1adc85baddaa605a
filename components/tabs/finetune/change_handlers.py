"""What the panel "changes" does: compares base and checkpoint, weight by weight and on a text."""

import math
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.tabs.finetune.steps import chosen_step, first_question, offer_question
from components.text import locale_of
from explorer.snippets import source_file_of
from explorer.tuning_changes import PassChanges, WeightChanges, compare_passes, compare_weights
from explorer.tuning_runs import TuningRuns
from explorer.tuning_snippets import make_change_snippet

EVERY_LAYER = 60  # rows of the table of layers at most


class ChangeHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def offer(
        self, run: str | None, text: str, offered: str, request: gr.Request
    ) -> tuple[Any, ...]:
        """The checkpoints there are, and the first held-out question, where nothing was typed."""
        return offer_question(self._ctx, self._tunings, run, text, offered, request)

    def show(
        self, run: str | None, step: int | None, text: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`."""
        run, step = chosen_step(self._tunings, run, step)
        visitor, locale = self._ctx.owner_of(owner, request), locale_of(request)
        weights, passes = self._compare(
            run, step, text or first_question(self._tunings, run), visitor
        )
        say = self._ctx.words.say
        return (
            say(locale, "finetune.change_said", step=step, total=percent(weights.total)),
            self._weights(weights, locale),
            say(locale, "finetune.change_heads", n=len(passes.ids)),
            self._attention(passes, locale),
            self._lens(passes, locale),
            *self._drawer(run, step, weights, locale),
        )

    def open_base(self, run: str | None, step: int | None) -> str:
        """Open the model that the run began from in every tab."""
        return self._tunings.tuning(chosen_step(self._tunings, run, step)[0]).base

    def open_tuned(self, run: str | None, step: int | None) -> str:
        """Open the checkpoint in every tab."""
        return self._ctx.runs.checkpoint_source(*chosen_step(self._tunings, run, step))

    def changes(self, run: str, step: int, text: str, request: gr.Request) -> dict[str, Any]:
        """Compare a checkpoint with the model it began from: weights, attention, lens."""
        weights, passes = self._compare(run, step, text, self._ctx.owner_of(None, request))
        return {
            "total": weights.total,
            "parts": list(weights.parts),
            "weights": [[finite(x) for x in row] for row in weights.layers.tolist()],
            "others": dict(weights.others),
            "attention": passes.attention.tolist(),
            "before": [tokens[0] for tokens in passes.before.top_tokens],
            "after": [tokens[0] for tokens in passes.after.top_tokens],
        }

    # ------------------------------------------------------------------------------- how
    def _compare(
        self, run: str, step: int, text: str, visitor: str
    ) -> tuple[WeightChanges, PassChanges]:
        store, base = self._ctx.store, self._tunings.base(run)
        tuned = self._ctx.runs.checkpoint_source(run, step)
        with store.lease(base, visitor) as before, store.lease(tuned, visitor) as after:
            weights = compare_weights(before, after)
            return weights, compare_passes(before, after, text, turn=self._ctx.slots.turn)

    def _weights(self, weights: WeightChanges, locale: str) -> dict[str, Any]:
        return {
            "corner": self._ctx.words.say(locale, "finetune.change_layer"),
            "rows": [str(i) for i in range(len(weights.layers))],
            "cols": [part.rpartition(".")[2].removesuffix("_proj") for part in weights.parts],
            "cells": [[finite(x) for x in row] for row in weights.layers.tolist()],
            "digits": 4,
            "shade": float(np.nanmax(weights.layers)) or 1.0,
        }

    def _attention(self, passes: PassChanges, locale: str) -> dict[str, Any]:
        return {
            "corner": self._ctx.words.say(locale, "finetune.change_head"),
            "rows": [str(i) for i in range(len(passes.attention))],
            "cols": [str(i) for i in range(passes.attention.shape[1])],
            "cells": passes.attention.astype(float).tolist(),
            "digits": 3,
            "shade": float(passes.attention.max()) or 1.0,
        }

    def _lens(self, passes: PassChanges, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        rows = [
            [stage, *(_word(lens, i) for lens in (passes.before, passes.after))]
            for i, stage in enumerate(passes.before.stages[:EVERY_LAYER])
        ]
        columns = ("change_layer", "change_before", "change_after")
        return {"cols": [say(locale, f"finetune.{name}") for name in columns], "rows": rows}

    def _drawer(
        self, run: str, step: int, weights: WeightChanges, locale: str
    ) -> tuple[Any, Any, Any]:
        rows = [str(i) for i in range(len(weights.layers))]
        matrix = self._ctx.routes.publish(
            weights.layers, row_labels=rows, column_labels=list(weights.parts)
        )
        facts = {
            "tensor": "blocks.*.weight",
            "shape": list(weights.layers.shape),
            "file": source_file_of(compare_weights),
            "test": "tests/explorer/test_tuning_changes.py",
        }
        table = {
            "corner": self._ctx.words.say(locale, "finetune.change_others"),
            "rows": [name for name, _ in weights.others],
            "cols": [self._ctx.words.say(locale, "finetune.change_share")],
            "cells": [[finite(value)] for _, value in weights.others],
            "digits": 4,
        }
        base = self._tunings.tuning(run).base
        python = make_change_snippet(run, step, base)
        return facts, table, {"csv": matrix, "png": None, "python": python}


def _word(lens: Any, stage: int) -> str:
    return f"{lens.top_tokens[stage][0]!r} {100 * lens.top_probabilities[stage, 0]:.1f} %"


def percent(share: float) -> str:
    """A share as a percentage with two digits that count."""
    return f"{100 * share:.2g} %"


def finite(value: float) -> float | None:
    """A number that JSON has; None for one that could not be computed."""
    return value if math.isfinite(value) else None
