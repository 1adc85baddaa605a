"""What a phrasebook holds: every template of one language and one split.

Roles in the slots: A, B, C are children, G is a relative of A, x a toy, y a thing of the house and
z clothes (each with a colour), n a pet, m a small wild animal, b a big one, c a farm animal, p and
q two places outside, i a place inside, h a home, f a food, g a number of fruits, t a number of
trinkets, w the weather, v the name of a pet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Ask:
    """A question with its one answer.

    Attributes:
        kind: What is asked: who, colour, where, count, what.
        question: Template of the question.
        answer: Template of the answer, without choices: the question decides its form.
        value: Slot of the word that the answer must contain.
    """

    kind: str
    question: str
    answer: str
    value: str


@dataclass(frozen=True, kw_only=True)
class Story:
    """A plot: sentences in order, and what may be asked after them.

    Every fact that is asked stands in the steps whatever is drawn. `openings` and `endings` name
    the groups of first and last sentences that fit: nobody goes home who is in bed already.
    """

    plot: str
    steps: tuple[str, ...]
    asks: tuple[Ask, ...] = ()
    openings: tuple[str, ...] = ("who", "friends", "day")
    endings: tuple[str, ...] = ("feel", "outside", "tell")


@dataclass(frozen=True, kw_only=True)
class Phrasebook:
    """All templates of one language and one split.

    Attributes:
        openings: Group -> first sentences of a story about A.
        endings: Group -> last sentences.
        facts: Relation -> sentences that state it.
        asks: Relation -> questions about it.
        frames: Sentences before a description.
        dialogues: Short talks, with the same roles as stories.
        games: Lines that announce words to be repeated.
        again: Lines that announce the same text once more.
        songs: Verse and refrain.
        sums: Small sums in words; k + l = s.
        changes: Stories of a number that changes, with a question.
        list_heads: Lines that announce a list.
        list_asks: Questions about a list of items (first, last, how many).
        pair_heads: Lines that announce pairs to be recalled.
    """

    openings: Mapping[str, tuple[str, ...]]
    endings: Mapping[str, tuple[str, ...]]
    stories: tuple[Story, ...]
    facts: Mapping[str, tuple[str, ...]]
    asks: Mapping[str, tuple[Ask, ...]]
    frames: tuple[str, ...]
    dialogues: tuple[Story, ...]
    games: tuple[str, ...]
    again: tuple[str, ...]
    songs: tuple[Story, ...]
    sums: tuple[str, ...]
    changes: tuple[Story, ...]
    list_heads: tuple[str, ...]
    list_asks: tuple[Ask, ...]
    pair_heads: tuple[str, ...]
