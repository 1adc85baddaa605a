"""A conversation as the page keeps it: who said what, oldest first. It belongs to one visitor."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

# What the page draws at most; the model always gets the whole text.
MOST_SHOWN_MESSAGES = 200
MOST_SHOWN_CHARACTERS = 20_000


@dataclass(frozen=True)
class Message:
    """One thing said.

    Args:
        role: Who said it.
        text: What.
    """

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class Talk:
    """A conversation; every change gives a new one.

    Args:
        messages: Oldest first.
    """

    messages: tuple[Message, ...] = ()

    def ask(self, text: str) -> Talk:
        """Add what the visitor says."""
        return replace(self, messages=(*self.messages, Message("user", text)))

    def answer(self, text: str) -> Talk:
        """Add what the model says."""
        return replace(self, messages=(*self.messages, Message("assistant", text)))

    def without_answer(self) -> Talk:
        """Drop the last answer, to write it anew; nothing changes when there is none."""
        if self.messages and self.messages[-1].role == "assistant":
            return replace(self, messages=self.messages[:-1])
        return self

    def is_question_at(self, index: int) -> bool:
        """Tell whether the message with this number is one of the visitor's."""
        return 0 <= index < len(self.messages) and self.messages[index].role == "user"

    def reworded(self, index: int, text: str) -> Talk:
        """Say something else at one place; what came after it is dropped."""
        return Talk(self.messages[:index]).ask(text)

    def for_model(self, system: str) -> list[dict[str, str]]:
        """The messages as `stream_answer` takes them.

        Args:
            system: Instruction that stands in front; an empty one is left out, so that a template
                may put its own there.
        """
        first = [{"role": "system", "content": system}] if system.strip() else []
        return first + [{"role": m.role, "content": m.text} for m in self.messages]


def make_conversation(talk: Talk, *, busy: bool = False) -> dict[str, Any]:
    """Give the value of the conversation view.

    Args:
        talk: The conversation.
        busy: Whether its last message is still being written.
    """
    first = max(0, len(talk.messages) - MOST_SHOWN_MESSAGES)
    return {
        "busy": busy,
        "earlier": first,
        "messages": [
            {
                "index": index,
                "role": message.role,
                "text": message.text[:MOST_SHOWN_CHARACTERS],
                "more": max(0, len(message.text) - MOST_SHOWN_CHARACTERS),
            }
            for index, message in enumerate(talk.messages[first:], start=first)
        ],
    }
