"""What happens when somebody asks, stops, edits or asks again."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import gradio as gr

from components.context import AppContext
from components.tabs.chat.answering import AnswerWriter, Asking, Parts, Updates
from components.tabs.chat.talk import Talk, make_conversation
from components.text import Words, locale_of
from explorer.conversation import AnswerSettings, stream_answer
from explorer.errors import ConfigError
from explorer.store_records import ModelSummary

EXAMPLE_KEYS = ("chat.example_france", "chat.example_number", "chat.example_haiku")
# What the examples ask; the same in every language, because small models know English best.
EXAMPLE_TEXTS = (
    "What is the capital of France?",
    "Pick a number from 1 to 10.",
    "Write a haiku about rain.",
)


class Handlers:
    """Handlers of the tab's events. They keep nothing: a conversation is an input and an output.

    Args:
        ctx: The page's context.
        parts: The components.
    """

    def __init__(self, ctx: AppContext, parts: Parts) -> None:
        self._ctx = ctx
        self._parts = parts
        self._writer = AnswerWriter(ctx, parts)

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
        yield from self._writer.answer(
            talk, talk.ask(message), asking, {self._parts.message: message}
        )

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
        yield from self._writer.answer(talk, talk.ask(text), asking, {})

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
        yield from self._writer.answer(talk, asked, asking, {})

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
                f"message {int(index)} is not one of yours; the conversation has "
                f"{len(talk.messages)}; give the number of one of your messages, counted from 0",
                code="chat-no-message",
                index=int(index),
                count=len(talk.messages),
            )
        yield from self._writer.answer(talk, talk.reworded(int(index), text), asking, {})

    def stop(self, request: gr.Request) -> None:
        """Stop the answer of this visitor that is being written; it ends after its next token."""
        self._ctx.stops.stop(_work_of(request))

    def clear(self, request: gr.Request) -> Updates:
        """Begin a new conversation; an answer that is being written ends unseen."""
        parts = self._parts
        self._ctx.stops.supersede(_work_of(request))
        return {
            parts.talk: Talk(),
            parts.view: make_conversation(Talk()),
            parts.status: None,
            parts.hint: None,
            parts.send: gr.Button(visible=True),
            parts.stop: gr.Button(visible=False),
            **self._writer.no_answer(),
        }

    def model(self, model_id: str | None, owner: str | None, request: gr.Request) -> Updates:
        """Say what is special about the model that was just opened: its format, thinking."""
        ctx, parts, locale = self._ctx, self._parts, locale_of(request)
        summary = model_id and ctx.store.summary(model_id, ctx.owner_of(owner, request))
        if not summary:
            return {parts.hint: None, parts.format: "", self._thinking: gr.Checkbox(visible=False)}
        advice: Updates = {parts.hint: None}
        if not summary.has_chat:
            advice = self._advise(locale, "base_model", name=summary.name)
        return {
            **advice,
            parts.format: say_format(ctx.words, locale, summary),
            self._thinking: gr.Checkbox(visible=summary.knows_thinking),
        }

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

    @property
    def _thinking(self) -> Any:
        return self._parts.form.controls["thinking"]

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
        work, locale = _work_of(request), locale_of(request)
        return Asking(work, source, visitor, system or "", settings, locale)

    def _advise(self, locale: str, key: str, **facts: object) -> Updates:
        say = partial(self._ctx.words.say, locale)
        card = {
            "kind": "hint",
            "title": say(f"chat.hint_{key}"),
            "text": say(f"chat.hint_{key}_text", **facts),
        }
        return {self._parts.hint: card}


def say_format(words: Words, locale: str, summary: ModelSummary) -> str:
    """Tell how the model's conversations are written, and where that comes from."""
    if not summary.has_chat:
        return ""
    if summary.chat_format is None:
        return words.say(locale, "chat.format_own")
    return words.say(locale, "chat.format_known", name=summary.chat_format)


def _work_of(request: gr.Request) -> str:
    """Id of what this visitor has running: his session, which no other page knows."""
    return f"chat-{request.session_hash}"
