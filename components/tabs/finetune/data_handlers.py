"""What the panel "data" does: read, count, check, hand over to be edited."""

from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.text_table import MOST_ROWS
from components.text import locale_of
from explorer.datasets.examples import PARTS, Example, Kind
from explorer.datasets.word_baseline import score_baseline
from explorer.errors import ConfigError
from explorer.snippets import source_file_of
from explorer.tuning_data import HUB, SAMPLES, TYPED, UPLOADED, DataSettings, DataView, type_out
from explorer.tuning_runs import TuningRuns
from explorer.tuning_snippets import make_data_snippet


class DataHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Reads the data.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def example(self, event: gr.EventData) -> str:
        """One of the samples."""
        return SAMPLES[int(event._data["index"])]

    def sources(self, data: str) -> tuple[Any, ...]:
        """Where rows are typed, a file is given, an id is named: shown where that is chosen.

        By itself, so that a file that cannot be read does not hide the button for another one.
        """
        return tuple(gr.update(visible=data == name) for name in (TYPED, UPLOADED, HUB))

    def show(
        self, upload: str | None, request: gr.Request, settings: DataSettings
    ) -> tuple[Any, ...]:
        """Values for `Parts.outputs`."""
        if _waits(settings, upload):
            empty: dict[str, Any] = {"csv": None, "png": None, "python": None}
            said = self._say(request, f"finetune.waits_{settings.data}")
            none = gr.skip()
            return (none, none, none, said, "", "", None, None, None, "", None, None, empty)
        view = self._tunings.data.view(settings, upload)
        columns = gr.update(choices=["", *view.columns])
        return (columns, columns, columns, *self._describe(view, settings, request))

    def edit(
        self, upload: str | None, request: gr.Request, settings: DataSettings
    ) -> tuple[Any, ...]:
        """The rows as text, to be changed by hand."""
        return TYPED, type_out(self._tunings.data.view(settings, upload))

    def read_data(self, *, settings: DataSettings) -> dict[str, Any]:
        """Read a sample or typed rows: what they are, which cannot be used, and a baseline."""
        if settings.data == UPLOADED:
            raise ConfigError(
                "an upload needs the page; pass the rows as typed", code="run-no-upload"
            )
        view = self._tunings.data.view(settings)
        return {
            "kind": view.examples.kind,
            "columns": dict(view.mapping.columns),
            "rows": view.n_rows,
            "parts": {name: len(part) for name, part in view.parts.items().items()},
            "test_is_validation": view.parts.test_is_validation,
            "classes": {name: dict(found) for name, found in view.classes.items()},
            "problems": [[p.number, p.code, p.what] for p in view.examples.problems],
            "duplicates": [[d.row, d.training_row, d.part] for d in view.duplicates],
            "baseline": view.baseline,
        }

    # ------------------------------------------------------------------------------- in words
    def _say(self, request: gr.Request, key: str, **values: object) -> str:
        return self._ctx.words.say(locale_of(request), key, **values)

    def _describe(
        self, view: DataView, settings: DataSettings, request: gr.Request
    ) -> tuple[Any, ...]:
        say, kind = self._say, view.examples.kind
        parts = view.parts.items()
        count = say(
            request,
            "finetune.count_shared" if view.parts.test_is_validation else "finetune.count",
            name=view.name,
            rows=f"{view.n_rows:,}",
            usable=f"{len(view.examples.examples):,}",
            **{name: f"{len(part):,}" for name, part in parts.items()},
        )
        roles = ", ".join(
            f"{say(request, f'finetune.role.{role}')} = {column}"
            for role, column in view.mapping.columns.items()
        )
        twice = say(
            request,
            "finetune.duplicates" if view.duplicates else "finetune.no_duplicates",
            n=len(view.duplicates),
            rows=", ".join(f"{d.row} = {d.training_row}" for d in view.duplicates[:5]),
        )
        kind_named = say(request, f"finetune.data.kind.{kind}")
        return (
            count,
            say(request, "finetune.mapped", kind=kind_named, roles=roles),
            self._say_baseline(view, request),
            self._rows(view, request),
            self._problems(view, request),
            self._bars(view, request),
            twice,
            *self._drawer(view, settings, request),
        )

    def _say_baseline(self, view: DataView, request: gr.Request) -> str:
        """What a model has to beat; of one class alone there is nothing to learn."""
        labels = view.examples.labels
        if view.examples.kind == "classification" and len(labels) < 2:
            return self._say(request, "finetune.one_class", found=", ".join(labels))
        return self._say(request, "finetune.baseline", share=f"{100 * view.baseline:.1f}")

    def _rows(self, view: DataView, request: gr.Request) -> dict[str, Any]:
        kind = view.examples.kind
        names = {
            "classification": ("label", "text"),
            "instruction": ("prompt", "output"),
            "preference": ("prompt", "chosen", "rejected"),
        }[kind]
        listed = [(part, e) for part, examples in view.parts.items().items() for e in examples]
        return {
            "cols": [
                self._say(request, key) for key in ("finetune.column_row", "finetune.column_part")
            ]
            + [self._say(request, f"finetune.role.{name}") for name in names],
            "rows": [
                [str(e.row), self._say(request, f"finetune.part.{part}"), *cells_of(e, kind)]
                for part, e in listed[:MOST_ROWS]
            ],
            "total": len(listed),
        }

    def _problems(self, view: DataView, request: gr.Request) -> dict[str, Any] | None:
        found = view.examples.problems
        if not found:
            return None
        return {
            "cols": [
                self._say(request, "finetune.column_row"),
                self._say(request, "finetune.column_problem"),
            ],
            "rows": [
                [str(p.number), self._say(request, f"finetune.problem.{p.code}", what=p.what)]
                for p in found[:MOST_ROWS]
            ],
            "total": len(found),
        }

    def _bars(self, view: DataView, request: gr.Request) -> dict[str, Any]:
        """Classes of each part; of texts without classes, how many there are."""
        bars = [
            {
                "label": label or self._say(request, f"finetune.part.{part}"),
                "value": n,
                "note": self._say(request, f"finetune.part.{part}") if label else "",
            }
            for part in PARTS
            for label, n in view.classes[part].items()
        ]
        return {"bars": bars, "unit": "", "digits": 0}

    def _drawer(
        self, view: DataView, settings: DataSettings, request: gr.Request
    ) -> tuple[Any, Any, Any]:
        labels = sorted({label for part in view.classes.values() for label in part})
        cells = [[view.classes[part].get(label, 0) for label in labels] for part in PARTS]
        named = [self._say(request, f"finetune.part.{part}") for part in PARTS]
        heads = [label or self._say(request, "finetune.column_rows") for label in labels]
        matrix = self._ctx.routes.publish(
            np.array(cells, dtype=np.float64), row_labels=named, column_labels=heads
        )
        facts = {
            "tensor": view.name,
            "shape": [view.n_rows, len(view.columns)],
            "file": source_file_of(score_baseline),
            "test": "tests/explorer/test_tuning_data.py",
        }
        table = {"corner": "", "rows": named, "cols": heads, "cells": cells, "digits": 0}
        python = make_data_snippet(settings)
        return facts, table, {"csv": matrix, "png": None, "python": python}


def cells_of(example: Example, kind: Kind) -> list[str]:
    """What a row of an example shows."""
    if kind == "classification":
        return [example.label, example.text]
    asked = example.prompt.joined
    if kind == "instruction":
        return [asked, example.answer]
    return [asked, example.answer, example.rejected]


def _waits(settings: DataSettings, upload: str | None) -> bool:
    """Whether there is nothing to read yet; no error, for nobody has done anything wrong."""
    given = {TYPED: settings.typed.strip(), HUB: settings.hub.strip(), UPLOADED: upload}
    return settings.data in given and not given[settings.data]
