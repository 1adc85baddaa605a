"""What one answer depends on."""

import inspect
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any

from explorer.conversation import AnswerSettings, AnswerStep, AnswerToken
from explorer.openai_server import OpenAIServer
from explorer.talk import Answer, Talk, new_name

SERVER_PREFIX = "server:"  # what answers of a server are recorded with begins so


@dataclass(frozen=True)
class ServerChoice:
    """The server that answers in place of a model here.

    Args:
        server: The server.
        model: Name that it gave its model.
    """

    server: OpenAIServer
    model: str

    @property
    def source(self) -> str:
        """What answers are recorded with; the key is no part of it."""
        return f"{SERVER_PREFIX}{self.server.url}#{self.model}"


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
        server: The server that answers; None is a model here.
        start: Tokens that the answer begins with: a branch.
        name: Of the message that the answer becomes.
    """

    work: str
    source: str
    owner: str
    system: str
    settings: AnswerSettings
    locale: str
    server: ServerChoice | None = None
    start: tuple[AnswerToken, ...] = ()
    name: str = field(default_factory=new_name)

    def record(self, step: AnswerStep) -> Answer:
        """How the answer came about."""
        return Answer(
            source=self.source if self.server is None else self.server.source,
            settings=self.settings,
            system=self.system,
            tokens=step.tokens,
            n_start=len(self.start),
            finish=step.finish,
            starts_inside=step.prompt.starts_inside,
        )

    def added(self, asked: Talk, step: AnswerStep) -> Talk:
        """The conversation with the answer; one that has not ended counts as stopped."""
        step = step if step.finish else replace(step, finish="stopped")
        return asked.answer(step.text, self.record(step), self.name)


def with_asking(
    handler: Callable[..., Iterator[Any]], make: Callable[..., Asking]
) -> Callable[..., Iterator[Any]]:
    """Let a handler take what its answer depends on one by one, and get it as one `Asking`.

    Args:
        handler: Its last parameter is the `Asking`.
        make: Makes one of its own parameters.

    Returns:
        A handler with the parameters of `make` in place of the last one.
    """
    kept = list(inspect.signature(handler).parameters.values())[:-1]
    asked = inspect.signature(make).parameters

    @wraps(handler)
    def ask(**given: Any) -> Iterator[Any]:
        asking = make(**{name: given.pop(name) for name in asked})
        yield from handler(**given, asking=asking)

    hints = {**typing.get_type_hints(handler), **typing.get_type_hints(make)}
    parameters = [*kept, *asked.values()]
    ask.__annotations__ = {parameter.name: hints[parameter.name] for parameter in parameters}
    ask.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return ask
