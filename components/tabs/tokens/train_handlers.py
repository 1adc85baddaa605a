"""Handlers of the panel "train": train, walk through the steps, keep what was learnt."""

import tempfile
import time
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from components.context import AppContext
from components.kit.curve_panel import Curve, curves_message, thin
from components.tabs.tokens.choice import list_choices
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from explorer.datasets.text import read_text
from explorer.errors import ConfigError, Stopped, TokenizerError
from explorer.tokenizer_lab.bpe_training import (
    MAX_TEXT_BYTES,
    BpeProgress,
    BpeSetup,
    BpeTraining,
    train_recorded,
    train_steps,
)
from explorer.tokenizer_lab.snippets import make_training_snippet
from explorer.tokens import label_of_bytes
from explorer.training.sample_texts import SAMPLE_TEXTS

OWN_TEXT, UPLOADED = "own", "upload"
TEXTS = (OWN_TEXT, *SAMPLE_TEXTS, UPLOADED)
LOW = "\n".join(["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3)
COLUMNS = ("left", "right", "gives", "id", "count", "tokens", "compression")
# How often the page hears how far a training is, in seconds.
REPORT_EVERY_S = 0.4


@dataclass(frozen=True)
class Example:
    """One of the examples: a text and a form."""

    source: str
    text: str
    setup: BpeSetup


EXAMPLES = (
    Example(
        OWN_TEXT,
        LOW,
        BpeSetup(vocab_size=24, start="characters", special_tokens="", min_frequency=2),
    ),
    Example("village", LOW, BpeSetup(vocab_size=512)),
    Example("village-zh", LOW, BpeSetup(vocab_size=640)),
)


class TrainHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Fill text and form with one of the examples."""
        chosen = EXAMPLES[int(event._data["index"])]
        return chosen.source, chosen.text, *astuple(chosen.setup)

    def choose_upload(self) -> str:
        """A file was uploaded: it is the text."""
        return UPLOADED

    def train(
        self,
        source: str,
        text: str,
        upload: str | None,
        owner: str | None,
        request: gr.Request,
        settings: BpeSetup,
    ) -> Iterator[tuple[Any, ...]]:
        """Train, and show the last step."""
        locale, idle = locale_of(request), gr.Button(visible=False)
        nothing = [gr.skip()] * 8
        told = self._ctx.words.say(locale, "tokens.train.reading")
        yield told, *nothing, gr.Button(visible=True)
        reported = 0.0
        try:
            with self._ctx.stops.armed(_work_of(request)) as switch:
                content = _read_source(source, text, upload)
                for step in train_steps(content, settings, cancelled=switch.is_set):
                    if isinstance(step, BpeTraining):
                        yield *self._show(step, content, source, settings, locale), idle
                    elif time.monotonic() - reported > REPORT_EVERY_S or step.done == 0:
                        reported = time.monotonic()
                        told = self._say_progress(step, locale)
                        yield told, *nothing, gr.skip()
        except Stopped:
            yield self._ctx.words.say(locale, "tokens.train.ended", at=told), *nothing, idle
        except Exception:
            yield "", *nothing, idle
            raise

    def stop(self, request: gr.Request) -> None:
        """Stop the training; what was learnt before stays on the page."""
        self._ctx.stops.stop(_work_of(request))

    def step(
        self, stepper: dict[str, Any] | None, result: str | None, request: gr.Request
    ) -> tuple[str, dict[str, Any]]:
        """Look at another step."""
        training = self._find(result)
        return self._at(training, int((stepper or {}).get("index", 0)), locale_of(request))

    def keep(
        self, result: str | None, name: str, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Keep what was learnt, for all panels and for pretraining."""
        ctx, locale = self._ctx, locale_of(request)
        vocabulary = self._find(result).vocabulary
        called = name.strip() or f"BPE {len(vocabulary.vocab):,}"
        visitor = ctx.owner_of(owner, request)
        tokenizer = vocabulary.to_tokenizer(called)
        kept = ctx.runs.tokenizers.keep(tokenizer, called, "trained", visitor)
        file = Path(tempfile.mkdtemp()) / "tokenizer.json"
        file.write_text(ctx.runs.tokenizers.read_json(kept.source), encoding="utf-8")
        choices = list_choices(ctx, owner, request)
        return (
            ctx.words.say(locale, "tokens.train.kept", name=kept.name),
            gr.update(value=str(file), visible=True),
            gr.update(choices=choices, value=kept.source),
            gr.update(choices=choices),
        )

    def train_text(self, text: str, *, settings: BpeSetup) -> dict[str, Any]:
        """Train byte pairs on a text; every join with its count, and the vocabulary."""
        training = train_recorded(text, settings)
        return {
            "stopped_early": training.vocabulary.stopped_early,
            "vocab_size": len(training.vocabulary.vocab),
            "merges": [
                {"pair": list(s.pair), "count": s.count, "bytes_per_token": s.bytes_per_token}
                for s in training.steps
            ],
            "vocabulary": dict(training.vocabulary.vocab),
        }

    # ------------------------------------------------------------------------------- in words
    def _find(self, result: str | None) -> BpeTraining:
        found = self._ctx.results.get(result) if result else None
        if not isinstance(found, BpeTraining):
            raise TokenizerError(
                "nothing was trained yet, or it had to make room for others; press Train",
                code="training-none",
            )
        return found

    def _show(
        self, training: BpeTraining, text: str, source: str, setup: BpeSetup, locale: str
    ) -> tuple[Any, ...]:
        drawer = fill_drawer(
            self._ctx,
            self._table(training, locale),
            tensor="merges",
            shape=[len(training.steps), 2],
            dtype="str",
            function=train_recorded,
            snippet=make_training_snippet(
                text, setup, sample=source if source in SAMPLE_TEXTS else None
            ),
            png="train-curve",
        )
        return (
            self._say_status(training, locale),
            {"index": 0, "count": len(training.steps)},
            *self._at(training, 0, locale),
            self._curve(training, locale),
            *drawer,
            self._ctx.results.put(training),
        )

    def _say_progress(self, step: BpeProgress, locale: str) -> str:
        return self._ctx.words.say(
            locale,
            f"tokens.train.{step.phase}",
            share=f"{step.done / max(1, step.total):.0%}",
            done=f"{step.done:,}",
            total=f"{step.total:,}",
        )

    def _say_status(self, training: BpeTraining, locale: str) -> str:
        vocabulary = training.vocabulary
        key = "stopped" if vocabulary.stopped_early else "full"
        return self._ctx.words.say(
            locale,
            f"tokens.train.{key}",
            size=f"{len(vocabulary.vocab):,}",
            asked=f"{vocabulary.asked_size:,}",
            start=f"{training.n_start:,}",
            joins=f"{len(training.steps):,}",
            words=f"{training.n_words:,}",
            all=f"{training.n_all_words:,}",
            compression=f"{training.compression[-1]:.2f}",
        )

    def _at(self, training: BpeTraining, index: int, locale: str) -> tuple[str, dict[str, Any]]:
        """The pair counts before a join, and what it joined."""
        say = self._ctx.words.say
        if not training.steps:
            return say(locale, "tokens.train.no_step"), {"bars": [], "unit": ""}
        step = training.steps[min(max(0, index), len(training.steps) - 1)]
        left, right, made = (self._readable(training, s) for s in (*step.pair, step.new_token))
        said = say(
            locale,
            "tokens.train.at",
            step=f"{step.step:,}",
            left=left,
            right=right,
            made=made,
            id=step.new_id,
            count=f"{step.count:,}",
            tokens=f"{step.n_tokens:,}",
        )
        bars = [
            {
                "label": "⊕".join(self._readable(training, part) for part in pair.pair),
                "value": pair.count,
                "note": say(locale, "tokens.train.chosen") if pair.pair == step.pair else "",
            }
            for pair in step.top_pairs
        ]
        return said, {"bars": bars, "unit": "", "digits": 0}

    def _readable(self, training: BpeTraining, symbols: str) -> str:
        return label_of_bytes(training.bytes_of(symbols))

    def _curve(self, training: BpeTraining, locale: str) -> str:
        curve = thin(Curve("", list(training.sizes), list(training.compression)))
        say = self._ctx.words.say
        return curves_message(
            [curve],
            x_title=say(locale, "tokens.train.axis_size"),
            y_title=say(locale, "tokens.train.axis_compression"),
        )

    def _table(self, training: BpeTraining, locale: str) -> Numbers:
        say = self._ctx.words.say
        return Numbers(
            corner=say(locale, "tokens.merges.column_step"),
            rows=[str(step.step) for step in training.steps],
            columns=[say(locale, f"tokens.train.column_{name}") for name in COLUMNS],
            cells=[
                [
                    *(self._readable(training, s) for s in (*step.pair, step.new_token)),
                    step.new_id,
                    step.count,
                    step.n_tokens,
                    f"{step.bytes_per_token:.4f}",
                ]
                for step in training.steps
            ],
        )


def _read_source(source: str, text: str, upload: str | None) -> str:
    """The text that was chosen.

    Raises:
        ConfigError: There is no such text, or no file was uploaded.
        DataError: The file is too large, binary or not UTF-8.
    """
    if source == OWN_TEXT:
        return text
    if source in SAMPLE_TEXTS:
        return SAMPLE_TEXTS[source].read()
    if not upload:
        raise ConfigError(
            "no file was uploaded yet; choose one, or another text", code="run-no-upload"
        )
    return read_text(Path(upload), max_bytes=MAX_TEXT_BYTES)


def _work_of(request: gr.Request) -> str:
    """Under which id the training of this page can be stopped."""
    return f"tokens-train-{request.session_hash}"
