"""Writing one answer onto the page: from the question to the last token.

begin ─► the model is loaded ─► it reads ─► text and chips, as they come ─► end, with the numbers
└──────────────── stopped before a word, or failed: back to what was there before ◄─┘
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import card_for
from components.forms import Form
from components.kit.working import Working
from components.tabs.chat.answer_view import (
    NO_CHIPS,
    NO_EXPORTS,
    make_chips,
    make_csv,
    make_facts,
    make_note,
    make_prompt_chips,
    make_status,
    make_table,
    make_waiting,
)
from components.tabs.chat.asking import Asking
from components.tabs.chat.talk_list import list_talks
from components.tabs.chat.talk_view import make_conversation
from explorer.answer_snippet import make_answer_snippet
from explorer.conversation import (
    AnswerShare,
    AnswerStep,
    stream_answer,
)
from explorer.errors import ExplorerError, ServerError, Stopped
from explorer.server_answer import stream_server_answer
from explorer.talk import Answer, Talk

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
        card: Card slot of the tab, for errors.
        system: Instruction that stands before the conversation.
        form: Controls of `AnswerSettings`.
        format: The line that names the chat format.
        chips: An answer, token by token.
        choice: One of its tokens, and what else could have come.
        prompt: What the model read before it, as chips.
        working: The drawer below it.
        talks: The list of conversations.
        talk: State: the conversation.
        shown: State: number of the message whose tokens are shown; below 0 is the last.
        picked: State: the chosen token of that message; below 0 is none.
    """

    view: gr.HTML
    status: gr.HTML
    message: gr.Textbox
    send: gr.Button
    stop: gr.Button
    hint: gr.HTML
    card: gr.HTML
    system: gr.Textbox
    form: Form
    format: gr.HTML
    chips: gr.HTML
    choice: gr.HTML
    prompt: gr.HTML
    working: Working
    talks: gr.Dropdown
    talk: gr.State
    shown: gr.State
    picked: gr.State


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


