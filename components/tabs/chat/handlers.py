"""What happens when somebody asks, stops, edits or asks again."""

from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import gradio as gr

from components.context import AppContext
from components.tabs.chat.answering import AnswerWriter, Parts, Updates
from components.tabs.chat.asking import Asking, ServerChoice
from components.tabs.chat.talk_list import list_talks
from components.tabs.chat.talk_view import make_conversation
from components.text import Words, locale_of
from explorer.conversation import (
    AnswerSettings,
    AnswerShare,
    AnswerStep,
    choose_alternative,
    stream_answer,
)
from explorer.errors import ConfigError
from explorer.openai_server import OpenAIServer
from explorer.server_answer import stream_server_answer
from explorer.store_records import ModelSummary
from explorer.talk import Talk

EXAMPLE_KEYS = ("chat.example_france", "chat.example_number", "chat.example_haiku")
# What the examples ask; the same in every language, because small models know English best.
EXAMPLE_TEXTS = (
    "What is the capital of France?",
    "Pick a number from 1 to 10.",
    "Write a haiku about rain.",
)


class Handlers:
    """Handlers of the tab's events. A conversation is an input and an output.

    Args:
        ctx: The page's context.
        parts: The components.
    """

    def __init__(self, ctx: AppContext, parts: Parts) -> None:
        self._ctx = ctx
        self._parts = parts
        self.writer = AnswerWriter(ctx, parts)
        # Pages whose visitor has chosen a conversation; it matters in their first seconds alone.
        self.chosen: deque[str] = deque(maxlen=1000)

    # Each of these takes the conversation, and in the end who asks and how: see `with_asking`.

    def send(
        self,
        message: str,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Send a message and write the answer."""
        if not (message or "").strip():
            yield self._advise(asking.locale, "empty")
            return
        yield from self.writer.answer(
            talk, talk.ask(message), asking, {self._parts.message: message}
        )

    def example(
        self,
        event: gr.EventData,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Send one of the examples."""
        text = EXAMPLE_TEXTS[int(event._data["index"])]
        yield from self.writer.answer(talk, talk.ask(text), asking, {})

    def regenerate(
        self,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Write the last answer anew; with the same settings and seed it is the same."""
        asked = talk.without_answer()
        if not asked.messages:
            yield self._advise(asking.locale, "nothing_to_regenerate")
            return
        yield from self.writer.answer(talk, asked, asking, {})

    def another(
        self,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Write another answer, with the next seed."""
        if asking.settings.temperature == 0:
            yield self._advise(asking.locale, "greedy")
            return
        settings = replace(asking.settings, seed=(asking.settings.seed + 1) % 2**31)
        yield {self._parts.form.controls["seed"]: settings.seed}
        yield from self.regenerate(talk, replace(asking, settings=settings))

    def reword(
        self,
        event: gr.EventData,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Change one of the visitor's messages; the answers after it are written anew."""
        index, text = int(event._data["index"]), str(event._data["text"])
        yield from self.edit(index, text, talk, asking)

    def edit(
        self,
        index: float,
        text: str,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """As `reword`, for programs: the number of the message, counted from 0, and its new text.

        Raises:
            ConfigError: There is no message of the visitor with this number.
        """
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
        yield from self.writer.answer(talk, talk.reworded(int(index), text), asking, {})

    def choose(
        self,
        event: gr.EventData,
        shown: int,
        picked: int,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Put another token in the place of the one that was picked, and go on from there."""
        alternative = int(event._data["alternative"])
        yield from self.branch(shown, picked, alternative, talk, asking)

    def branch(
        self,
        index: float,
        token: float,
        alternative: float,
        talk: Talk,
        asking: Asking,
    ) -> Iterator[Updates]:
        """Branch an answer: keep its tokens up to one, put an alternative there, and go on.

        The branch is written by the model, with the settings and the seed, that wrote the answer.

        Raises:
            ConfigError: There is no such message, token or alternative.
        """
        talk = self.writer.so_far(talk)
        at, k = len(talk.messages) - 1 if index < 0 else int(index), int(token)
        answer = talk.messages[at].answer if 0 <= at < len(talk.messages) else None
        if answer is None or not 0 <= k < len(answer.tokens):
            raise ConfigError(
                f"message {at} has no token {k}; give one of an answer, from 0",
                code="chat-no-token",
                index=at,
                token=k,
            )
        start = (*answer.tokens[:k], choose_alternative(answer.tokens[k], int(alternative)))
        asking = replace(asking, source=answer.source, server=None, start=start)
        asking = replace(asking, system=answer.system, settings=answer.settings)
        yield from self.writer.answer(talk, talk.before(at), asking, {})

    def stop(self, request: gr.Request) -> None:
        """Stop the answer of this visitor that is being written; it ends after its next token."""
        self._ctx.stops.stop(work_of(request))

    def clear(self, owner: str | None, request: gr.Request) -> Updates:
        """Begin a new conversation; an answer that is being written ends unseen."""
        self.chosen.append(work_of(request))
        self._ctx.stops.end(work_of(request))
        return self.open_talk(Talk(), owner, request)

    def open_talk(self, talk: Talk, owner: str | None, request: gr.Request) -> Updates:
        """Show a conversation, at rest.

        Args:
            talk: The conversation.
            owner: Of the visitor.
            request: His request.
        """
        parts, visitor = self._parts, self._ctx.owner_of(owner, request)
        return {
            parts.talk: talk,
            parts.view: make_conversation(talk),
            parts.talks: list_talks(self._ctx, locale_of(request), visitor, talk.id),
            parts.status: None,
            parts.hint: None,
            parts.send: gr.Button(visible=True),
            parts.stop: gr.Button(visible=False),
            **self.writer.no_answer(),
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
        server: str = "",
        key: str = "",
        *,
        settings: AnswerSettings,
    ) -> dict[str, Any]:
        """Answer one message; an empty `model` is the page's first, an empty `system` none.

        With the address of an OpenAI-compatible `server`, `model` is the name that it knows.
        """
        chosen = self._server(server, key, model) if server.strip() else None
        source = None if chosen else model or None
        asking = self.make_asking(source, None, system, chosen, request, settings)
        last = self._answer_whole(Talk().ask(message), asking)
        return {
            "text": last.text,
            "tokens": [asdict(token) for token in last.tokens],
            "finish": last.finish,
            "prompt_tokens": last.n_prompt_tokens,
            "context_length": last.context_length,
            "notes": list(last.prompt.notes),
        }

    def _answer_whole(self, talk: Talk, asking: Asking) -> AnswerStep:
        messages = talk.for_model(asking.system)
        if asking.server is not None:
            called, name = asking.server.server, asking.server.model
            *_, last = stream_server_answer(called, name, messages, asking.settings)
            return last
        with self._ctx.store.lease(asking.source, asking.owner) as loaded:
            share = AnswerShare(turn=self._ctx.slots.turn)
            *_, last = stream_answer(loaded, messages, asking.settings, share=share)
        return last

    def _server(self, url: str, key: str, model: str) -> ServerChoice:
        return ServerChoice(OpenAIServer(url, key=key, rule=self._ctx.servers), model)

    @property
    def _thinking(self) -> Any:
        return self._parts.form.controls["thinking"]

    def make_asking(
        self,
        model_id: str | None,
        owner: str | None,
        system: str,
        server: ServerChoice | None,
        request: gr.Request,
        settings: AnswerSettings,
    ) -> Asking:
        """What the controls of the page ask for."""
        source = self._ctx.source_of(model_id)
        visitor = self._ctx.owner_of(owner, request)
        work, locale = work_of(request), locale_of(request)
        return Asking(work, source, visitor, system or "", settings, locale, server)

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


def work_of(request: gr.Request) -> str:
    """Id of what this visitor has running: his session, which no other page knows."""
    return f"chat-{request.session_hash}"
