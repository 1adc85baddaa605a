"""Toy translations: pairs of texts by a rule, without end, for an encoder-decoder to learn.

    numbers    4072              four thousand seventy two
    dates      March 5, 1987     1987-03-05        (also 5 March 1987, Mar 5, 1987)
    reversal   lemon             nomel

Each asks for another alignment of the two texts: a digit becomes one word, two or none; day, month
and year change places; the first letter comes last. Both sides are cut into pieces (digits, words,
letters) of one vocabulary, which the task alone decides; three ids come before them:

    0 fills batches up    1 begins a target    2 ends it
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cached_property

from explorer.errors import ConfigError, DataError
from explorer.starter.dice import Dice

PAD_ID, START_ID, END_ID = 0, 1, 2
SPECIAL_PIECES = ("·", "▷", "■")  # what the page shows for them
LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOWELS = "aeiou"
SMALL_NUMBERS = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August"),
    *("September", "October", "November", "December"),
)
MOST_NUMBER = 99_999
FIRST_DAY, LAST_DAY = date(1900, 1, 1), date(2099, 12, 31)
SHORTEST_WORD, LONGEST_WORD = 3, 9
MOST_TRIES = 50  # draws for each pair that is wanted: so many are equal at most


@dataclass(frozen=True)
class Pair:
    """A text and its translation.

    Args:
        source: What is read.
        target: What is to be written.
    """

    source: str
    target: str


@dataclass(frozen=True)
class ToyTask:
    """One toy translation.

    Args:
        name: Its key.
        pieces: The vocabulary of both sides.
        pattern: What a piece looks like; what is between pieces counts for nothing.
        joint: Stands between the pieces of a target.
        draw: One source.
        translate: The rule; raises ValueError for a source that it is not for.
        longest: Pieces of the longest source, and of the longest target.
    """

    name: str
    pieces: tuple[str, ...]
    pattern: str
    joint: str
    draw: Callable[[Dice], str]
    translate: Callable[[str], str]
    longest: tuple[int, int]

    @property
    def vocab_size(self) -> int:
        """Ids, those in front of the pieces included."""
        return len(SPECIAL_PIECES) + len(self.pieces)

    @cached_property
    def _ids(self) -> Mapping[str, int]:
        return {piece: i for i, piece in enumerate(self.pieces, start=len(SPECIAL_PIECES))}

    def cut(self, text: str) -> list[int]:
        """The pieces of a text.

        Args:
            text: Of either side.

        Raises:
            DataError: It has something that is no piece of this task, or nothing at all.
        """
        rest = re.sub(self.pattern, "", text).strip()
        pieces = re.findall(self.pattern, text)
        unknown = [rest] if rest else [piece for piece in pieces if piece not in self._ids]
        if unknown or not pieces:
            found = unknown[0][:20] if unknown else ""
            raise DataError(
                f"{found!r} is nothing that the task {self.name!r} translates; write a text like "
                f"{self.draw(Dice(0))!r}",
                code="translation-unknown",
                found=found,
                example=self.draw(Dice(0)),
            )
        return [self._ids[piece] for piece in pieces]

    def label(self, id_: int) -> str:
        """A piece as it is shown."""
        return (*SPECIAL_PIECES, *self.pieces)[id_]

    def join(self, ids: Sequence[int]) -> str:
        """A target as one text, without the ids that are no pieces."""
        return self.joint.join(self.label(i) for i in ids if i >= len(SPECIAL_PIECES))

    def find_target(self, source: str) -> str | None:
        """The right translation of a source; None where the rule is not for it."""
        try:
            return self.translate(source)
        except ValueError:
            return None


# ----------------------------------------------------------------------------------------- numbers
def say_number(number: int) -> str:
    """A number from 0 to 99,999 in English words.

    Args:
        number: Any of them.

    Raises:
        ValueError: It is another one.
    """
    if not 0 <= number <= MOST_NUMBER:
        raise ValueError(f"{number} is not from 0 to {MOST_NUMBER}")
    return " ".join(_say_positive(number)) if number else SMALL_NUMBERS[0]


def _say_positive(number: int) -> list[str]:
    if number >= 1_000:
        thousands, rest = divmod(number, 1_000)
        return [*_say_positive(thousands), "thousand", *_say_positive(rest)]
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return [SMALL_NUMBERS[hundreds], "hundred", *_say_positive(rest)]
    if number >= 20:
        return [TENS[number // 10 - 2], *_say_positive(number % 10)]
    return [SMALL_NUMBERS[number]] if number else []


def _draw_number(dice: Dice) -> str:
    """Long and short ones alike: a number of digits first."""
    n_digits = dice.between(1, len(str(MOST_NUMBER)))
    return str(dice.between(10 ** (n_digits - 1) if n_digits > 1 else 0, 10**n_digits - 1))


# ------------------------------------------------------------------------------------------- dates
def _draw_date(dice: Dice) -> str:
    day = FIRST_DAY + timedelta(days=dice.between(0, (LAST_DAY - FIRST_DAY).days))
    month = MONTHS[day.month - 1]
    forms = (
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month} {day.year}",
        f"{month[:3]} {day.day}, {day.year}",
    )
    return dice.pick(forms)


_DATE_FORMS = (
    re.compile(r"(?P<month>[A-Z][a-z]+) (?P<day>\d{1,2}), (?P<year>\d{4})"),
    re.compile(r"(?P<day>\d{1,2}) (?P<month>[A-Z][a-z]+) (?P<year>\d{4})"),
)


def write_date(source: str) -> str:
    """A date as year, month and day (ISO 8601).

    Args:
        source: In one of the three forms.

    Raises:
        ValueError: It is in none, or there is no such day.
    """
    match = next(filter(None, (form.fullmatch(source.strip()) for form in _DATE_FORMS)), None)
    months = [i for i, m in enumerate(MONTHS, 1) if match and match["month"] in (m, m[:3])]
    if match is None or not months:
        raise ValueError(f"{source!r} is no date like 'March 5, 1987'")
    return date(int(match["year"]), months[0], int(match["day"])).isoformat()


# ---------------------------------------------------------------------------------------- reversal
def _draw_word(dice: Dice) -> str:
    """Consonants and vowels in turn, so that it can be said."""
    consonants = [letter for letter in LETTERS if letter not in VOWELS]
    first = dice.below(2)
    return "".join(
        dice.pick(VOWELS if (i + first) % 2 else consonants)
        for i in range(dice.between(SHORTEST_WORD, LONGEST_WORD))
    )


def _reverse(source: str) -> str:
    word = source.strip()
    if not word or set(word) - set(LETTERS):
        raise ValueError(f"{source!r} is no word of small letters")
    return word[::-1]


TASKS: Mapping[str, ToyTask] = {
    task.name: task
    for task in (
        ToyTask(
            name="numbers",
            pieces=(*"0123456789", *SMALL_NUMBERS, *TENS, "hundred", "thousand"),
            pattern=r"[a-z]+|\d",
            joint=" ",
            draw=_draw_number,
            translate=lambda source: say_number(int(source)),
            longest=(5, 7),
        ),
        ToyTask(
            name="dates",
            pieces=(*"0123456789", "-", ",", *dict.fromkeys((*MONTHS, *(m[:3] for m in MONTHS)))),
            pattern=r"[A-Za-z]+|\d|[-,]",
            joint="",
            draw=_draw_date,
            translate=write_date,
            longest=(8, 10),
        ),
        ToyTask(
            name="reversal",
            pieces=tuple(LETTERS),
            pattern=r"[a-z]",
            joint="",
            draw=_draw_word,
            translate=_reverse,
            longest=(LONGEST_WORD, LONGEST_WORD),
        ),
    )
}


def get_task(name: str) -> ToyTask:
    """The task of that name.

    Raises:
        ConfigError: There is none; lists those there are.
    """
    if name not in TASKS:
        known = ", ".join(TASKS)
        raise ConfigError(
            f"task={name!r} is unknown; choose {known}",
            code="run-choice",
            name="task",
            found=name,
            known=known,
        )
    return TASKS[name]


def draw_pairs(task: ToyTask, n_pairs: int, seed: int) -> tuple[Pair, ...]:
    """Different pairs of a task; the same seed gives the same ones, in the same order.

    Args:
        task: The rule.
        n_pairs: How many.
        seed: Of the draws.

    Raises:
        DataError: The task has not so many different ones.
    """
    dice, found = Dice(f"{task.name} {seed}"), dict[str, None]()
    for _ in range(MOST_TRIES * n_pairs):
        if len(found) == n_pairs:
            break
        found[task.draw(dice)] = None
    if len(found) < n_pairs:
        raise DataError(
            f"{n_pairs} different pairs of {task.name!r} are wanted, {len(found)} were found; ask "
            "for fewer",
            code="translation-pairs",
            asked=n_pairs,
            found=len(found),
        )
    return tuple(Pair(source, task.translate(source)) for source in found)
