"""What the form of a run does: counts, estimates, begins."""

import threading
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, get_args

import gradio as gr
import numpy as np

from components.context import AppContext
from components.quantities import short_bytes, short_count, short_duration
from components.tabs.pretrain.run_handlers import RunHandlers
from components.text import locale_of
from explorer.errors import ConfigError, Stopped
from explorer.run_records import PrepareStep
from explorer.snippets import source_file_of
from explorer.training.estimate import LLAMA2_7B_GPU_HOURS, Estimate, price_llama2_7b
from explorer.training.plan import Plan, compute_plan
from explorer.training.run_snippets import make_plan_snippet
from explorer.training.sample_texts import SAMPLE_TEXTS
from explorer.training.setup import RunSetup, TokenizerChoice, recommended_setup

# What a size or a recipe decides, in the form's order; the rest stays as it was typed.
REFILLED = (
    *("tokenizer", "style", "vocab_size", "context", "batch_size", "accumulate", "n_steps"),
    *("epochs", "learning_rate", "schedule", "warmup_steps", "optimiser", "weight_decay"),
    *("dropout", "seed"),
)
# In place of the name of a sample text: the file that was uploaded.
UPLOADED = "upload"
# Watts of a small computer under load, and what an hour of one costs on a cloud, in US dollars.
WATTS, PRICE_PER_HOUR = 65.0, 0.10
# A machine of eight A100 by the hour, as NUMBERS of the course have it; Llama 2 7B took 184,320
# hours of one (Touvron et al. 2023, table 2), each of at most 400 W.
BIG_MACHINE_PRICE, A100_KILOWATTS = 30.0, 0.4
LLAMA2_PARAMETERS, LLAMA2_TOKENS = 6_738_415_616, 2 * 10**12
EXAMPLES = (
    RunSetup(),
    RunSetup(text="village-zh"),
    RunSetup(breakage="learning_rate"),
)

# Two presses within it are one that was meant: the page turns to the run after it.
SAME_PRESS_S = 2.0


