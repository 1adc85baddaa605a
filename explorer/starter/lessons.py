"""Data sets for lessons on fine-tuning, in the starter's world; a third of each is Chinese.

messages      spam offers things, ham tells of animals. Both use the same frames, so that only the
              meaning of the nouns tells them apart
instructions  a short text and a question about it, answered in one sentence. A few hundred rows
              teach a small model the form of answers, not to answer as such: so the part that is
              kept apart asks for answers of the same forms, in other words, about other texts
preferences   the polite answer answers and then says goodbye; the blunt one says goodbye before it
              has answered, which the starter model itself finds likelier. Both have the same words,
              so that only their order tells
choices       questions of the part that is kept apart, each with four answers, different in one
              word

Half of the names and keywords and some templates are for learning, the other half is kept apart:
who counts words has nothing to go by there, and who knows from pretraining what an animal is, has.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from explorer.starter.dice import Dice
from explorer.starter.documents import build_voice
from explorer.starter.lesson_phrases import LessonPhrases, lesson_phrases
from explorer.starter.lexicon import Lexicon
from explorer.starter.narrative import make_question
from explorer.starter.phrasebook import Ask
from explorer.starter.records import Question
from explorer.starter.scene import StatedFact, Voice, draw_facts
from explorer.starter.template import render

SEED = 2026
CHINESE_EVERY = 3  # the third of three is Chinese
# Name of the file -> rows to learn from, and rows kept apart.
SIZES: Mapping[str, tuple[int, int]] = {
    "messages": (480, 180),
    "instructions": (360, 120),
    "preferences": (300, 120),
}
N_CHOICE_QUESTIONS, N_CHOICES = 90, 4
# Kinds of question whose answers stay right sentences with another word in them.
_EXCHANGED = ("who", "colour", "count", "name")
# What no part needs for itself: words that both languages' templates use as grammar.
_SHARED = frozenset({"colours", "numbers", "weather", "relatives"})


@dataclass(frozen=True)
class LessonVoice:
    """Words and templates of one language and one part, and every how many-th of the world's."""

    voice: Voice
    phrases: LessonPhrases
    half: int


def build_lesson_voice(language: str, *, held_out: bool) -> LessonVoice:
    """Words and templates of one language and one part.

    Args:
        language: en or zh.
        held_out: Whether it is the part that is kept apart.
    """
    whole = build_voice(language, "training")
    half = 1 if held_out else 0
    phrases = lesson_phrases()[language, held_out]
    return LessonVoice(replace(whole, lexicon=halve_lexicon(whole.lexicon, half)), phrases, half)


def halve_lexicon(lexicon: Lexicon, half: int) -> Lexicon:
    """Every second word of each class; colours, numbers, weather and relatives are for both.

    Args:
        lexicon: All words of a language.
        half: 0 or 1.
    """
    changes: dict[str, Any] = {
        field.name: tuple(getattr(lexicon, field.name))[half::2]
        for field in fields(lexicon)
        if field.name not in _SHARED
    }
    return replace(lexicon, **changes)


def write_lesson(name: str) -> list[dict[str, str]]:
    """All rows of a data set, in the order of its file.

    Args:
        name: messages, instructions or preferences.

    Raises:
        KeyError: There is no lesson of this name.
    """
    n_training, n_test = SIZES[name]
    rows = []
    for held_out, n_rows in ((False, n_training), (True, n_test)):
        voices = [
            build_lesson_voice(language, held_out=held_out) for language in ("en", "en", "zh")
        ]
        dice = Dice(f"{SEED} {name} {held_out}")
        found: dict[str, dict[str, str]] = {}  # no row twice
        numbers: Iterator[int] = iter(range(100 * n_rows))
        while len(found) < n_rows:
            number = next(numbers)
            row = _WRITERS[name](dice, voices[len(found) % CHINESE_EVERY], number)
            found.setdefault(json.dumps(row, ensure_ascii=False), row)
        part = "test" if held_out else "training"
        rows += [{**row, "split": part} for row in found.values()]
    return rows


