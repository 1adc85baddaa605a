"""Chinese forms of the words of a scene: measure words, colours, pronouns, lists.

The slots have the same meaning as in English where both languages have the form.
"""

from __future__ import annotations

from explorer.starter.lexicon import Name, Noun, Place
from explorer.starter.words_zh import NUMBERS

JOINER = ""


def person_forms(role: str, name: Name) -> dict[str, str]:
    """Name and pronoun."""
    return {
        role: name.word,
        f"{role}.he": "她" if name.is_girl else "他",
        f"{role}.kind": "女孩" if name.is_girl else "男孩",
    }


def thing_forms(role: str, noun: Noun, colour: str) -> dict[str, str]:
    """A thing with its colour: red ball, one red ball, that red ball, the bare noun."""
    phrase = f"{colour}色的{noun.word}"
    return {
        role: phrase,
        f"{role}.a": f"一{noun.measure}{phrase}",
        f"{role}.that": f"那{noun.measure}{phrase}",
        f"{role}.noun": noun.word,
        f"{role}.a_noun": f"一{noun.measure}{noun.word}",
        f"{role}.colour": f"{colour}色",
        f"{role}.measure": noun.measure,
        f"{role}.wear": noun.voice or "穿",
    }


def animal_forms(role: str, noun: Noun) -> dict[str, str]:
    """An animal: bare, one, that, which, and a number of them."""
    return {
        role: noun.word,
        f"{role}.a": f"一{noun.measure}{noun.word}",
        f"{role}.that": f"那{noun.measure}{noun.word}",
        f"{role}.this": f"这{noun.measure}{noun.word}",
        f"{role}.measure": noun.measure,
    }


def place_forms(role: str, place: Place) -> dict[str, str]:
    """A place: the word, and the word with its ending of place."""
    return {role: place.word, f"{role}.in": f"{place.word}{place.there}"}


def counted_forms(role: str, noun: Noun, count: int) -> dict[str, str]:
    """A number of equal things; two is *liang* before a measure word."""
    number = "两" if count == 2 else NUMBERS[count]
    return {
        role: f"{number}{noun.measure}{noun.word}",
        f"{role}.one": f"一{noun.measure}{noun.word}",
        f"{role}.noun": noun.word,
        f"{role}.count": f"{number}{noun.measure}",
        f"{role}.measure": noun.measure,
    }