class SetupHandlers:
    """Handlers of the panel "setup".

    Args:
        ctx: The page's context.
        panels: The inner tabs.
        runs: Handlers of the panel that shows the run.
    """

    def __init__(self, ctx: AppContext, panels: gr.Tabs, runs: RunHandlers) -> None:
        self._ctx = ctx
        self._panels = panels
        self._runs = runs
        self._pressing = threading.Lock()
        self._pressed: dict[str, tuple[RunSetup, float]] = {}

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Fill the form with one of the examples."""
        return tuple(asdict(EXAMPLES[int(event._data["index"])]).values())

    def warm_up(self) -> None:
        """Somebody has come to train: a process loads torch while he reads."""
        self._ctx.runs.warm_up()

    def list_tokenizers(self, owner: str | None, request: gr.Request) -> Any:
        """The choices of the tokenizer, with those that this visitor keeps."""
        return gr.update(choices=list_run_tokenizers(self._ctx, owner, request))

    def choose_upload(self, upload: str | None, request: gr.Request) -> tuple[str, str]:
        """A file was uploaded: it is the text, if it can be one."""
        found = self._ctx.runs.read_upload(Path(upload or ""))
        said = self._ctx.words.say(
            locale_of(request),
            "pretrain.upload_said",
            name=found.name,
            characters=f"{found.n_characters:,}",
        )
        return UPLOADED, said

    def cancel(self, request: gr.Request) -> None:
        """End what is being prepared or measured."""
        self._ctx.stops.stop(_work_of(request))

    def refill(self, size: str, recipe: str) -> tuple[Any, ...]:
        """Another size or recipe: settings that work for it."""
        setup = recommended_setup(size, recipe=recipe)
        return tuple(getattr(setup, name) for name in REFILLED)

    def plan(
        self, upload: str | None, owner: str | None, request: gr.Request, settings: RunSetup
    ) -> tuple[Any, ...]:
        """Count what the form comes to."""
        setup, locale = _with_upload(settings, upload), locale_of(request)
        plan = compute_plan(setup, self._ctx.runs.tokenizers)
        say = self._ctx.words.say
        return (
            self._say_count(plan, locale),
            self._say_warning(setup, locale),
            make_bars(plan, {name: say(locale, f"pretrain.part.{name}") for name in plan.parts}),
            say(locale, f"pretrain.watch.{setup.breakage}"),
            {
                "tensor": "parameters",
                "shape": [plan.n_parameters],
                "dtype": "float32",
                "file": source_file_of(compute_plan),
                "test": "tests/explorer/test_setup.py",
            },
            self._table(plan, locale),
            {"csv": self._publish(plan, locale), "png": None, "python": make_plan_snippet(setup)},
        )

    def estimate(
        self, upload: str | None, owner: str | None, request: gr.Request, settings: RunSetup
    ) -> Iterator[tuple[Any, ...]]:
        """Take one step on this machine, and say what all of them will cost."""
        locale = locale_of(request)
        yield self._ctx.words.say(locale, "pretrain.estimating"), _shown(True), gr.skip()
        setup = _with_upload(settings, upload)
        try:
            with self._ctx.stops.armed(_work_of(request)) as switch:
                found = self._ctx.runs.estimate(
                    setup, watts=WATTS, price_per_hour=PRICE_PER_HOUR, cancelled=switch.is_set
                )
        except Exception:
            yield "", _shown(False), None
            raise
        yield self._say_estimate(found, locale), _shown(False), self._cost(found, locale)

    def begin(
        self, upload: str | None, owner: str | None, request: gr.Request, settings: RunSetup
    ) -> Iterator[tuple[Any, ...]]:
        """Make the run, let it start, and turn to it."""
        ctx, locale = self._ctx, locale_of(request)
        visitor = ctx.owner_of(owner, request)
        n_shown = len(self._runs.show(None, owner, request))
        waiting = [gr.skip()] * n_shown
        if self._is_same_press(visitor, settings):
            yield gr.skip(), gr.skip(), gr.skip(), *waiting
            return
        run_id = None
        try:
            setup = _with_upload(settings, upload)
            with ctx.stops.armed(_work_of(request)) as switch:
                for step in ctx.runs.create(setup, visitor, cancelled=switch.is_set):
                    run_id = step.run_id
                    yield gr.skip(), self._say_step(step, locale), _shown(True), *waiting
            assert run_id is not None
            ctx.runs.start(run_id, visitor)
        except Stopped:
            said = ctx.words.say(locale, "pretrain.prepare.cancelled")
            yield gr.skip(), said, _shown(False), *waiting
            return
        except Exception:
            yield gr.skip(), "", _shown(False), *waiting
            raise
        shown = self._runs.show(run_id, owner, request)
        yield gr.Tabs(selected="live"), "", _shown(False), *shown

    def begin_run(self, request: gr.Request, *, settings: RunSetup) -> dict[str, Any]:
        """Train a model on a sample text: makes a run and lets it start."""
        visitor = self._ctx.owner_of(None, request)
        *_, last = self._ctx.runs.create(_sample_only(settings), visitor)
        self._ctx.runs.start(str(last.run_id), visitor)
        return self._runs.read_run(str(last.run_id))

    def estimate_run(self, request: gr.Request, *, settings: RunSetup) -> dict[str, Any]:
        """Estimate what a run on a sample text would cost on this machine."""
        found = self._ctx.runs.estimate(
            _sample_only(settings), watts=WATTS, price_per_hour=PRICE_PER_HOUR
        )
        return {**asdict(found), "tokens_per_parameter": found.tokens_per_parameter}

    def _is_same_press(self, visitor: str, settings: RunSetup) -> bool:
        """Whether Start was pressed again before the page could turn to the run."""
        now = time.monotonic()
        with self._pressing:
            before = self._pressed.get(visitor)
            self._pressed[visitor] = (settings, now)
        return before is not None and before[0] == settings and now - before[1] < SAME_PRESS_S

    # ------------------------------------------------------------------------------- in words
    def _say_step(self, step: PrepareStep, locale: str) -> str:
        percent = f"{100 * step.done:.0f}"
        return self._ctx.words.say(locale, f"pretrain.prepare.{step.what}", percent=percent)

    def _say_count(self, plan: Plan, locale: str) -> str:
        about = "about" if plan.is_guess else "exact"
        return self._ctx.words.say(
            locale,
            f"pretrain.count_{about}",
            parameters=short_count(plan.n_parameters),
            vocabulary=f"{plan.vocab_size:,}",
        )

    def _say_warning(self, setup: RunSetup, locale: str) -> str:
        """What can be trained and is hardly meant; the steps of epochs are not known yet."""
        is_long = setup.epochs == 0 and setup.warmup_steps > setup.n_steps
        if not is_long or setup.breakage == "no_warmup":
            return ""
        return self._ctx.words.say(
            locale,
            "pretrain.warmup_long",
            warmup=f"{setup.warmup_steps:,}",
            steps=f"{setup.n_steps:,}",
            percent=f"{100 * setup.n_steps / setup.warmup_steps:.0f}",
        )

    def _say_estimate(self, found: Estimate, locale: str) -> str:
        say = self._ctx.words.say
        fits = "fits" if found.fits else "too_large"
        said = say(locale, f"pretrain.estimate_{fits}", free=short_bytes(found.available_bytes))
        if not found.was_busy:
            return said
        busy = say(locale, "pretrain.estimate_busy", percent=f"{100 * found.others_share:.0f}")
        return f"{said} {busy}"

    def _table(self, plan: Plan, locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        return {
            "corner": say(locale, "pretrain.column_part"),
            "rows": [say(locale, f"pretrain.part.{name}") for name in plan.parts],
            "cols": [say(locale, "pretrain.column_parameters")],
            "cells": [[f"{count:,}"] for count in plan.parts.values()],
            "digits": 0,
        }

    def _publish(self, plan: Plan, locale: str) -> str:
        say = self._ctx.words.say
        return self._ctx.routes.publish(
            np.array([[count] for count in plan.parts.values()], dtype=np.float64),
            row_labels=[say(locale, f"pretrain.part.{name}") for name in plan.parts],
            column_labels=[say(locale, "pretrain.column_parameters")],
        )

    def _cost(self, found: Estimate, locale: str) -> dict[str, Any]:
        """This run beside Llama 2 7B."""
        rows = make_cost_rows(found)
        say = self._ctx.words.say
        return {
            "corner": "",
            "rows": [say(locale, f"pretrain.cost.{name}") for name in rows],
            "cols": [say(locale, f"pretrain.cost_{name}") for name in ("here", "big")],
            "cells": [list(cells) for cells in rows.values()],
            "digits": 0,
        }


def list_run_tokenizers(
    ctx: AppContext, owner: str | None, request: gr.Request
) -> list[tuple[str, str]]:
    """Label and value of each tokenizer that a run may have."""
    locale = locale_of(request)
    usual = [
        (ctx.words.say(locale, f"pretrain.form.tokenizer.{name}"), name)
        for name in get_args(TokenizerChoice)
    ]
    kept = ctx.runs.tokenizers.list(ctx.owner_of(owner, request))
    return [*usual, *((f"{one.name} ({one.vocab_size:,})", one.source) for one in kept)]


def make_bars(plan: Plan, labels: dict[str, str]) -> dict[str, Any]:
    """The value of the bars: parameters by part."""
    return {
        "bars": [
            {"label": labels[name], "value": count, "note": f"{count / plan.n_parameters:.0%}"}
            for name, count in plan.parts.items()
        ],
        "unit": "",
        "digits": 0,
    }


def make_cost_rows(found: Estimate) -> dict[str, tuple[str, str]]:
    """What a run costs, and what Llama 2 7B did, by quantity."""
    big_tokens_each = LLAMA2_TOKENS / LLAMA2_PARAMETERS
    return {
        "time": (short_duration(found.duration_s), f"{LLAMA2_7B_GPU_HOURS:,} h (A100)"),
        "step": (f"{found.step_s:.2f} s", "-"),
        "parameters": (short_count(found.n_parameters), short_count(LLAMA2_PARAMETERS)),
        "tokens": (short_count(found.tokens), "2 T"),
        "tokens_per_parameter": (f"{found.tokens_per_parameter:.1f}", f"{big_tokens_each:.0f}"),
        "memory": (short_bytes(found.peak_bytes), "-"),
        "disk": (short_bytes(found.disk_bytes), "-"),
        "energy": (
            f"{found.energy_kwh:.4f} kWh",
            f"{LLAMA2_7B_GPU_HOURS * A100_KILOWATTS:,.0f} kWh",
        ),
        "money": (f"${found.price:.4f}", f"${price_llama2_7b(BIG_MACHINE_PRICE):,.0f}"),
    }


def _shown(visible: bool) -> gr.Button:
    return gr.Button(visible=visible)


def _work_of(request: gr.Request) -> str:
    """A page prepares one thing at a time."""
    return f"pretrain-{request.session_hash}"


def _with_upload(setup: RunSetup, upload: str | None) -> RunSetup:
    """Put the uploaded file in where it was chosen; Gradio has checked that it is an upload.

    Raises:
        ConfigError: There is no such text, or no file was uploaded.
    """
    if setup.text != UPLOADED:
        return _sample_only(setup)
    if not upload:
        raise ConfigError(
            "no file was uploaded yet; choose one, or another text", code="run-no-upload"
        )
    return replace(setup, text=upload)


def _sample_only(setup: RunSetup) -> RunSetup:
    """Refuse a path: who names a text by a word may not read files of this machine.

    Raises:
        ConfigError: There is no sample text of this name.
    """
    if setup.text in SAMPLE_TEXTS:
        return setup
    known = ", ".join(SAMPLE_TEXTS)
    raise ConfigError(
        f"text={Path(setup.text).name!r} is unknown; choose {known}, or upload a file on the page",
        code="run-choice",
        name="text",
        found=Path(setup.text).name,
        known=known,
    )
