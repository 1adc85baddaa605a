"""What a language has words for: names, things, animals, places, colours, numbers.

The word lists are written as plain text, one class a line, and read here. Two lexicons of a
language, one for the training text and one for the held-out text, share colours, numbers and
weather, and no other word.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Noun:
    """A thing, an animal or a fruit.

    `plural` is used in English only, `measure` (the word between a number and a noun: yi *ge*
    pingguo) in Chinese only. `voice` is the verb that goes with it: what an animal did when it
    called in English, how clothes are put on in Chinese.
    """

    word: str
    plural: str = ""
    measure: str = ""
    voice: str = ""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A place and how one is there: "in the park", or the ending of the word in Chinese."""

    word: str
    there: str


@dataclass(frozen=True, kw_only=True)
class Name:
    """The name of a child; `is_girl` chooses the pronouns."""

    word: str
    is_girl: bool


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """All words that the texts of one language and one split may use for a class of things."""

    names: tuple[Name, ...]
    toys: tuple[Noun, ...]
    clothes: tuple[Noun, ...]
    household: tuple[Noun, ...]
    pets: tuple[Noun, ...]
    farm_animals: tuple[Noun, ...]
    small_animals: tuple[Noun, ...]
    big_animals: tuple[Noun, ...]
    pet_names: tuple[str, ...]
    outdoors: tuple[Place, ...]
    indoors: tuple[Place, ...]
    homes: tuple[Place, ...]
    fruits: tuple[Noun, ...]
    trinkets: tuple[Noun, ...]
    foods: tuple[str, ...]
    colours: tuple[str, ...]
    numbers: tuple[str, ...]
    weather: tuple[str, ...]
    relatives: tuple[Name, ...]

    @property
    def things(self) -> tuple[Noun, ...]:
        """Everything that can be owned and has a colour."""
        return (*self.toys, *self.clothes, *self.household)

    @property
    def animals(self) -> tuple[Noun, ...]:
        """All animals."""
        return (*self.pets, *self.farm_animals, *self.small_animals, *self.big_animals)

    def keywords(self) -> frozenset[str]:
        """Names and words for things, animals, places, fruits and foods: never in both splits."""
        nouns = (*self.things, *self.animals, *self.fruits, *self.trinkets)
        places = (*self.outdoors, *self.indoors, *self.homes)
        return frozenset(
            {name.word for name in self.names}
            | {noun.word for noun in nouns}
            | {noun.plural for noun in nouns if noun.plural}
            | {place.word for place in places}
            | {*self.foods, *self.pet_names}
        )


def read_names(girls: str, boys: str) -> tuple[Name, ...]:
    """Names from two lines of text."""
    return tuple(
        [Name(word=word, is_girl=True) for word in girls.split()]
        + [Name(word=word, is_girl=False) for word in boys.split()]
    )


def read_words(text: str) -> tuple[str, ...]:
    """Words from `word, word` text."""
    return tuple(word.strip() for word in text.split(","))


def read_places(text: str) -> tuple[Place, ...]:
    """Places from `there: word, word` lines."""
    return tuple(
        Place(word=word, there=there.strip())
        for line in text.strip().splitlines()
        for there, _, words in [line.partition(":")]
        for word in read_words(words)
    )


def read_measured(text: str) -> tuple[Noun, ...]:
    """Chinese nouns from `measure word: noun, noun>verb` lines."""
    return tuple(
        Noun(word=word, measure=place.there, voice=voice)
        for place in read_places(text)
        for word, _, voice in [place.word.partition(">")]
    )


def read_english(text: str) -> tuple[Noun, ...]:
    """English nouns from `noun, noun=plural, noun>voice` text; a regular plural is made."""
    return tuple(_read_noun(entry.strip()) for entry in text.replace("\n", " ").split(","))


def _read_noun(entry: str) -> Noun:
    entry, _, voice = entry.partition(">")
    word, _, plural = entry.partition("=")
    return Noun(word=word, plural=plural or make_plural(word), voice=voice)


def make_plural(word: str) -> str:
    """The regular English plural: boxes, ponies, toys, cups."""
    if word.endswith(("s", "x", "ch", "sh")):
        return word + "es"
    if word.endswith("y") and word[-2] not in "aeiou":
        return word[:-1] + "ies"
    return word + "s"
