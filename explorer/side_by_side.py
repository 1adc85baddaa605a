"""Two models, or two checkpoints of one, on the same prompt.

Each answer is what the model would say alone: same messages, settings and seed. The two are
written in turns, a token each, so that neither waits for the other. How surprised a model was by
its own answer is the mean of -ln p over its tokens; e to that power is its perplexity.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from itertools import zip_longest

from explorer.chat_prompt import Message
from explorer.conversation import AnswerSettings, AnswerStep, AnswerToken, stream_answer
from explorer.snippets import make_snippet, say_load

_FIELDS = {field.name: field for field in fields(AnswerSettings)}


@dataclass(frozen=True, kw_only=True)
class SideSettings:
    """How both answer.

    Args:
        temperature: 0 takes the most probable token each time.
        max_new_tokens: Longest answer, in tokens.
        seed: Of the draws of both.
    """

    temperature: float = field(default=0.0, metadata=_FIELDS["temperature"].metadata)
    max_new_tokens: int = field(default=60, metadata=_FIELDS["max_new_tokens"].metadata)
    seed: int = field(default=0, metadata=_FIELDS["seed"].metadata)

    @property
    def for_answer(self) -> AnswerSettings:
        """The same as settings of an answer, which keeps all tokens but for the temperature."""
        return AnswerSettings(
            temperature=self.temperature,
            max_new_tokens=self.max_new_tokens,
            seed=self.seed,
            top_k=0,
            top_p=1.0,
        )


@dataclass(frozen=True)
class SideSummary:
    """Two answers in numbers.

    Args:
        surprise_nats: Of each, the mean of -ln p over its tokens; None without tokens.
        perplexity: Of each, e to that power.
        shared_characters: How many characters at the beginning are the same.
    """

    surprise_nats: tuple[float | None, ...]
    perplexity: tuple[float | None, ...]
    shared_characters: int


def stream_in_turns(
    streams: Sequence[Iterator[AnswerStep]],
) -> Iterator[tuple[AnswerStep | None, ...]]:
    """Take a step of each in turn.

    Args:
        streams: The answers.

    Yields:
        The newest step of each, after every step; None where there is none yet.
    """
    newest: list[AnswerStep | None] = [None] * len(streams)
    for steps in zip_longest(*(_numbered(index, stream) for index, stream in enumerate(streams))):
        for found in steps:
            if found is not None:
                newest[found[0]] = found[1]
        yield tuple(newest)


def _numbered(index: int, stream: Iterator[AnswerStep]) -> Iterator[tuple[int, AnswerStep]]:
    for step in stream:
        yield index, step


def compute_side_summary(answers: Sequence[AnswerStep]) -> SideSummary:
    """Put two answers in numbers.

    Args:
        answers: The last step of each.
    """
    surprise = tuple(_surprise(answer.tokens) for answer in answers)
    one, other = answers[0].text, answers[1].text
    pairs = enumerate(zip(one, other, strict=False))
    shared = next((i for i, (a, b) in pairs if a != b), min(len(one), len(other)))
    perplexity = tuple(None if mean is None else math.exp(mean) for mean in surprise)
    return SideSummary(surprise, perplexity, shared)


def _surprise(tokens: Sequence[AnswerToken]) -> float | None:
    # a token of probability 0 was put there by hand, or rounded: as surprising as can be said
    least = 1e-45
    terms = [-math.log(max(token.probability, least)) for token in tokens]
    return sum(terms) / len(terms) if terms else None


def make_side_snippet(
    sources: Sequence[str], messages: Sequence[Message], settings: AnswerSettings
) -> str:
    """Python that writes both answers.

    Args:
        sources: Of the models.
        messages: What both were given.
        settings: How they answered.
    """
    loads = ", ".join(say_load(source) for source in sources)
    return make_snippet(
        (AnswerSettings, compute_side_summary, stream_answer),
        "from models import load_model",
        "",
        f"messages = {[dict(message) for message in messages]!r}",
        f"settings = {settings!r}",
        "answers = []",
        f"for loaded in ({loads}):",
        f"    *_, answer = {stream_answer.__name__}(loaded, messages, settings)",
        "    answers.append(answer)",
        "    print(repr(answer.text))",
        f"print({compute_side_summary.__name__}(answers))",
    )
