"""What the form of a fine-tuning does: shows the batch, counts what is trained, begins."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.forms import read_form
from components.quantities import short_count
from components.tabs.pretrain.run_handlers import RunHandlers
from components.text import locale_of
from components.token_units import make_units
from explorer.snippets import source_file_of
from explorer.training.tuning_setup import TuningSetup, recommended_tuning
from explorer.tuning_data import DataSettings, DataView
from explorer.tuning_preview import BatchPreview, count_trained, preview_batch
from explorer.tuning_runs import TuningRuns
from explorer.tuning_snippets import make_tuning_snippet

FORMULAS: Mapping[str, str] = {
    "classification": r"$$L = -\frac{1}{B}\sum_{b} \ln \operatorname{softmax}(W h_b)_{c_b}$$",
    "sft": r"$$L = -\frac{1}{|A|}\sum_{t \in A} \ln p_\theta(x_t \mid x_1 \dots x_{t-1})"
    r"\qquad A = \text{tokens of the answer}$$",
    "dpo": r"$$L = -\ln\sigma\bigl(\beta\,[(c - c_0) - (r - r_0)]\bigr)$$",
    "ipo": r"$$L = \Bigl((\bar c - \bar c_0) - (\bar r - \bar r_0) - \tfrac{1}{2\beta}\Bigr)^2$$",
    "simpo": r"$$L = -\ln\sigma\bigl(\beta(\bar c - \bar r) - \gamma\bigr)$$",
    "orpo": r"$$L = L_{\text{nll}} - \beta \ln\sigma\Bigl(\ln\tfrac{e^{\bar c}}{1-e^{\bar c}}"
    r" - \ln\tfrac{e^{\bar r}}{1-e^{\bar r}}\Bigr)$$",
    "kto": r"$$L = \tfrac12\bigl(1 - \sigma(\beta(c - c_0 - z))\bigr)"
    r" + \tfrac12\bigl(1 - \sigma(\beta(z - (r - r_0)))\bigr)$$",
}
ANSWERED = ("sft", "preference")
# Fields that a form shows only where they count: objective and values -> whether.
_LORA = ("lora_rank", "lora_alpha", "lora_targets")
N_DATA_INPUTS = len(dataclasses.fields(DataSettings))
DATA_NAMES = tuple(field.name for field in dataclasses.fields(DataSettings))
SETUP_NAMES = tuple(field.name for field in dataclasses.fields(TuningSetup))
# "Try this": what is trained, and whether the question counts.
EXAMPLES = (("last_block", "answer"), ("lora", "answer"), ("all", "everything"))
# Fields whose values depend on the data.
REFILLED = ("trains", "lora_targets", "epochs", "learning_rate", "batch_size")
MOST_LENGTH_BARS = 8
LARGE = 20_000_000  # parameters from which a run of the samples takes many minutes on two cores


class TrainHandlers:
    """Handlers of the panel's events.

    Inputs: model, visitor, uploaded file, the request, the form of the data, the form of the
    training.

    Args:
        ctx: The page's context.
        tunings: Makes the runs.
        runs: Handlers of the panel that shows a run.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns, runs: RunHandlers) -> None:
        self._ctx = ctx
        self._tunings = tunings
        self._runs = runs

    def example(self, event: gr.EventData) -> tuple[str, str]:
        """What is trained, and on what."""
        return EXAMPLES[int(event._data["index"])]

    def refill(self, known: str, upload: str | None, settings: DataSettings) -> tuple[Any, ...]:
        """Other data: settings that work for its kind and size, where these are others than known.

        Returns:
            What is now known, and values of `REFILLED`.
        """
        view = self._tunings.data.view(settings, upload)
        setup = recommended_tuning(view.objective, len(view.parts.training))
        values = [getattr(setup, name) for name in REFILLED]
        recommended = f"{view.objective} {values}"
        if recommended == known:
            return known, *[gr.skip()] * len(values)
        return recommended, *values

    def plan(
        self,
        model: str | None,
        owner: str | None,
        upload: str | None,
        request: gr.Request,
        *values: Any,
    ) -> tuple[Any, ...]:
        """The batch as it will be read, and how many numbers are trained."""
        settings, setup = read_forms(values)
        view = self._tunings.data.view(settings, upload)
        source = self._ctx.source_of(model)
        visitor = self._ctx.owner_of(owner, request)
        n_classes = len(view.examples.labels)
        with self._ctx.store.lease(source, visitor) as loaded:
            name = loaded.info.name
            setup = fit_setup(setup, view.objective)
            share = count_trained(loaded.config, view.objective, setup, max(n_classes, 1))
            batch = preview_batch(
                view.parts.training,
                view.objective,
                setup,
                loaded.tokenizer,
                loaded.chat,
                loaded.config.context_length,
            )
        say, locale = self._ctx.words.say, locale_of(request)
        formula = FORMULAS[setup.loss if view.objective == "preference" else view.objective]
        return (
            say(locale, f"finetune.what.{view.objective}", data=view.name),
            self._say_base(name, share.n_all, locale),
            say(
                locale,
                "finetune.share",
                trained=short_count(share.n_trained),
                all=short_count(share.n_all),
                percent=f"{100 * share.n_trained / share.n_all:.2f}",
            ),
            self._mask(batch, locale),
            self._say_lengths(batch, locale),
            self._histogram(batch, locale),
            formula,
            *_visible(view.objective, setup),
            *self._drawer(view, batch, setup, settings, source),
        )

    def _say_base(self, name: str, n_parameters: int, locale: str) -> str:
        """What the run begins from, and where that will be slow, what learns fast."""
        key = "base_large" if n_parameters > LARGE else "base"
        return self._ctx.words.say(locale, f"finetune.{key}", name=name)

    def begin(
        self,
        model: str | None,
        owner: str | None,
        upload: str | None,
        request: gr.Request,
        *values: Any,
    ) -> Iterator[tuple[Any, ...]]:
        """Make the run, let it start, and turn to it."""
        settings, setup = read_forms(values)
        waiting = [gr.skip()] * len(self._runs.show(None, owner, request))
        yield gr.skip(), self._ctx.words.say(locale_of(request), "finetune.making"), *waiting
        try:
            view = self._tunings.data.view(settings, upload)
            visitor = self._ctx.owner_of(owner, request)
            setup = fit_setup(setup, view.objective)
            run = self._tunings.create(setup, view, settings, self._ctx.source_of(model), visitor)
            self._ctx.runs.start(run, visitor)
        except Exception:
            yield gr.skip(), "", *waiting
            raise
        yield gr.Tabs(selected="live"), "", *self._runs.show(run, owner, request)

    def start_run(
        self, data: str, model: str, settings: dict[str, Any], request: gr.Request
    ) -> dict[str, Any]:
        """Fine-tune a model on a sample or on typed rows (`settings["typed"]`).

        Makes a run and lets it start. Settings are those of the two forms, by their names.
        """
        named = {**settings, "data": data}
        chosen: DataSettings = read_form(DataSettings, named)
        view = self._tunings.data.view(chosen)
        usual = dataclasses.asdict(recommended_tuning(view.objective, len(view.parts.training)))
        setup = fit_setup(read_form(TuningSetup, {**usual, **settings}), view.objective)
        visitor = self._ctx.owner_of(None, request)
        source = self._ctx.source_of(model or None)
        run = self._tunings.create(setup, view, chosen, source, visitor)
        self._ctx.runs.start(run, visitor)
        return self._runs.read_run(run)

    # ------------------------------------------------------------------------------- in words
    def _mask(self, batch: BatchPreview, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        return {
            "rows": [
                {
                    "note": say(
                        locale,
                        f"finetune.note.{row.what}",
                        row=row.row,
                        learned=row.n_learned,
                        cut=row.n_cut,
                    ),
                    "units": [
                        {"t": unit["t"], "ids": unit["ids"], "k": role}
                        for unit, role in zip(make_units(row.units), row.roles, strict=True)
                    ],
                }
                for row in batch.rows
            ]
        }

    def _say_lengths(self, batch: BatchPreview, locale: str) -> str:
        lengths, say = np.array(batch.lengths), self._ctx.words.say
        said = say(
            locale,
            "finetune.lengths",
            median=int(np.median(lengths)),
            longest=int(lengths.max()),
            cut=batch.n_cut,
            measured=len(lengths),
            padding=f"{100 * batch.padding:.0f}",
        )
        if not batch.n_left_out:
            return said
        return f"{said} {say(locale, 'finetune.too_long', n=batch.n_left_out)}"

    def _histogram(self, batch: BatchPreview, locale: str) -> dict[str, Any]:
        names, counts = count_lengths(batch.lengths)
        say = self._ctx.words.say
        bars = [
            {"label": name, "value": int(n), "note": say(locale, "finetune.length_unit")}
            for name, n in zip(names, counts, strict=True)
        ]
        return {"bars": bars, "unit": "", "digits": 0}

    def _drawer(
        self,
        view: DataView,
        batch: BatchPreview,
        setup: TuningSetup,
        settings: DataSettings,
        source: str,
    ) -> tuple[Any, Any, Any]:
        rows, counts = count_lengths(batch.lengths)
        cells = counts.astype(np.float64)[:, None]
        facts = {
            "tensor": "input_ids",
            "shape": [setup.batch_size, max(batch.lengths)],
            "dtype": "int64",
            "file": source_file_of(preview_batch),
            "test": "tests/explorer/training/test_answer_rows.py",
        }
        table = {"corner": "tokens", "rows": rows, "cols": ["rows"], "cells": cells.tolist()}
        matrix = self._ctx.routes.publish(cells, row_labels=rows, column_labels=["rows"])
        python = make_tuning_snippet(setup, settings, source)
        return facts, {**table, "digits": 0}, {"csv": matrix, "png": None, "python": python}


def count_lengths(lengths: Sequence[int]) -> tuple[list[str], np.ndarray]:
    """Lengths in a few ranges of whole tokens: their names, and how many rows each holds.

    Args:
        lengths: Tokens of each row.
    """
    low, high = min(lengths), max(lengths)
    width = -(-(high - low + 1) // MOST_LENGTH_BARS)
    starts = list(range(low, high + 1, width))
    places = (np.asarray(lengths) - low) // width
    names = [f"{a}–{a + width - 1}" if width > 1 else str(a) for a in starts]
    return names, np.bincount(places, minlength=len(starts))


def read_forms(values: tuple[Any, ...]) -> tuple[DataSettings, TuningSetup]:
    """Both forms, from the values of their controls one after the other."""
    data = dict(zip(DATA_NAMES, values[:N_DATA_INPUTS], strict=True))
    setup = dict(zip(SETUP_NAMES, values[N_DATA_INPUTS:], strict=True))
    return read_form(DataSettings, data), read_form(TuningSetup, setup)


def fit_setup(setup: TuningSetup, objective: str) -> TuningSetup:
    """A new head there is only with classes: what stood in the form for one counts as all."""
    if setup.trains == "head" and objective != "classification":
        return dataclasses.replace(setup, trains="all")
    return setup


def _visible(objective: str, setup: TuningSetup) -> tuple[Any, ...]:
    """Which controls count, in the order of `train.FIRST`, `train.LORA` and packing."""
    answers, pairs = objective in ANSWERED, objective == "preference"
    shown = (
        True,
        answers,
        objective == "sft",
        objective == "classification",
        pairs,
        pairs,
        pairs and setup.loss == "simpo",
        pairs and setup.loss == "dpo",
        *([setup.trains == "lora"] * len(_LORA)),
        objective == "sft",
    )
    return tuple(gr.update(visible=is_shown) for is_shown in shown)
