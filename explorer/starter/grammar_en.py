"""English forms of the words of a scene: articles, plurals, pronouns, lists.

Each function returns slot name -> word for one role, so that a template may write `{x.a}` for
"an orange cap" or `{A.his}` for "her".
"""

from __future__ import annotations

from explorer.starter.lexicon import Name, Noun, Place
from explorer.starter.words_en import NUMBERS

JOINER = " "


def person_forms(role: str, name: Name) -> dict[str, str]:
    """Name and pronouns."""
    he, him, his, kind = (
        ("she", "her", "her", "girl") if name.is_girl else ("he", "him", "his", "boy")
    )
    return {
        role: name.word,
        f"{role}.he": he,
        f"{role}.him": him,
        f"{role}.his": his,
        f"{role}.He": he.capitalize(),
        f"{role}.His": his.capitalize(),
        f"{role}.kind": kind,
    }


def thing_forms(role: str, noun: Noun, colour: str) -> dict[str, str]:
    """A thing with its colour: `x` "red ball", `x.a` "a red ball", `x.noun` "ball"."""
    phrase = f"{colour} {noun.word}"
    return {
        role: phrase,
        f"{role}.a": with_article(phrase),
        f"{role}.A": with_article(phrase).capitalize(),
        f"{role}.the": f"the {phrase}",
        f"{role}.The": f"The {phrase}",
        f"{role}.noun": noun.word,
        f"{role}.a_noun": with_article(noun.word),
        f"{role}.colour": colour,
    }


def animal_forms(role: str, noun: Noun) -> dict[str, str]:
    """An animal: `n` "owl", `n.a` "an owl", `n.s` "owls", `n.called` "hooted"."""
    return {
        role: noun.word,
        f"{role}.a": with_article(noun.word),
        f"{role}.A": with_article(noun.word).capitalize(),
        f"{role}.s": noun.plural,
        f"{role}.called": noun.voice or "blinked",
    }


def place_forms(role: str, place: Place) -> dict[str, str]:
    """A place: `p` "the park", `p.in` "in the park", `p.to` "to the park"."""
    return {
        role: f"the {place.word}",
        f"{role}.in": f"{place.there} {place.word}",
        f"{role}.In": f"{place.there} {place.word}".capitalize(),
        f"{role}.to": f"to the {place.word}",
    }


def counted_forms(role: str, noun: Noun, count: int) -> dict[str, str]:
    """A number of equal things: `g` "three apples", `g.one` "an apple", `g.s` "apples"."""
    phrase = f"{NUMBERS[count]} {noun.word if count == 1 else noun.plural}"
    return {
        role: phrase,
        f"{role}.one": with_article(noun.word),
        f"{role}.noun": noun.word,
        f"{role}.s": noun.plural,
        f"{role}.count": NUMBERS[count],
        f"{role}.Phrase": phrase.capitalize(),
    }


def with_article(phrase: str) -> str:
    """The phrase after "a" or "an"; the world has no word whose first letter misleads."""
    return f"an {phrase}" if phrase[0] in "aeiou" else f"a {phrase}"
