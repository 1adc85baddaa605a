"""How a conversation is drawn: its path, thoughts apart, and where branches are."""

from __future__ import annotations

from typing import Any

from explorer.talk import Message, Talk
from explorer.thoughts import split_thoughts

# What the page draws at most; the model always gets the whole text.
MOST_SHOWN_MESSAGES = 200
MOST_SHOWN_CHARACTERS = 20_000


def make_conversation(talk: Talk, *, busy: bool = False, shown: int = -1) -> dict[str, Any]:
    """Give the value of the conversation view.

    Args:
        talk: The conversation.
        busy: Whether its last message is still being written.
        shown: The message whose tokens are shown; below 0 is the last answer.
    """
    first = max(0, len(talk.messages) - MOST_SHOWN_MESSAGES)
    last = len(talk.messages) - 1
    return {
        "busy": busy,
        "earlier": first,
        "shown": last if shown < 0 else shown,
        "messages": [
            {"index": index, **_draw(talk, index, message, growing=busy and index == last)}
            for index, message in enumerate(talk.messages[first:], start=first)
        ],
    }


def _draw(talk: Talk, index: int, message: Message, *, growing: bool) -> dict[str, Any]:
    thought, text, thinks = "", message.text, False
    answer = message.answer
    if message.role == "assistant":
        inside = answer is not None and answer.starts_inside
        parts = split_thoughts(text, starts_inside=inside, growing=growing)
        thought, text, thinks = parts.thought, parts.answer, parts.is_open and growing
    drawn: dict[str, Any] = {
        "role": message.role,
        "text": text[:MOST_SHOWN_CHARACTERS],
        "more": max(0, len(text) - MOST_SHOWN_CHARACTERS),
    }
    if thought:
        drawn |= {"thought": thought[:MOST_SHOWN_CHARACTERS], "thinks": thinks}
    place, count = talk.place(index)
    if count > 1 and not growing:
        drawn["branch"] = [place, count]
    if answer is not None and answer.tokens:
        drawn["tokens"] = True
    if answer is not None and answer.finish == "stopped" and not growing:
        drawn["cut"] = True
    return drawn
