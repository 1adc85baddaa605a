"""What happens when two models are asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.number_matrix import MOST_TABLE_ROWS
from components.model_choices import list_models
from components.tabs.chat.answer_view import (
    NO_CHIPS,
    NO_EXPORTS,
    make_chips,
    make_labels,
    make_status,
    make_waiting,
)
from components.tabs.chat.answering import CHIPS_EVERY_S, CHIPS_LONGER_S, Pace, Updates
from components.text import locale_of
from explorer.conversation import AnswerShare, AnswerStep, stream_answer
from explorer.errors import ConfigError, Stopped
from explorer.side_by_side import (
    SideSettings,
    compute_side_summary,
    make_side_snippet,
    stream_in_turns,
)
from explorer.snippets import source_file_of

if TYPE_CHECKING:
    from components.tabs.chat.side import SideParts

OPEN_MODEL = ""  # value of the choice "the open model"
EXAMPLE_KEYS = ("chat.example_france", "chat.side_example_story", "chat.side_example_sky")
EXAMPLE_TEXTS = (
    "What is the capital of France?",
    "Tell me a story about a dog.",
    "Why is the sky blue?",
)


class SideHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        parts: The components.
    """

    def __init__(self, ctx: AppContext, parts: SideParts) -> None:
        self._ctx = ctx
        self._parts = parts

    def offer(self, owner: str | None, request: gr.Request) -> tuple[Any, ...]:
        """The models that are here, and the checkpoints of this visitor's runs."""
        first = self._ctx.words.say(locale_of(request), "chat.side_open_model")
        models = list_models(self._ctx, "", self._ctx.owner_of(owner, request))
        return (gr.update(choices=[(first, OPEN_MODEL), *models]),) * 2

    def example(
        self,
        event: gr.EventData,
        left: str | None,
        right: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
        settings: SideSettings,
    ) -> Iterator[Updates]:
        """Ask both one of the examples."""
        text = EXAMPLE_TEXTS[int(event._data["index"])]
        yield {self._parts.message: text}
        yield from self.send(text, left, right, model_id, owner, request, settings)

    def send(
        self,
        message: str,
        left: str | None,
        right: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
        settings: SideSettings,
    ) -> Iterator[Updates]:
        """Ask both models, and show how their answers grow.

        Raises:
            ConfigError: Nothing was asked.
        """
        sources = tuple(side or self._ctx.source_of(model_id) for side in (left, right))
        visitor, locale = self._ctx.owner_of(owner, request), locale_of(request)
        with self._ctx.stops.armed(_work_of(request)) as switch:
            try:
                yield self._begin(locale)
                yield from self._answer(message, sources, visitor, settings, locale, switch.is_set)
            except Stopped:
                yield self._rest()
            except Exception:
                yield {**self._rest(), **dict.fromkeys(self._parts.status)}
                raise

    def stop(self, request: gr.Request) -> None:
        """Stop both answers."""
        self._ctx.stops.stop(_work_of(request))

    def compare(
        self,
        message: str,
        request: gr.Request,
        left: str = "",
        right: str = "",
        *,
        settings: SideSettings,
    ) -> dict[str, Any]:
        """Ask two models the same; an empty source is the page's first model."""
        sources = [side or self._ctx.source_of(None) for side in (left, right)]
        visitor = self._ctx.owner_of(None, request)
        with ExitStack() as leases:
            streams = self._streams(leases, message, sources, visitor, settings, lambda: False)
            *_, last = stream_in_turns(streams)
        answers = [step for step in last if step is not None]
        summary = compute_side_summary(answers)
        return {
            "texts": [answer.text for answer in answers],
            "ids": [[token.id for token in answer.tokens] for answer in answers],
            "finish": [answer.finish for answer in answers],
            "surprise_nats": list(summary.surprise_nats),
            "perplexity": list(summary.perplexity),
            "shared_characters": summary.shared_characters,
        }

    def _streams(
        self,
        leases: ExitStack,
        message: str,
        sources: Sequence[str],
        visitor: str,
        settings: SideSettings,
        stopped: Callable[[], bool],
    ) -> list[Iterator[AnswerStep]]:
        """Begin both answers; the models stay for as long as the leases."""
        if not (message or "").strip():
            raise ConfigError("there is no message; type one", code="text-empty")
        lease = partial(self._ctx.store.lease, owner=visitor, cancelled=stopped)
        loaded = [leases.enter_context(lease(source)) for source in sources]
        share = AnswerShare(partial(self._ctx.slots.turn, cancelled=stopped))
        asked = [{"role": "user", "content": message}]
        write = partial(stream_answer, stopped=stopped, share=share)
        return [write(model, asked, settings.for_answer) for model in loaded]

    def _answer(
        self,
        message: str,
        sources: Sequence[str],
        visitor: str,
        settings: SideSettings,
        locale: str,
        stopped: Callable[[], bool],
    ) -> Iterator[Updates]:
        pace = Pace(CHIPS_EVERY_S)
        with ExitStack() as leases:
            streams = self._streams(leases, message, sources, visitor, settings, stopped)
            tokenizers = [self._ctx.store.tokenizer(source, visitor) for source in sources]
            steps: tuple[AnswerStep | None, ...] = (None, None)
            for steps in stream_in_turns(streams):
                if pace.due(CHIPS_LONGER_S * max(len(s.tokens) for s in steps if s)):
                    yield self._draw(steps, tokenizers, locale)
            answers = [step for step in steps if step is not None]
            yield {
                **self._draw(steps, tokenizers, locale),
                **self._finish(message, sources, settings, answers, tokenizers, locale),
                **self._rest(),
            }

    def _draw(
        self, steps: Sequence[AnswerStep | None], tokenizers: Sequence[Any], locale: str
    ) -> Updates:
        updates: Updates = {}
        for index, step in enumerate(steps):
            if step is not None:
                updates[self._parts.chips[index]] = make_chips(tokenizers[index], step.tokens)
                updates[self._parts.status[index]] = make_status(self._ctx, locale, step)
        return updates

    def _finish(
        self,
        message: str,
        sources: Sequence[str],
        settings: SideSettings,
        answers: Sequence[AnswerStep],
        tokenizers: Sequence[Any],
        locale: str,
    ) -> Updates:
        """The line below, and the drawer."""
        working, say = self._parts.working, partial(self._ctx.words.say, locale)
        summary = compute_side_summary(answers)
        facts = {
            f"{name}_{side}": "–" if number is None else f"{number:.2f}"
            for name, pair in (
                ("surprise", summary.surprise_nats),
                ("perplexity", summary.perplexity),
            )
            for side, number in zip(("left", "right"), pair, strict=True)
        }
        labels = [make_labels(t, a.tokens) for t, a in zip(tokenizers, answers, strict=True)]
        messages = [{"role": "user", "content": message}]
        python = make_side_snippet(sources, messages, settings.for_answer)
        csv = self._publish(answers, labels, locale)
        name = "side_summary" if summary.shared_characters else "side_summary_apart"
        said = say(f"chat.{name}", n=summary.shared_characters, **facts)
        if not all(answer.tokens for answer in answers):
            said = say("chat.side_early")
        return {
            self._parts.summary: said,
            working.table: self._table(answers, labels, locale),
            working.exports: {**NO_EXPORTS, "csv": csv, "python": python},
            working.facts: {
                "tensor": "logits",
                "file": source_file_of(compute_side_summary),
                "test": "tests/explorer/test_side_by_side.py",
            },
        }

    def _table(
        self, answers: Sequence[AnswerStep], labels: Sequence[Sequence[str]], locale: str
    ) -> dict[str, Any]:
        say = partial(self._ctx.words.say, locale)
        n_rows = min(MOST_TABLE_ROWS, max(map(len, labels)))
        cells = [
            [
                cell
                for answer, names in zip(answers, labels, strict=True)
                for cell in (
                    (names[row], answer.tokens[row].probability) if row < len(names) else ("", "")
                )
            ]
            for row in range(n_rows)
        ]
        columns = [
            f"{say(f'chat.side_{side}')}: {say(f'chat.column_{name}')}"
            for side in ("left", "right")
            for name in ("token", "probability")
        ]
        rows = [str(row) for row in range(n_rows)]
        corner = say("chat.column_position")
        return {"corner": corner, "rows": rows, "cols": columns, "cells": cells, "digits": 4}

    def _publish(
        self, answers: Sequence[AnswerStep], labels: Sequence[Sequence[str]], locale: str
    ) -> str | None:
        """All numbers as CSV: a row for each token of each answer."""
        say = partial(self._ctx.words.say, locale)
        names, rows = [], []
        for side, answer, texts in zip(("left", "right"), answers, labels, strict=True):
            for index, (token, text) in enumerate(zip(answer.tokens, texts, strict=True)):
                names.append(f"{say(f'chat.side_{side}')} {index} {text}")
                rows.append([token.id, token.probability, token.rank])
        if not rows:
            return None
        columns = [say(f"chat.column_{name}") for name in ("id", "probability", "rank")]
        numbers = np.array(rows, dtype=np.float32)
        return self._ctx.routes.publish(numbers, row_labels=names, column_labels=columns)

    def _begin(self, locale: str) -> Updates:
        parts, drawer = self._parts, self._parts.working
        waiting = make_waiting(self._ctx, locale, "reading")
        return {
            **dict.fromkeys(parts.chips, NO_CHIPS),
            **dict.fromkeys(parts.status, waiting),
            parts.summary: "",
            drawer.table: None,
            drawer.exports: NO_EXPORTS,
            drawer.facts: None,
            parts.send: gr.Button(visible=False),
            parts.stop: gr.Button(visible=True),
        }

    def _rest(self) -> Updates:
        buttons = (gr.Button(visible=True), gr.Button(visible=False))
        return dict(zip((self._parts.send, self._parts.stop), buttons, strict=True))


def _work_of(request: gr.Request) -> str:
    """Both answers of a visitor are one piece of work, apart from that of his conversation."""
    return f"chat-side-{request.session_hash}"
