"""What the generator yields: documents and questions."""

from __future__ import annotations

from dataclasses import dataclass

from explorer.starter.scene import Fact


@dataclass(frozen=True, kw_only=True)
class Question:
    """A question about a text, with its one answer.

    Attributes:
        context: The text that the answer follows from.
        question: The question.
        answer: The whole answer; a model is right when it writes exactly this.
        kind: who, colour, where, count, what or name.
        value: The word of the answer that was asked for.
        language: en or zh.
        fact: What it was made from, for questions about a description.
    """

    context: str
    question: str
    answer: str
    kind: str
    value: str
    language: str
    fact: Fact | None = None

    @property
    def prompt(self) -> str:
        """What a model is given: text, line break, question; no space at the end."""
        return f"{self.context}\n{self.question}"

    @property
    def continuation(self) -> str:
        """What a model should write after the prompt."""
        return f" {self.answer}" if self.language == "en" else self.answer


@dataclass(frozen=True, kw_only=True)
class Document:
    """One text; a separator token stands between documents, never in them.

    Attributes:
        text: The text.
        language: en or zh.
        kind: One of the kinds of `documents`.
        facts: The facts of a description.
        questions: Questions that the text itself asks and answers, in its order.
    """

    text: str
    language: str
    kind: str
    facts: tuple[Fact, ...] = ()
    questions: tuple[Question, ...] = ()
