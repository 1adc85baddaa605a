"""Writing one answer onto the page: from the question to the last token.

begin ─► the model is loaded ─► it reads ─► text and chips, as they come ─► end, with the numbers
└──────────────── stopped before a word, or failed: back to what was there before ◄─┘
"""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
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
    make_exports,
    make_facts,
    make_status,
    make_table,
    make_waiting,
)
from components.tabs.chat.talk import Talk, make_conversation
from explorer.answer_snippet import make_answer_snippet
from explorer.conversation import AnswerSettings, AnswerStep, stream_answer
from explorer.errors import Stopped

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
        chips: The last answer, token by token.
        working: The drawer below it.
        talk: State: the conversation.
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
    working: Working
    talk: gr.State


@dataclass(frozen=True)
class Asking:
    """Everything that one answer depends on, apart from the conversation.

    Args:
        work: Id under which it can be stopped: the visitor's session, which has one answer at most.
        source: Of the model.
        owner: Of the visitor, for the store.
        system: Instruction that stands before the conversation.
        settings: How to answer.
        locale: Language of the reader.
    """

    work: str
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


class AnswerWriter:
    """Turns a question into updates of the page.

    Args:
        ctx: The page's context.
        parts: The components.
    """

    def __init__(self, ctx: AppContext, parts: Parts) -> None:
        self._ctx = ctx
        self._parts = parts

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
        with self._ctx.stops.armed(asking.work) as switch:
            yield self._begin(asked, asking, unsent)
            try:
                for updates in self._write(asked, asking, switch.is_set):
                    if switch.superseded:  # another answer, or a new conversation, has the page now
                        return
                    yield updates
            except Exception as error:  # not GeneratorExit: then nobody is there to see it
                if not switch.superseded:
                    yield self._back_to(before, asking, unsent, error)

    def _back_to(self, before: Talk, asking: Asking, unsent: Updates, error: Exception) -> Updates:
        """The page as it was, with a card that says why, all in one update.

        A second one right behind it would overtake it in Gradio's page, and Stop would stay.
        """
        stopped = isinstance(error, Stopped)
        card = None if stopped else card_for(self._ctx.words, asking.locale, error)
        return {**self._end(before), **self.no_answer(), **unsent, self._parts.card: card}

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
                chips = NO_CHIPS
                for step in steps:
                    if step.finish is not None:
                        yield self._finish(asked, asking, loaded, step)
                    elif text_pace.due(TEXT_LONGER_S * len(step.tokens)):
                        if chips_pace.due(CHIPS_LONGER_S * len(step.tokens)):
                            chips = make_chips(loaded.tokenizer, step.tokens)
                        yield self._progress(asked, asking, step, chips)

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
        return {
            parts.view: make_conversation(asked.answer(step.text), busy=True),
            parts.status: make_status(self._ctx, asking.locale, step),
            # also when they are the same: left out once, they would travel whole the next time
            parts.chips: chips,
        }

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
            parts.view: make_conversation(talk),
            parts.status: None,
            parts.send: gr.Button(visible=True),
            parts.stop: gr.Button(visible=False),
        }

    def no_answer(self) -> Updates:
        """Empty what shows the last answer's numbers."""
        working = self._parts.working
        return {
            self._parts.chips: NO_CHIPS,
            working.facts: None,
            working.table: None,
            working.exports: NO_EXPORTS,
        }
