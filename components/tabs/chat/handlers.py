"""What happens when somebody asks, stops, edits or asks again."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import gradio as gr

from components.context import AppContext
from components.forms import Form
from components.kit.working import Working
from components.tabs.chat.answer_view import (
    NO_CHIPS,
    NO_EXPORTS,
    make_chips,
    make_exports,
    make_facts,
    make_status,
    make_table,
    make_waiting,
)
from components.tabs.chat.talk import Talk, make_conversation
from components.text import locale_of
from explorer.answer_snippet import make_answer_snippet
from explorer.conversation import AnswerSettings, AnswerStep, stream_answer
from explorer.errors import ConfigError, Stopped

EXAMPLE_KEYS = ("chat.example_france", "chat.example_number", "chat.example_haiku")
# What the examples ask; the same in every language, because small models know English best.
EXAMPLE_TEXTS = (
    "What is the capital of France?",
    "Pick a number from 1 to 10.",
    "Write a haiku about rain.",
)
TEXT_EVERY_S = 0.1
CHIPS_EVERY_S = 0.2
# Gradio copies and compares the values of all outputs as a whole at every update, here and in the
# page. Waiting longer for each token that is there keeps that work in proportion: with 300 tokens
# the text comes each 0.2 s and the chips each 0.8 s.
TEXT_LONGER_S = 0.0003
CHIPS_LONGER_S = 0.002

Updates = dict[Any, Any]


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the tab.

    Args:
        view: The conversation.
        status: The line under it.
        message: Where the visitor types.
        send: Sends it.
        stop: Stops an answer; takes the place of `send` meanwhile.
        hint: Card slot for advice.
        system: Instruction that stands before the conversation.
        form: Controls of `AnswerSettings`.
        chips: The last answer, token by token.
        working: The drawer below it.
        talk: State: the conversation.
        work: State: id of the answer that is being written, None when none is.
    """

    view: gr.HTML
    status: gr.HTML
    message: gr.Textbox
    send: gr.Button
    stop: gr.Button
    hint: gr.HTML
    system: gr.Textbox
    form: Form
    chips: gr.HTML
    working: Working
    talk: gr.State
    work: gr.State


@dataclass(frozen=True)
class Asking:
    """Everything that one answer depends on, apart from the conversation.

    Args:
        source: Of the model.
        owner: Of the visitor, for the store.
        system: Instruction that stands before the conversation.
        settings: How to answer.
        locale: Language of the reader.
    """

    source: str
    owner: str
    system: str
    settings: AnswerSettings
    locale: str


