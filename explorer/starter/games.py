"""Texts that are rules more than sentences: sums, lists, echoes, pairs.

An echo is a row of words, names, syllables or letters, said again in the same order. Whoever finds
where the last token stood before, and looks one further, knows the next: so heads form that look
one token back, and heads that look behind an earlier copy (*In-context Learning and Induction
Heads*, Olsson et al. 2022, arXiv 2209.11895).
"""

from __future__ import annotations

from collections.abc import Sequence

from explorer.starter import words_zh
from explorer.starter.dice import Dice
from explorer.starter.narrative import ask_story, make_question, plain, with_questions
from explorer.starter.records import Document, Question
from explorer.starter.scene import Forms, Voice, draw_cast
from explorer.starter.template import render

_CONSONANTS = "bcdfghjklmnpqrstvwxz"
_VOWELS = "aeiou"
_SEPARATORS = {"en": (" ", ", ", "\n", " - "), "zh": ("、", "，", "\n")}
_COLON = {"en": ": ", "zh": "："}


def write_sums(dice: Dice, voice: Voice) -> Document:
    """Some sums one below the other, or a number of things that changes."""
    if dice.chance(0.4):
        words = _draw_sum(dice, voice)
        template = dice.pick(voice.phrasebook.sums)
        lines = [render(template, words, dice)]
        for _ in range(dice.between(2, 6)):
            lines.append(render(template, _draw_sum(dice, voice), dice))
        return plain("\n".join(lines), "sums", voice)
    words = draw_cast(dice, voice) | _draw_sum(dice, voice)
    story = dice.pick(voice.phrasebook.changes)
    text = voice.grammar.joiner.join(render(step, words, dice) for step in story.steps)
    return with_questions(text, "sums", ask_story(story, text, words, 1, dice, voice), voice)


def _draw_sum(dice: Dice, voice: Voice) -> Forms:
    """K + l = s as bare numbers, as digits and as numbers of one fruit."""
    first, second = dice.between(1, 10), dice.between(1, 10)
    noun = dice.pick(voice.lexicon.fruits)
    words: Forms = {}
    for role, number in (("k", first), ("l", second), ("s", first + second)):
        word = voice.lexicon.numbers[number]
        words |= {
            f"{role}.number": word,
            f"{role}.Number": word.capitalize(),
            f"{role}.digits": str(number),
        }
        words |= voice.grammar.counted(role, noun, number)
    return words


def write_list(dice: Dice, voice: Voice) -> Document:
    """Things with their colours, one a line, and questions about first and last."""
    lexicon, grammar = voice.lexicon, voice.grammar
    nouns = dice.sample(lexicon.things, dice.between(3, 7))
    items = [grammar.thing("x", noun, dice.pick(lexicon.colours))["x.a"] for noun in nouns]
    words = draw_cast(dice, voice)
    words |= {"first": items[0], "last": items[-1], "number": lexicon.numbers[len(items)]}
    if voice.language == "zh":
        words["number"] = "三四五六七"[len(items) - 3]
    head = render(dice.pick(voice.phrasebook.list_heads), words, dice)
    text = "\n".join([head, *items])
    asks = dice.sample(voice.phrasebook.list_asks, dice.between(1, 2))
    questions: list[Question] = [make_question(ask, text, words, voice) for ask in asks]
    return with_questions(text, "list", questions, voice)


def write_echo(dice: Dice, voice: Voice) -> Document:
    """One to three rows, each said two to four times."""
    words = draw_cast(dice, voice)
    blocks = []
    for _ in range(dice.between(1, 3)):
        separator = dice.pick(_SEPARATORS[voice.language])
        row = separator.join(_draw_row(dice, voice))
        head = render(dice.pick(voice.phrasebook.games), words, dice)
        blocks += [*([head] if head else []), *[row] * dice.between(2, 4)]
    return plain("\n".join(blocks), "echo", voice)


def write_rows(dice: Dice, voice: Voice) -> Document:
    """A row of different words, said twice.

    No word foretells the next, but the first telling does: the shortest way to heads that look one
    token back, and behind a copy.
    """
    separator = "" if voice.language == "zh" else " "
    row = separator.join(dice.sample(_all_words(voice), dice.between(10, 30)))
    return plain(f"{row}\n{row}", "rows", voice)


def _draw_row(dice: Dice, voice: Voice) -> list[str]:
    """Three to sixteen items: names, pieces that mean nothing, or words of all kinds."""
    length = dice.between(3, 16)
    pool: Sequence[str] = _all_words(voice)
    kind = dice.below(4)
    if kind == 0:
        pool = [name.word for name in voice.lexicon.names]
    elif kind == 1:
        pool = words_zh.CHARACTERS if voice.language == "zh" else _draw_pieces(dice)
    return [dice.pick(pool) for _ in range(length)]


def _draw_pieces(dice: Dice) -> list[str]:
    """Strings of consonants, or syllables: none of them is a word of the world."""
    if dice.chance(0.5):
        return [
            "".join(dice.pick(_CONSONANTS) for _ in range(dice.between(1, 5))) for _ in range(16)
        ]
    return [dice.pick(_CONSONANTS) + dice.pick(_VOWELS) for _ in range(16)]


def _all_words(voice: Voice) -> list[str]:
    """Every word that stands alone."""
    lexicon = voice.lexicon
    nouns = (*lexicon.things, *lexicon.animals, *lexicon.fruits, *lexicon.trinkets)
    places = (*lexicon.outdoors, *lexicon.indoors, *lexicon.homes)
    return [
        *(noun.word for noun in nouns),
        *(place.word for place in places),
        *(name.word for name in lexicon.names),
        *lexicon.foods,
        *lexicon.colours,
        *lexicon.numbers,
    ]


def write_pairs(dice: Dice, voice: Voice) -> Document:
    """Name and colour (or number, or animal), then the same pairs in another order."""
    lexicon = voice.lexicon
    names = [name.word for name in dice.sample(lexicon.names, dice.between(3, 7))]
    values: Sequence[str] = dice.pick(
        (lexicon.colours, lexicon.numbers[1:11], [noun.word for noun in lexicon.animals])
    )
    colon = _COLON[voice.language]
    pairs = [f"{name}{colon}{dice.pick(values)}" for name in names]
    rounds = [pairs, *(dice.shuffled(pairs) for _ in range(dice.between(1, 2)))]
    head = render(dice.pick(voice.phrasebook.pair_heads), {}, dice)
    return plain("\n".join([head, *("\n".join(lines) for lines in rounds)]), "pairs", voice)