def lesson_lines(name: str) -> str:
    """A data set as JSON lines."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in write_lesson(name))


def write_choices() -> list[dict[str, Any]]:
    """Questions with four answers each, of which one is right; a third is Chinese."""
    voices = [build_lesson_voice(language, held_out=True) for language in ("en", "en", "zh")]
    dice = Dice(f"{SEED} choices")
    drawn: dict[str, Question] = {}  # no question twice
    while len(drawn) < N_CHOICE_QUESTIONS:
        question, _words = _draw_question(dice, voices[len(drawn) % CHINESE_EVERY])
        if question.kind in _EXCHANGED and question.value in question.answer:
            drawn.setdefault(question.prompt, question)
    values: dict[tuple[str, str], dict[str, None]] = {}
    for question in drawn.values():
        values.setdefault((question.language, question.kind), {})[question.value] = None
    return [
        _write_choice(dice, question, list(values[question.language, question.kind]))
        for question in drawn.values()
    ]


def _write_choice(dice: Dice, question: Question, values: list[str]) -> dict[str, Any]:
    others = [value for value in values if value != question.value]
    wrong = dice.sample(others, min(N_CHOICES - 1, len(others)))
    answers = dice.shuffled(
        [question.answer, *(question.answer.replace(question.value, word) for word in wrong)]
    )
    return {
        "question": question.prompt,
        "choices": answers,
        "answer": answers.index(question.answer),
    }


def choice_lines() -> str:
    """The questions with choices as JSON lines."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in write_choices())


def _write_message(dice: Dice, lesson: LessonVoice, number: int) -> dict[str, str]:
    voice, lexicon = lesson.voice, lesson.voice.lexicon
    is_spam = number % 2 == 0
    first, second = dice.sample(lexicon.things if is_spam else lexicon.animals, 2)
    a, b = dice.sample(lexicon.names, 2)
    words = {
        **voice.grammar.person("A", a),
        **voice.grammar.person("B", b),
        **voice.grammar.place("p", dice.pick(lexicon.outdoors)),
    }
    for slot, noun in (("1", first), ("2", second)):
        forms = voice.grammar.animal("n", noun)
        words[slot] = forms["n.a"]
        words[f"{slot}.A"] = forms.get("n.A", forms["n.a"])
    text = render(dice.pick(lesson.phrases.messages), words, dice)
    return {"label": "spam" if is_spam else "ham", "text": text}


def _draw_question(
    dice: Dice,
    lesson: LessonVoice,
    asks: Mapping[str, Sequence[Ask]] | None = None,
    n_facts: int = 12,
    facts: Mapping[str, Sequence[str]] | None = None,
) -> tuple[Question, dict[str, str]]:
    """A question about one fact, and the words of whoever asks; in its half's ways by default."""
    voice, half = lesson.voice, lesson.half
    book = voice.phrasebook
    if asks is None:
        # what is asked in one way only is asked in the part that is learned from
        asks = {name: book.asks[name][half::2] for name in book.asks}
    if facts is None:
        facts = {name: book.facts[name][half::2] for name in book.facts}
    found: list[StatedFact] = []
    while not found:
        found = [f for f in draw_facts(dice, voice, n_facts) if asks.get(f.fact.relation)]
    chosen = dice.pick(found)
    relation = chosen.fact.relation
    sentence = render(dice.pick(facts[relation]), chosen.words, dice)
    asked = dice.pick(asks[relation])
    question = make_question(asked, sentence, chosen.words, voice, fact=chosen.fact)
    asker = dice.pick([n for n in voice.lexicon.names if n.word not in chosen.words.values()])
    return question, voice.grammar.person("B", asker)


def _write_instruction(dice: Dice, lesson: LessonVoice, _: int) -> dict[str, str]:
    book, apart = lesson.voice.phrasebook, lesson_phrases()[lesson.voice.language, True]
    # one way to say a thing is kept apart: from one or two ways nobody learns what they share
    facts, others = {}, apart.asks
    for name, at in apart.told.items():
        told = book.facts[name]
        facts[name] = (told[at],) if lesson.half else (*told[:at], *told[at + 1 :])
    forms = {name: {ask.answer for ask in asks} for name, asks in others.items()}
    known = {name: [a for a in book.asks[name] if a.answer in forms[name]] for name in others}
    # three facts: half a word list has no more than three pets
    question, _words = _draw_question(dice, lesson, others if lesson.half else known, 3, facts)
    joined = f"{question.context}\n{question.question}"
    return {
        "instruction": dice.pick(lesson.phrases.tasks),
        "input": joined,
        "output": question.answer,
    }


def _write_preference(dice: Dice, lesson: LessonVoice, _: int) -> dict[str, str]:
    question, asker = _draw_question(dice, lesson)
    joiner = lesson.voice.grammar.joiner
    asked = render(dice.pick(lesson.phrases.asked), {**asker, "question": question.question}, dice)
    farewell = render(dice.pick(lesson.phrases.farewells), asker, dice)
    return {
        "prompt": f"{question.context}\n{asked}",
        "chosen": f"{question.answer}{joiner}{farewell}",
        "rejected": f"{farewell}{joiner}{question.answer}",
    }


_WRITERS = {
    "messages": _write_message,
    "instructions": _write_instruction,
    "preferences": _write_preference,
}