class AnswerWriter:
    """Turns a question into updates of the page.

    Args:
        ctx: The page's context.
        parts: The components.
    """

    def __init__(self, ctx: AppContext, parts: Parts) -> None:
        self._ctx = ctx
        self._parts = parts
        # Question's name -> owner, and the conversation with what is written of the answer.
        self._so_far: dict[str, tuple[str, Talk]] = {}

    def so_far(self, talk: Talk) -> Talk:
        """The conversation with what the page shows of an answer that is being written."""
        return self._so_far.get(talk.leaf, ("", talk))[1]

    def find_asked(self, owner: str) -> Talk | None:
        """The conversation of a visitor's newest question that is being answered."""
        written = list(self._so_far.values())  # other visitors' answers begin and end meanwhile
        asked = [talk for whose, talk in written if whose == owner]
        return asked[-1] if asked else None

    def answer(
        self, before: Talk, asked: Talk, asking: Asking, unsent: Updates
    ) -> Iterator[Updates]:
        """Write an answer; when there is none in the end, the page goes back to `before`.

        Args:
            before: The conversation as it was.
            asked: The conversation that ends with the question.
            asking: How to answer.
            unsent: What else to put back then, such as the message into its box.
        """
        updates: Updates = {}
        with (
            self._ctx.stops.armed(asking.work) as switch,
            closing(self._write(asked, asking, switch.is_set)) as writing,  # type: ignore[type-var]
        ):
            self._so_far[asked.leaf] = asking.owner, asked
            try:
                yield self._begin(asked, asking, unsent)
                for updates in writing:
                    if switch.superseded:  # another answer, or a new conversation, has the page now
                        return
                    yield updates
            except GeneratorExit:  # the page was closed: the question is there after a reload
                if self._parts.talk not in updates:
                    self._keep(asked, asking)
                raise
            except Exception as error:
                if not switch.superseded:
                    yield self._back_to(before, asking, unsent, error)
            finally:
                self._so_far.pop(asked.leaf, None)

    def _back_to(self, before: Talk, asking: Asking, unsent: Updates, error: Exception) -> Updates:
        """The page as it was, with a card that says why, all in one update.

        A second one right behind it would overtake it in Gradio's page, and Stop would stay.
        """
        stopped = isinstance(error, Stopped)
        card = None if stopped else card_for(self._ctx.words, asking.locale, error)
        shown = {**self._end(before), **self.no_answer(), **unsent, self._parts.card: card}
        if stopped:
            shown[self._parts.status] = make_note(self._ctx, asking.locale, "stopped_early")
        return shown

    def _write(self, asked: Talk, asking: Asking, stopped: Callable[[], bool]) -> Iterator[Updates]:
        """The updates of one answer, from loading the model to the last token.

        Raises:
            Stopped: The visitor pressed Stop before the first token.
        """
        if asking.server is not None:
            yield {self._parts.status: make_waiting(self._ctx, asking.locale, "asking_server")}
            messages = asked.for_model(asking.system)
            call = partial(stream_server_answer, asking.server.server, asking.server.model)
            steps = call(messages, asking.settings, stopped=stopped)
            yield from self._show(asked, asking, None, steps)
            return
        store, status = self._ctx.store, self._parts.status
        if store.summary(asking.source, asking.owner) is None:
            yield {status: make_waiting(self._ctx, asking.locale, "loading")}
        with store.lease(asking.source, asking.owner, cancelled=stopped) as loaded:
            yield {status: make_waiting(self._ctx, asking.locale, "reading")}
            turn = partial(self._ctx.slots.turn, cancelled=stopped)
            steps = stream_answer(
                loaded,
                asked.for_model(asking.system),
                asking.settings,
                stopped=stopped,
                share=AnswerShare(turn, self._ctx.memory, asking.work),
                start=asking.start,
            )
            yield from self._show(asked, asking, loaded, steps)

    def _show(
        self, asked: Talk, asking: Asking, loaded: Any, steps: Iterator[AnswerStep]
    ) -> Iterator[Updates]:
        """Text and chips as they come, not faster than a page can draw."""
        text_pace, chips_pace = Pace(TEXT_EVERY_S), Pace(CHIPS_EVERY_S)
        tokenizer = None if loaded is None else loaded.tokenizer
        chips, step = NO_CHIPS, None
        with closing(steps):  # type: ignore[type-var]
            try:
                for step in steps:
                    if step.finish is not None:
                        yield self._finish(asked, asking, loaded, step)
                    elif text_pace.due(TEXT_LONGER_S * len(step.tokens)):
                        if chips_pace.due(CHIPS_LONGER_S * len(step.tokens)):
                            chips = make_chips(tokenizer, step.tokens)
                            self._so_far[asked.leaf] = asking.owner, asking.added(asked, step)
                        yield self._progress(asked, asking, step, chips)
            except ServerError as error:
                if step is None or not step.text:
                    raise
                yield self._cut_off(asked, asking, replace(step, finish="stopped"), error)
            except GeneratorExit:  # the page was closed: what there is, is there after a reload
                if step is not None and step.finish is None:
                    self._keep(asking.added(asked, step), asking)
                raise

    def _begin(self, asked: Talk, asking: Asking, unsent: Updates) -> Updates:
        parts = self._parts
        return {
            **dict.fromkeys(unsent, ""),
            parts.talk: asked,
            parts.view: make_conversation(asked, busy=True),
            parts.status: make_waiting(self._ctx, asking.locale, "reading"),
            parts.send: gr.Button(visible=False),
            parts.stop: gr.Button(visible=True),
            parts.hint: None,
            **self.no_answer(),
        }

    def _progress(self, asked: Talk, asking: Asking, step: AnswerStep, chips: str) -> Updates:
        parts = self._parts
        answer = Answer(
            source="", settings=asking.settings, starts_inside=step.prompt.starts_inside
        )
        return {
            parts.view: make_conversation(asked.answer(step.text, answer), busy=True),
            parts.status: make_status(self._ctx, asking.locale, step),
            # also when they are the same: left out once, they would travel whole the next time
            parts.chips: chips,
        }

    def _finish(self, asked: Talk, asking: Asking, loaded: Any, step: AnswerStep) -> Updates:
        if step.finish == "stopped" and not (step.text or step.tokens):
            raise Stopped("stopped before the first token")
        talk, listed = self._keep(asking.added(asked, step), asking)
        return {
            **self._end(talk),
            self._parts.status: make_status(self._ctx, asking.locale, step),
            **self._numbers(asked, asking, loaded, step),
            **listed,
        }

    def _cut_off(
        self, asked: Talk, asking: Asking, step: AnswerStep, error: ServerError
    ) -> Updates:
        """A server failed in the middle of its answer: what came stays, and a card says why."""
        return {
            **self._finish(asked, asking, None, step),
            self._parts.status: make_note(self._ctx, asking.locale, "cut_off"),
            self._parts.card: card_for(self._ctx.words, asking.locale, error),
        }

    def _keep(self, talk: Talk, asking: Asking) -> tuple[Talk, Updates]:
        """Save the conversation; an answer that cannot be saved is shown all the same."""
        try:
            saved = self._ctx.talks.save(asking.owner, talk)
        except ExplorerError as error:
            return talk, {self._parts.card: card_for(self._ctx.words, asking.locale, error)}
        listed = list_talks(self._ctx, asking.locale, asking.owner, saved.id)
        return saved, {self._parts.talks: listed}

    def _numbers(self, asked: Talk, asking: Asking, loaded: Any, step: AnswerStep) -> Updates:
        """Chips, prompt and drawer of a whole answer."""
        ctx, parts, working = self._ctx, self._parts, self._parts.working
        tokenizer = None if loaded is None else loaded.tokenizer
        snippet = None
        if loaded is not None:
            messages = asked.for_model(asking.system)
            snippet = make_answer_snippet(
                asking.source, messages, asking.settings, step, len(asking.start)
            )
        csv = make_csv(ctx, asking.locale, tokenizer, step.tokens)
        known = loaded is not None and bool(step.tokens)
        return {
            parts.chips: make_chips(tokenizer, step.tokens),
            parts.prompt: make_prompt_chips(tokenizer, step.prompt.ids) if known else None,
            working.facts: make_facts(loaded, len(step.tokens)) if known else None,
            working.table: make_table(ctx, asking.locale, tokenizer, step.tokens)
            if step.tokens
            else None,
            working.exports: {"csv": csv, "png": None, "python": snippet} if csv else NO_EXPORTS,
        }

    def _end(self, talk: Talk) -> Updates:
        """The conversation as it is now, at rest."""
        parts = self._parts
        return {
            parts.talk: talk,
            parts.view: make_conversation(talk),
            parts.status: None,
            parts.send: gr.Button(visible=True),
            parts.stop: gr.Button(visible=False),
        }

    def no_answer(self) -> Updates:
        """Nothing is known of the tokens."""
        working = self._parts.working
        return {
            self._parts.chips: NO_CHIPS,
            self._parts.choice: None,
            self._parts.prompt: None,
            self._parts.shown: -1,
            self._parts.picked: -1,
            working.facts: None,
            working.table: None,
            working.exports: NO_EXPORTS,
        }
