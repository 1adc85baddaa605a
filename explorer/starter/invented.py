"""Words that nobody has read before, made up for one document and used in it alone.

A name out of a list can be guessed; a name that was made up a moment ago can only be copied from
the text. So a share of the documents is about such names and things: what is learned from them is
to look the word up, which also serves names that the training text never had.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from explorer.starter.dice import Dice
from explorer.starter.lexicon import Name, Noun, make_plural

_ONSETS = (
    "b", "bl", "br", "d", "dr", "f", "fl", "g", "gl", "gr", "h", "j", "k", "kr", "l", "m", "n",
    "p", "pl", "qu", "r", "s", "sk", "sn", "st", "t", "tr", "v", "w", "y", "z", "ch", "sh", "th",
)  # fmt: skip
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ee", "oo")
_CODAS = ("b", "d", "k", "l", "m", "n", "p", "r", "t", "v", "x", "nd", "lt", "rk")
_NAME_ENDS = {True: ("a", "i", "ia", "ie"), False: ("o", "us", "an", "ek", "or")}

# Characters that names are made of, and characters that can end the name of a thing.
_NAME_CHARACTERS = (
    "山水书海木火石土金雨风电竹茶羽星江松柏青阳春秋冬夏文武安宁平和康福寿喜庆宝元成光正东南西北长"
)
_THING_ENDS = "球车灯鼓箱壶盒板笔锤杯牌环棒"


@dataclass(frozen=True, kw_only=True)
class Inventor:
    """Makes words up.

    Args:
        make_stem: A new stem.
        name_ends: What the name of a girl (True) or of a boy ends in; nothing where `None`.
        thing_ends: What the word for a thing ends in.
        measure: Measure word of an invented thing.
        taken: Words that no invented word may be or contain, lower case.
    """

    make_stem: Callable[[Dice], str]
    name_ends: dict[bool, Sequence[str]]
    thing_ends: Sequence[str]
    measure: str
    taken: Collection[str]

    def person(self, dice: Dice) -> Name:
        """A child with a new name."""
        is_girl = dice.chance(0.5)
        word = self._draw(dice, self.name_ends[is_girl])
        return Name(word=word.capitalize(), is_girl=is_girl)

    def people(self, dice: Dice, n: int) -> list[Name]:
        """Children with different new names."""
        found: dict[str, Name] = {}
        while len(found) < n:
            name = self.person(dice)
            found[name.word] = name
        return list(found.values())

    def pet_name(self, dice: Dice) -> str:
        """A new name for an animal."""
        return self._draw(dice, ("",)).capitalize()

    def thing(self, dice: Dice) -> Noun:
        """A thing that nobody knows."""
        word = self._draw(dice, self.thing_ends)
        return Noun(word=word, plural=make_plural(word), measure=self.measure)

    def _draw(self, dice: Dice, ends: Sequence[str]) -> str:
        while True:
            word = self.make_stem(dice) + dice.pick(ends)
            if not any(taken in word for taken in self.taken):
                return word


def english_inventor(taken: Collection[str]) -> Inventor:
    """Invents English words of one or two syllables.

    Args:
        taken: Words that are no new ones.
    """
    return Inventor(
        make_stem=_make_english_stem,
        name_ends=_NAME_ENDS,
        thing_ends=("", "et", "le", "ock"),
        measure="",
        taken=frozenset(word.lower() for word in taken),
    )


def chinese_inventor(taken: Collection[str]) -> Inventor:
    """Invents Chinese names of two characters, and things of three.

    Args:
        taken: Words that are no new ones.
    """
    return Inventor(
        make_stem=_make_chinese_stem,
        name_ends={True: ("",), False: ("",)},
        thing_ends=_THING_ENDS,
        measure="个",
        taken=frozenset(taken),
    )


def _make_english_stem(dice: Dice) -> str:
    syllables = [dice.pick(_ONSETS) + dice.pick(_VOWELS) for _ in range(dice.between(1, 2))]
    return "".join(syllables) + dice.pick(_CODAS)


def _make_chinese_stem(dice: Dice) -> str:
    return "".join(dice.sample(_NAME_CHARACTERS, 2))
