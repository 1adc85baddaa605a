"""What happens with whole conversations: open, switch branches, look into, save, load, replay."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import card_for
from components.tabs.chat.answer_view import (
    NO_EXPORTS,
    make_chips,
    make_choice,
    make_csv,
    make_facts,
    make_labels,
    make_prompt_chips,
    make_table,
    make_waiting,
)
from components.tabs.chat.answering import Parts, Updates
from components.tabs.chat.asking import SERVER_PREFIX
from components.tabs.chat.handlers import Handlers, work_of
from components.tabs.chat.talk_view import make_conversation
from components.text import locale_of
from explorer.answer_units import compute_answer_units
from explorer.chat_prompt import make_prompt
from explorer.conversation import AnswerShare
from explorer.errors import DataError, ExplorerError, Stopped, TokenizerError
from explorer.number_formats import split_dtype
from explorer.replay import Replay, find_answers, replay_answer
from explorer.talk import Answer, Talk
from explorer.talk_file import read_talk, write_talk


class TalkHandlers:
    """Handlers of conversations and of the tokens of an answer.

    Args:
        ctx: The page's context.
        parts: The components.
        answers: The handlers of answers.
        saver: The view that saves a file.
    """

    def __init__(self, ctx: AppContext, parts: Parts, answers: Handlers, saver: gr.HTML) -> None:
        self._ctx = ctx
        self._parts = parts
        self._answers = answers
        self._saver = saver

    def restore(self, owner: str | None, talk: Talk, request: gr.Request) -> Updates:
        """Open the conversation that was changed last, when the page is loaded.

        So is a question that another page of the visitor has just asked, such as this one before
        its reload. Its tokens may take a while to be looked up; whoever has sent a message or
        chosen another conversation by then stays with his own.
        """
        visitor = self._ctx.owner_of(owner, request)
        asked = self._answers.writer.find_asked(visitor)
        entries = self._ctx.talks.list(visitor)
        if asked and not talk.nodes:
            talk = asked
        elif entries and not talk.nodes:
            talk = self._ctx.talks.load(visitor, entries[0].id)
        shown = self._answers.open_talk(talk, owner, request)
        shown |= self._look(talk, -1, owner, request)
        work = work_of(request)
        busy = self._ctx.stops.is_running(work) or work in self._answers.chosen
        return {} if busy else shown

    def open(self, name: str, owner: str | None, request: gr.Request) -> Updates:
        """Open a conversation of the list; an answer that is being written ends unseen."""
        self._answers.chosen.append(work_of(request))
        self._ctx.stops.end(work_of(request))
        visitor = self._ctx.owner_of(owner, request)
        talk = self._ctx.talks.load(visitor, name) if name else Talk()
        shown = self._answers.open_talk(talk, owner, request)
        return {**shown, **self._look(talk, -1, owner, request)}

    def delete(self, talk: Talk, owner: str | None, request: gr.Request) -> Updates:
        """Delete the open conversation, and begin a new one."""
        visitor = self._ctx.owner_of(owner, request)
        self._ctx.stops.end(work_of(request))
        with suppress(DataError):  # nothing of it was saved yet, or another page was faster
            self._ctx.talks.delete(visitor, talk.id)
        return self._answers.open_talk(Talk(), owner, request)

    def switch(
        self, event: gr.EventData, talk: Talk, owner: str | None, request: gr.Request
    ) -> Updates:
        """Go to another branch."""
        index, by = int(event._data["index"]), int(event._data["by"])
        return self.switch_branch(index, by, talk, owner, request)

    def switch_branch(
        self, index: float, by: float, talk: Talk, owner: str | None, request: gr.Request
    ) -> Updates:
        """As `switch`, for programs: the number of the message, and 1 or -1."""
        at = int(index)
        if 0 <= at < len(talk.messages):
            talk = talk.switched(at, int(by))
        kept = self._ctx.talks.save(self._ctx.owner_of(owner, request), talk)
        shown = self._answers.open_talk(kept, owner, request)
        return {**shown, **self._look(kept, -1, owner, request)}

    def inspect(
        self, event: gr.EventData, talk: Talk, owner: str | None, request: gr.Request
    ) -> Updates:
        """Show the tokens of one answer of the conversation."""
        index = int(event._data["index"])
        return {
            self._parts.view: make_conversation(talk, shown=index),
            **self._look(talk, index, owner, request),
        }

    def token(
        self,
        event: gr.EventData,
        talk: Talk,
        shown: int,
        owner: str | None,
        request: gr.Request,
    ) -> Updates:
        """Show one token: how sure the model was, and what else could have come."""
        answer = _answer_at(self._answers.writer.so_far(talk), shown)
        if answer is None:
            return {self._parts.choice: None, self._parts.picked: -1}
        tokenizer = self._tokenizer(answer, owner, request)
        units = compute_answer_units(tokenizer, answer.tokens)[: int(event._data["index"])]
        at = sum(max(1, len(unit.unit.ids)) for unit in units)  # the first token of the unit
        return self._pick(at, answer, tokenizer, locale_of(request))

    def _pick(self, at: int, answer: Answer, tokenizer: Any, locale: str) -> Updates:
        parts = self._parts
        if not 0 <= at < len(answer.tokens):
            return {parts.choice: None, parts.picked: -1}
        token = answer.tokens[at]
        label = make_labels(tokenizer, [token])[0]
        choice = make_choice(self._ctx, locale, label, token, choosable=tokenizer is not None)
        return {parts.choice: choice, parts.picked: at}

    def export(self, talk: Talk, request: gr.Request) -> Updates:
        """Save the conversation as a file: messages, branches, models, settings, seeds, tokens."""
        say = partial(self._ctx.words.say, locale_of(request))
        if not talk.nodes:
            card = {"kind": "hint", "title": say("chat.hint_no_talk")}
            return {self._parts.hint: {**card, "text": say("chat.hint_no_talk_text")}}
        content = write_talk(talk).encode("utf-8", "replace")
        published = self._ctx.routes.publish_bytes(content, media_type="application/json")
        return {
            self._saver: {"id": published, "name": "glassbox-conversation.json"},
            self._parts.hint: None,
        }

    def load_file(self, file: str, owner: str | None, request: gr.Request) -> Updates:
        """Open a conversation from a file."""
        return self.load_text(Path(file).read_bytes(), owner, request)

    def load_text(self, text: str | bytes, owner: str | None, request: gr.Request) -> Updates:
        """As `load_file`, for programs: the JSON itself.

        Raises:
            DataError: It is no conversation, or something in it does not fit.
        """
        talk = read_talk(text)
        self._ctx.stops.end(work_of(request))
        kept = self._ctx.talks.save(self._ctx.owner_of(owner, request), talk)
        shown = self._answers.open_talk(kept, owner, request)
        say = partial(self._ctx.words.say, locale_of(request))
        card = {"kind": "info", "title": say("chat.hint_imported")}
        hint = {**card, "text": say("chat.hint_imported_text", n=len(kept.nodes))}
        return {**shown, **self._look(kept, -1, owner, request), self._parts.hint: hint}

    def replay(self, talk: Talk, owner: str | None, request: gr.Request) -> Iterator[Updates]:
        """Write every answer of the path again, and compare token by token."""
        ctx, parts, locale = self._ctx, self._parts, locale_of(request)
        numbers = find_answers(talk)
        buttons = (gr.Button(visible=False), gr.Button(visible=True))
        yield {parts.hint: None, parts.send: buttons[0], parts.stop: buttons[1]}
        last: list[Replay] = []
        end: Updates
        with ctx.stops.armed(work_of(request)) as switch:
            try:
                for index in numbers:
                    visitor = ctx.owner_of(owner, request)
                    for step in self._replay_one(talk, index, visitor, switch.is_set, last):
                        facts = {"answer": len(last), "of": len(numbers), "done": step.done}
                        status = make_waiting(ctx, locale, "replaying", **facts, total=step.total)
                        yield {parts.status: status}
                end = {parts.hint: self._say_replay(last, locale)}
            except Stopped:
                end = {parts.hint: None}
            except Exception as error:  # of any kind: else Stop would stay
                end = {parts.card: card_for(ctx.words, locale, error)}
        yield {
            parts.status: None,
            parts.send: gr.Button(visible=True),
            parts.stop: gr.Button(visible=False),
            **end,
        }

    def _replay_one(
        self, talk: Talk, index: int, visitor: str, stopped: Any, last: list[Replay]
    ) -> Iterator[Replay]:
        answer = talk.messages[index].answer
        assert answer is not None, "find_answers names those with an answer"
        last.append(Replay(index, 0, len(answer.tokens), None))
        with self._ctx.store.lease(answer.source, visitor, cancelled=stopped) as loaded:
            share = AnswerShare(partial(self._ctx.slots.turn, cancelled=stopped))
            for step in replay_answer(loaded, talk, index, stopped=stopped, share=share):
                last[-1] = step
                yield step

    def _say_replay(self, last: list[Replay], locale: str) -> dict[str, str]:
        say = partial(self._ctx.words.say, locale)
        wrong = next((step for step in last if step.differs_at is not None), None)
        if not last:
            return {"kind": "hint", "title": say("chat.replay_none"), "text": ""}
        if wrong is None:
            facts = {"answers": len(last), "tokens": sum(step.total for step in last)}
            text = say("chat.replay_same_text", **facts)
            return {"kind": "info", "title": say("chat.replay_same"), "text": text}
        facts = {"message": wrong.index + 1, "token": wrong.differs_at or 0}
        text = say("chat.replay_differs_text", **facts)
        return {"kind": "hint", "title": say("chat.replay_differs"), "text": text}

    def _look(self, talk: Talk, index: int, owner: str | None, request: gr.Request) -> Updates:
        """Chips, prompt and table of an answer that was written before."""
        ctx, parts, working, locale = (
            self._ctx,
            self._parts,
            self._parts.working,
            locale_of(request),
        )
        answer = _answer_at(talk, index)
        nothing = {parts.shown: index, parts.choice: None, parts.picked: -1}
        if answer is None or not answer.tokens:
            return nothing
        if not self._is_here(answer, ctx.owner_of(owner, request)):
            say = partial(ctx.words.say, locale, "chat.model_not_here", model=answer.source)
            return {**nothing, parts.status: {"phase": "done", "text": say(), "facts": []}}
        tokenizer = self._tokenizer(answer, owner, request)
        try:
            chips = make_chips(tokenizer, answer.tokens)
        except TokenizerError as error:  # of a file that was edited by hand: its text is shown
            return {**nothing, parts.card: card_for(ctx.words, locale, error)}
        csv = make_csv(ctx, locale, tokenizer, answer.tokens)
        return {
            **nothing,
            parts.chips: chips,
            working.table: make_table(ctx, locale, tokenizer, answer.tokens),
            working.exports: {**NO_EXPORTS, "csv": csv},
            **self._look_at_prompt(talk, index, answer, ctx.owner_of(owner, request)),
        }

    def _look_at_prompt(self, talk: Talk, index: int, answer: Answer, visitor: str) -> Updates:
        """What the model read, where it is in memory: it is not loaded for this alone."""
        parts, store = self._parts, self._ctx.store
        nothing: Updates = {parts.prompt: None, parts.working.facts: None}
        if answer.source.startswith(SERVER_PREFIX) or store.summary(answer.source, visitor) is None:
            return nothing
        at = len(talk.messages) - 1 if index < 0 else index
        messages, settings = talk.before(at).for_model(answer.system), answer.settings
        with store.lease(answer.source, visitor) as loaded:
            prompt = make_prompt(
                loaded,
                messages,
                thinking=settings.thinking,
                max_new_tokens=settings.max_new_tokens,
            )
            return {
                parts.prompt: make_prompt_chips(loaded.tokenizer, prompt.ids),
                parts.working.facts: make_facts(loaded, len(answer.tokens)),
            }

    def _is_here(self, answer: Answer, visitor: str) -> bool:
        """Whether its tokens can be read without a download that nobody asked for."""
        if answer.source.startswith(SERVER_PREFIX):
            return True
        here = {e.id for e in self._ctx.store.catalogue() if e.presence == "here"}
        if split_dtype(answer.source)[0] in here:
            return True
        try:
            return self._ctx.store.summary(answer.source, visitor) is not None
        except ExplorerError:  # it is somebody else's
            return False

    def _tokenizer(self, answer: Answer, owner: str | None, request: gr.Request) -> Any:
        """The tokenizer of an answer's model; None for a server's."""
        if answer.source.startswith(SERVER_PREFIX):
            return None
        return self._ctx.store.tokenizer(answer.source, self._ctx.owner_of(owner, request))


def _answer_at(talk: Talk, index: int) -> Answer | None:
    """How a message came about; below 0 is the last."""
    at = len(talk.messages) - 1 if index < 0 else index
    return talk.messages[at].answer if 0 <= at < len(talk.messages) else None
