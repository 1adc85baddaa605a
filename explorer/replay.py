"""Writing the answers of a conversation again, to see that they come out the same.

Model, messages, settings and seed decide every token, so each answer is written anew from what
stands in the file and compared id by id. An answer that was stopped is compared as far as it goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.conversation import AnswerShare, stream_answer
from explorer.errors import Stopped
from explorer.talk import Talk

if TYPE_CHECKING:
    from models.loading import LoadedModel


@dataclass(frozen=True)
class Replay:
    """How far the writing of one answer is.

    Args:
        index: Number of the message.
        done: Tokens that were compared.
        total: Tokens to compare.
        differs_at: The first that is another one; None while all are the same.
    """

    index: int
    done: int
    total: int
    differs_at: int | None


def find_answers(talk: Talk) -> tuple[int, ...]:
    """Numbers of the messages of the path that can be written again."""
    return tuple(
        index
        for index, message in enumerate(talk.messages)
        if message.answer is not None and any(token.id >= 0 for token in message.answer.tokens)
    )


def replay_answer(
    loaded: LoadedModel,
    talk: Talk,
    index: int,
    *,
    stopped: Callable[[], bool] = lambda: False,
    share: AnswerShare | None = None,
) -> Iterator[Replay]:
    """Write one answer again.

    Args:
        loaded: Its model.
        talk: The conversation.
        index: Number of the message, one of `find_answers`.
        stopped: As of `stream_answer`.
        share: As of `stream_answer`.

    Yields:
        What was compared, after each token; it ends at the first difference.

    Raises:
        Stopped: `stopped()` became true.
        ExplorerError: As `stream_answer`.
    """
    answer = talk.messages[index].answer
    assert answer is not None, "find_answers names those with an answer"
    wanted = [token.id for token in answer.tokens]
    start = answer.tokens[: answer.n_start]
    messages = talk.before(index).for_model(answer.system)
    steps = stream_answer(
        loaded, messages, answer.settings, stopped=stopped, share=share, start=start
    )
    with closing(steps):  # type: ignore[type-var]
        for step in steps:
            if step.finish == "stopped":
                raise Stopped("stopped while an answer was written again")
            found = [token.id for token in step.tokens]
            at = _first_difference(found, wanted, ended=step.finish is not None)
            yield Replay(index, len(found), len(wanted), at)
            whole = answer.finish in ("stopped", None) and len(found) >= len(wanted)
            if at is not None or whole:
                return


def _first_difference(found: list[int], wanted: list[int], *, ended: bool) -> int | None:
    at = len(found) - 1
    if at >= len(wanted) or (at >= 0 and found[at] != wanted[at]):
        return at
    return len(found) if ended and len(found) < len(wanted) else None
