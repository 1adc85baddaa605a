"""An answer of a server, in the same steps as one of a model here.

A server tells of each token at most its probability and the best alternatives; ids, ranks beyond
these and what its own filters left stay unknown. A branch cannot begin there: the API takes whole
messages only.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from explorer.chat_prompt import ChatPrompt, Message
from explorer.conversation import AnswerSettings, AnswerStep, AnswerToken, Finish
from explorer.errors import ConfigError, Stopped
from explorer.openai_server import ChatRequest

if TYPE_CHECKING:
    from explorer.openai_server import OpenAIServer
    from explorer.openai_wire import ServerToken

UNKNOWN_ID = -1


def stream_server_answer(
    server: OpenAIServer,
    model: str,
    messages: Sequence[Message],
    settings: AnswerSettings,
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[AnswerStep]:
    """Answer the last message, piece by piece.

    Args:
        server: The server.
        model: Name that it gave.
        messages: As of `stream_answer`.
        settings: Temperature, top-p, length and seed are sent; servers differ in the others.
        stopped: Asked while it waits.

    Yields:
        A step after each piece; the last one has `finish`.

    Raises:
        ConfigError: No model was named.
        ServerError: The server gives no answer that can be used.
    """
    if not model.strip():
        raise ConfigError(
            "no model of the server was named; list its models and choose one", code="server-model"
        )
    request = ChatRequest(
        model=model.strip(),
        messages=messages,
        temperature=settings.temperature,
        top_p=settings.top_p,
        max_tokens=settings.max_new_tokens,
        seed=settings.seed,
    )
    answer = _ServerAnswer()
    finish: Finish = "stop"
    try:
        for piece in server.stream_chat(request, stopped=stopped):
            answer.add(piece.text, piece.tokens)
            if piece.finish is not None:
                finish = "length" if piece.finish == "length" else "stop"
                continue
            yield answer.step(None)
    except Stopped:
        finish = "stopped"
    yield answer.step(finish)


class _ServerAnswer:
    """An answer as it grows."""

    def __init__(self) -> None:
        self._asked_at = time.perf_counter()
        self._first_at: float | None = None
        self._text = ""
        self._tokens: list[AnswerToken] = []

    def add(self, text: str, tokens: Sequence[ServerToken]) -> None:
        if self._first_at is None and text:
            self._first_at = time.perf_counter()
        self._text += text
        self._tokens += [_describe(token) for token in tokens]

    def step(self, finish: Finish | None) -> AnswerStep:
        first_s = None if self._first_at is None else self._first_at - self._asked_at
        passed_s = 0.0 if self._first_at is None else time.perf_counter() - self._first_at
        speed = (len(self._tokens) - 1) / passed_s if passed_s > 0 and self._tokens else None
        return AnswerStep(
            text=self._text,
            tokens=tuple(self._tokens),
            prompt=ChatPrompt(()),
            context_length=0,
            first_token_s=first_s,
            tokens_per_s=speed,
            finish=finish,
        )


def _describe(token: ServerToken) -> AnswerToken:
    others = tuple((text, math.exp(chance)) for text, chance in token.alternatives)
    higher = sum(chance > token.log_probability for _, chance in token.alternatives)
    return AnswerToken(
        id=UNKNOWN_ID,
        probability=math.exp(token.log_probability),
        rank=higher + 1,
        alternatives=others,
        text=token.text,
    )