class Pace:
    """Says when enough time has passed to send something again.

    Args:
        every_s: Shortest time between two sendings, in seconds.
        clock: Gives the time in seconds.
    """

    def __init__(self, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._sent_at: float | None = None

    def due(self, longer_s: float = 0.0) -> bool:
        """Tell whether it is time; if so, the waiting starts anew.

        Args:
            longer_s: To wait so much longer than usual.
        """
        now = self._clock()
        if self._sent_at is not None and now - self._sent_at < self._every_s + longer_s:
            return False
        self._sent_at = now
        return True


class Handlers:
    """Handlers of the tab's events. They keep nothing: a conversation is an input and an output.

    Args:
        ctx: The page's context.
        parts: The components.
    """

    def __init__(self, ctx: AppContext, parts: Parts) -> None:
        self._ctx = ctx
        self._parts = parts

    # Each of these takes the conversation, who asks and how, and the form's values in the end.

    def send(
        self,
        message: str,
        talk: Talk,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Iterator[Updates]:
        """Send a message and write the answer."""
        asking = self._asking(model_id, owner, system, request, settings)
        if not (message or "").strip():
            yield self._advise(asking.locale, "empty")
            return
        yield from self._answer(talk, talk.ask(message), asking, {self._parts.message: message})

    def example(
        self,
        event: gr.EventData,
        talk: Talk,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Iterator[Updates]:
        """Send one of the examples."""
        text = EXAMPLE_TEXTS[int(event._data["index"])]
        asking = self._asking(model_id, owner, system, request, settings)
        yield from self._answer(talk, talk.ask(text), asking, {})

    def regenerate(
        self,
        talk: Talk,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Iterator[Updates]:
        """Write the last answer anew; with the same settings and seed it is the same."""
        asking = self._asking(model_id, owner, system, request, settings)
        asked = talk.without_answer()
        if not asked.messages:
            yield self._advise(asking.locale, "nothing_to_regenerate")
            return
        yield from self._answer(talk, asked, asking, {})

    def another(
        self,
        talk: Talk,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Iterator[Updates]:
        """Write another answer, with the next seed."""
        if settings.temperature == 0:
            yield self._advise(locale_of(request), "greedy")
            return
        settings = replace(settings, seed=(settings.seed + 1) % 2**31)
        yield {self._parts.form.controls["seed"]: settings.seed}
        yield from self.regenerate(talk, model_id, owner, system, request, settings)

    def reword(
        self,
        event: gr.EventData,
        talk: Talk,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Iterator[Updates]:
        """Change one of the visitor's messages; the answers after it are written anew."""
        index, text = int(event._data["index"]), str(event._data["text"])
        yield from self.edit(index, text, talk, model_id, owner, system, request, settings)

    def edit(
        self,
        index: float,
        text: str,
        talk: Talk,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Iterator[Updates]:
        """As `reword`, for programs: the number of the message, counted from 0, and its new text.

        Raises:
            ConfigError: There is no message of the visitor with this number.
        """
        asking = self._asking(model_id, owner, system, request, settings)
        if not (text or "").strip():
            yield self._advise(asking.locale, "empty")
            return
        if not talk.is_question_at(int(index)):
            raise ConfigError(
                f"message {int(index)} is none of yours among {len(talk.messages)}; give the "
                "number of one of your messages, counted from 0",
                code="chat-no-message",
                index=int(index),
                count=len(talk.messages),
            )
        yield from self._answer(talk, talk.reworded(int(index), text), asking, {})

    def stop(self, work: str | None) -> None:
        """Stop the answer of this visitor that is being written; it ends after its next token."""
        if work is not None:
            self._ctx.stops.stop(work)

    def clear(self) -> Updates:
        """Begin a new conversation."""
        parts = self._parts
        return {
            parts.talk: Talk(),
            parts.view: make_conversation(Talk()),
            parts.status: None,
            parts.hint: None,
            **self._no_answer(),
        }

    def model(self, model_id: str | None, owner: str | None, request: gr.Request) -> Updates:
        """Say what is special about the model that was just opened."""
        if model_id is None:
            return {self._parts.hint: None}
        summary = self._ctx.store.summary(model_id, self._ctx.owner_of(owner, request))
        if summary is None or summary.has_chat:
            return {self._parts.hint: None}
        return self._advise(locale_of(request), "base_model", name=summary.name)

    def chat(
        self,
        message: str,
        request: gr.Request,
        system: str = "",
        model: str = "",
        *,
        settings: AnswerSettings,
    ) -> dict[str, Any]:
        """Answer one message; an empty `model` is the page's first, an empty `system` none."""
        asking = self._asking(model or None, None, system, request, settings)
        talk = Talk().ask(message)
        with self._ctx.store.lease(asking.source, asking.owner) as loaded:
            *_, last = stream_answer(
                loaded, talk.for_model(system), settings, turn=self._ctx.slots.turn
            )
        return {
            "text": last.text,
            "tokens": [asdict(token) for token in last.tokens],
            "finish": last.finish,
            "prompt_tokens": last.n_prompt_tokens,
            "context_length": last.context_length,
        }

    # How it is done

    def _asking(
        self,
        model_id: str | None,
        owner: str | None,
        system: str,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Asking:
        source = self._ctx.source_of(model_id)
        visitor = self._ctx.owner_of(owner, request)
        return Asking(source, visitor, system or "", settings, locale_of(request))

    def _answer(
        self, before: Talk, asked: Talk, asking: Asking, unsent: Updates
    ) -> Iterator[Updates]:
        """Write an answer; when there is none in the end, the page goes back to `before`.

        Args:
            before: The conversation as it was.
            asked: The conversation that ends with the question.
            asking: How to answer.
            unsent: What else to put back then, such as the message into its box.
        """
        work = secrets.token_urlsafe(16)
        with self._ctx.stops.armed(work) as switch:
            yield self._begin(asked, asking, work, unsent)
            try:
                yield from self._write(asked, asking, switch.is_set)
            except Exception:  # also Stopped; not GeneratorExit, then nobody is there to see it
                yield {**self._end(before), **self._no_answer(), **unsent}
                raise

    def _write(self, asked: Talk, asking: Asking, stopped: Callable[[], bool]) -> Iterator[Updates]:
        """The updates of one answer, from loading the model to the last token.

        Raises:
            Stopped: The visitor pressed Stop before the first token.
        """
        store, slots, parts = self._ctx.store, self._ctx.slots, self._parts
        text_pace, chips_pace = Pace(TEXT_EVERY_S), Pace(CHIPS_EVERY_S)
        if store.summary(asking.source, asking.owner) is None:
            yield {parts.status: make_waiting(self._ctx, asking.locale, "loading")}
        with store.lease(asking.source, asking.owner, cancelled=stopped) as loaded:
            yield {parts.status: make_waiting(self._ctx, asking.locale, "reading")}
            steps = stream_answer(
                loaded,
                asked.for_model(asking.system),
                asking.settings,
                stopped=stopped,
                turn=partial(slots.turn, cancelled=stopped),
            )
            with closing(steps):  # type: ignore[type-var]
                for step in steps:
                    if step.finish is not None:
                        yield self._finish(asked, asking, loaded, step)
                    elif text_pace.due(TEXT_LONGER_S * len(step.tokens)):
                        chips = chips_pace.due(CHIPS_LONGER_S * len(step.tokens))
                        yield self._progress(asked, asking, loaded, step, chips)

    def _begin(self, asked: Talk, asking: Asking, work: str, unsent: Updates) -> Updates:
        parts = self._parts
        return {
            **dict.fromkeys(unsent, ""),
            parts.talk: asked,
            parts.work: work,
            parts.view: make_conversation(asked, busy=True),
            parts.status: make_waiting(self._ctx, asking.locale, "reading"),
            parts.send: gr.Button(visible=False),
            parts.stop: gr.Button(visible=True),
            parts.hint: None,
            **self._no_answer(),
        }

    def _progress(
        self, asked: Talk, asking: Asking, loaded: Any, step: AnswerStep, chips: bool
    ) -> Updates:
        parts = self._parts
        updates: Updates = {
            parts.view: make_conversation(asked.answer(step.text), busy=True),
            parts.status: make_status(self._ctx, asking.locale, step),
        }
        if chips:
            updates[parts.chips] = make_chips(loaded.tokenizer, step.tokens)
        return updates

    def _finish(self, asked: Talk, asking: Asking, loaded: Any, step: AnswerStep) -> Updates:
        if step.finish == "stopped" and not step.tokens:
            raise Stopped("stopped before the first token")
        ctx, parts, working = self._ctx, self._parts, self._parts.working
        messages = asked.for_model(asking.system)
        snippet = make_answer_snippet(asking.source, messages, asking.settings, step)
        return {
            **self._end(asked.answer(step.text)),
            parts.status: make_status(ctx, asking.locale, step),
            parts.chips: make_chips(loaded.tokenizer, step.tokens),
            working.facts: make_facts(loaded, step),
            working.table: make_table(ctx, asking.locale, loaded.tokenizer, step),
            working.exports: make_exports(ctx, asking.locale, loaded, snippet, step),
        }

    def _end(self, talk: Talk) -> Updates:
        parts = self._parts
        return {
            parts.talk: talk,
            parts.work: None,
            parts.view: make_conversation(talk),
            parts.status: None,
            parts.send: gr.Button(visible=True),
            parts.stop: gr.Button(visible=False),
        }

    def _no_answer(self) -> Updates:
        """Empty what shows the last answer's numbers."""
        working = self._parts.working
        return {
            self._parts.chips: NO_CHIPS,
            working.facts: None,
            working.table: None,
            working.exports: NO_EXPORTS,
        }

    def _advise(self, locale: str, key: str, **facts: object) -> Updates:
        say = partial(self._ctx.words.say, locale)
        card = {
            "kind": "hint",
            "title": say(f"chat.hint_{key}"),
            "text": say(f"chat.hint_{key}_text", **facts),
        }
        return {self._parts.hint: card}
