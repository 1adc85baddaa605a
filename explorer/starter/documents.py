"""Documents: one small scene each, told in one of several kinds of text.

story         a plot with beginning, middle and end, sometimes with questions after it
description   facts about a few people, then questions with their answers
dialogue      two children talking
sums          small sums in words, and numbers that change
list          things one below the other, what is first and last
echo          words, names or letters repeated in the same order: makes induction pay
pairs         what goes with whom, asked again in another order
song          verses with a refrain
retelling     a text told twice, word for word
rows          a row of different words, said twice, and nothing else; only where asked for
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import ModuleType

from explorer.errors import ConfigError
from explorer.starter import grammar_en, grammar_zh, words_en, words_zh
from explorer.starter.dice import Dice
from explorer.starter.games import write_echo, write_list, write_pairs, write_rows, write_sums
from explorer.starter.held_out_en import held_out_phrasebook as held_out_phrases_en
from explorer.starter.held_out_zh import held_out_phrasebook as held_out_phrases_zh
from explorer.starter.narrative import (
    ask_facts,
    ask_story,
    describe,
    tell_story,
    write_description,
    write_dialogue,
    write_retelling,
    write_song,
    write_story,
)
from explorer.starter.phrases_en import training_phrasebook as training_phrases_en
from explorer.starter.phrases_zh import training_phrasebook as training_phrases_zh
from explorer.starter.records import Document, Question
from explorer.starter.scene import Grammar, Voice, draw_facts

LANGUAGES = ("en", "zh", "both")
SPLITS = ("training", "validation", "held_out")

# Measured with a vocabulary of 4,096 pieces trained on this text: what a token holds on average.
CHARACTERS_PER_TOKEN = {"en": 3.76, "zh": 1.79}
CHINESE_SHARE = 1 / 3

_Writer = Callable[[Dice, Voice], Document]
# Kind -> writer and how often it is drawn. Echoes are short, so that a tenth of the text repeats.
_WRITERS: Mapping[str, tuple[_Writer, float]] = {
    "story": (write_story, 0.31),
    "description": (write_description, 0.33),
    "dialogue": (write_dialogue, 0.07),
    "sums": (write_sums, 0.05),
    "list": (write_list, 0.04),
    "echo": (write_echo, 0.10),
    "pairs": (write_pairs, 0.04),
    "song": (write_song, 0.02),
    "retelling": (write_retelling, 0.04),
    "rows": (write_rows, 1.0),
}
# What the world consists of.
KINDS = tuple(kind for kind in _WRITERS if kind != "rows")


def build_voice(language: str, split: str) -> Voice:
    """Words, templates and grammar of one language and one split.

    Raises:
        ConfigError: A language or split that the world does not have.
    """
    _check(split, SPLITS, "split")
    _check(language, LANGUAGES[:2], "language")
    held_out = split == "held_out"
    if language == "en":
        return Voice(
            language=language,
            lexicon=words_en.held_out_lexicon() if held_out else words_en.training_lexicon(),
            phrasebook=held_out_phrases_en() if held_out else training_phrases_en(),
            grammar=_grammar_of(grammar_en),
            times=("morning", "afternoon", "evening"),
        )
    return Voice(
        language=language,
        lexicon=words_zh.held_out_lexicon() if held_out else words_zh.training_lexicon(),
        phrasebook=held_out_phrases_zh() if held_out else training_phrases_zh(),
        grammar=_grammar_of(grammar_zh),
        times=("早上", "上午", "下午", "傍晚"),
    )


def generate_documents(
    seed: int,
    *,
    split: str = "training",
    language: str = "both",
    kinds: Collection[str] = KINDS,
) -> Iterator[Document]:
    """An endless row of documents; the same seed gives the same row on every machine.

    Args:
        seed: Of all that is drawn.
        split: training, validation (same words and templates, other scenes) or held_out (no name,
            keyword or template of the training text).
        language: en, zh, or both: then a third of the tokens is Chinese.
        kinds: Kinds of documents to write, as often among each other as in the whole world.

    Raises:
        ConfigError: A language, split or kind that the world does not have.
    """
    _check(language, LANGUAGES, "language")
    for kind in kinds:
        _check(kind, tuple(_WRITERS), "kind")
    if language == "both":
        return _mix(
            generate_documents(seed, split=split, language="en", kinds=kinds),
            generate_documents(seed, split=split, language="zh", kinds=kinds),
        )
    voice = build_voice(language, split)
    dice = Dice(f"{seed} {split} {language}")
    chosen = tuple(kind for kind in _WRITERS if kind in kinds)
    return (_write_document(dice, voice, chosen) for _ in itertools.count())


def take_characters(documents: Iterable[Document], n_characters: int) -> list[Document]:
    """The first documents that together have at least so many characters."""
    taken: list[Document] = []
    for document in documents:
        taken.append(document)
        n_characters -= len(document.text)
        if n_characters <= 0:
            break
    return taken


def generate_questions(
    seed: int, n: int, *, language: str, split: str = "validation"
) -> list[Question]:
    """Questions with one right answer each, to score a model.

    Two thirds are about descriptions, the others about stories. A model is right when its greedy
    continuation of `prompt` begins with `continuation`.

    Args:
        seed: Of all that is drawn.
        n: How many questions.
        language: en or zh.
        split: As in `generate_documents`.

    Raises:
        ConfigError: A language or split that the world does not have.
    """
    voice = build_voice(language, split)
    dice = Dice(f"{seed} {split} {language} questions")
    return [_draw_question(dice, voice) for _ in range(n)]


def _draw_question(dice: Dice, voice: Voice) -> Question:
    if dice.chance(2 / 3):
        facts = draw_facts(dice, voice, dice.between(3, 6))
        return ask_facts(facts, describe(facts, dice, voice), 1, dice, voice)[0]
    story, text, words = tell_story(dice, voice)
    return ask_story(story, text, words, 1, dice, voice)[0]


def _write_document(dice: Dice, voice: Voice, kinds: tuple[str, ...]) -> Document:
    weights = tuple(_WRITERS[kind][1] for kind in kinds)
    writer, _ = _WRITERS[dice.pick_weighted(kinds, weights)]
    return writer(dice, voice)


def _mix(english: Iterator[Document], chinese: Iterator[Document]) -> Iterator[Document]:
    """Chinese whenever its share of the tokens so far is below its share of the whole."""
    tokens = {"en": 0.0, "zh": 0.0}
    while True:
        is_short = tokens["zh"] * (1 - CHINESE_SHARE) < tokens["en"] * CHINESE_SHARE
        document = next(chinese if is_short else english)
        language = document.language
        tokens[language] += len(document.text) / CHARACTERS_PER_TOKEN[language]
        yield document


def _grammar_of(module: ModuleType) -> Grammar:
    return Grammar(
        person=module.person_forms,
        thing=module.thing_forms,
        animal=module.animal_forms,
        place=module.place_forms,
        counted=module.counted_forms,
        joiner=module.JOINER,
    )


def _check(value: str, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise ConfigError(f"{what}={value!r} is not in the world; choose {', '.join(known)}")
