r"""What a model thinks aloud, apart from what it answers.

    <think>\nFrance... Paris.\n</think>\n\nParis.        thought │ answer
              France... Paris.\n</think>\n\nParis.        the template wrote `<think>` already

Models such as Qwen3 and DeepSeek-R1 put their thoughts between these tags. Some templates end with
`<think>`, so an answer may begin inside; a `</think>` without a beginning says the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OPENS, CLOSES = "<think>", "</think>"
_TAGS = re.compile("(</?think>)")


@dataclass(frozen=True)
class ThoughtParts:
    """A text in two.

    Args:
        thought: All thoughts, one behind the other.
        answer: The rest.
        is_open: Whether it still thinks at its end.
    """

    thought: str
    answer: str
    is_open: bool


def split_thoughts(
    text: str, *, starts_inside: bool = False, growing: bool = False
) -> ThoughtParts:
    """Take the thoughts out of an answer.

    Args:
        text: The answer so far.
        starts_inside: Whether its beginning is a thought already.
        growing: More may come: half a tag at the end is held back.
    """
    first = _TAGS.search(text)
    inside = starts_inside or (first is not None and first[0] == CLOSES)
    if growing:
        text = text[: len(text) - _half_tag(text)]
    thoughts: list[str] = []
    answers: list[str] = []
    for piece in _TAGS.split(text):
        if piece in (OPENS, CLOSES):
            inside = piece == OPENS
        else:
            (thoughts if inside else answers).append(piece)
    thought = "\n\n".join(part.strip() for part in thoughts if part.strip())
    answer = "".join(answers)
    return ThoughtParts(thought, answer.lstrip() if thoughts else answer, inside)


def begins_inside(prompt: str) -> bool:
    """Tell whether a prompt leaves the model in the middle of a thought.

    Args:
        prompt: Its end, with the special tokens as text.
    """
    return prompt.rstrip().endswith(OPENS)


def _half_tag(text: str) -> int:
    """How many characters at the end may become a tag."""
    ends = (n for n in range(len(CLOSES) - 1, 0, -1) if len(text) >= n)
    return next((n for n in ends if any(tag.startswith(text[-n:]) for tag in (OPENS, CLOSES))), 0)
