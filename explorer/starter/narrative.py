"""Texts in sentences: stories, descriptions, dialogues, songs, and the questions after them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from explorer.starter.dice import Dice
from explorer.starter.phrasebook import Ask, Story
from explorer.starter.records import Document, Question
from explorer.starter.scene import Fact, StatedFact, Voice, draw_cast, draw_facts, draw_weather
from explorer.starter.template import render


def write_story(dice: Dice, voice: Voice) -> Document:
    """A plot with an opening and an ending that fit; questions after every third."""
    story = dice.pick(voice.phrasebook.stories)
    words = draw_cast(dice, voice)
    text = _tell_whole(story, words, dice, voice)
    questions: list[Question] = []
    if dice.chance(0.35):
        questions = ask_story(story, text, words, dice.between(1, 3), dice, voice)
    return with_questions(text, "story", questions, voice)


def write_description(dice: Dice, voice: Voice) -> Document:
    """Facts about a few people, then questions with their answers."""
    facts = draw_facts(dice, voice, dice.between(2, 6))
    text = describe(facts, dice, voice)
    questions = ask_facts(facts, text, dice.between(1, 4), dice, voice)
    document = with_questions(text, "description", questions, voice)
    return Document(
        text=document.text,
        language=voice.language,
        kind="description",
        facts=tuple(entry.fact for entry in facts),
        questions=document.questions,
    )


def write_dialogue(dice: Dice, voice: Voice) -> Document:
    """Two children talking, one turn a line or all in one paragraph."""
    story = dice.pick(voice.phrasebook.dialogues)
    words = draw_cast(dice, voice)
    joiner = "\n" if dice.chance(0.5) else voice.grammar.joiner
    text = _tell(story.steps, words, dice, joiner)
    questions = ask_story(story, text, words, dice.below(3), dice, voice)
    return with_questions(text, "dialogue", questions, voice)


def write_song(dice: Dice, voice: Voice) -> Document:
    """Verse, refrain, verse, refrain: the refrain is the same each time."""
    story = dice.pick(voice.phrasebook.songs)
    words = draw_cast(dice, voice)
    first, refrain, second = (render(step, words, dice) for step in story.steps)
    verses = (first, refrain, second, refrain, first, refrain)
    return plain("\n".join(verses[: dice.pick((4, 6))]), "song", voice)


def write_retelling(dice: Dice, voice: Voice) -> Document:
    """A short text, then the same text once more."""
    words = draw_cast(dice, voice)
    if dice.chance(0.5):
        text = describe(draw_facts(dice, voice, dice.between(2, 5)), dice, voice)
    else:
        story = dice.pick(voice.phrasebook.stories)
        text = _tell(story.steps[:3], words, dice, voice.grammar.joiner)
    again = render(dice.pick(voice.phrasebook.again), words, dice)
    return plain(f"{text}\n{again}\n{text}", "retelling", voice)


def describe(facts: Sequence[StatedFact], dice: Dice, voice: Voice) -> str:
    """A sentence for each fact, in their order, sometimes after a first sentence."""
    templates = voice.phrasebook.facts
    frame = render(dice.pick(voice.phrasebook.frames), draw_weather(dice, voice), dice)
    sentences = [
        render(dice.pick(templates[entry.fact.relation]), entry.words, dice) for entry in facts
    ]
    return voice.grammar.joiner.join([*([frame] if frame else []), *sentences])


def ask_facts(
    facts: Sequence[StatedFact], text: str, count: int, dice: Dice, voice: Voice
) -> list[Question]:
    """Questions about different facts of a description."""
    return [
        make_question(
            dice.pick(voice.phrasebook.asks[entry.fact.relation]),
            text,
            entry.words,
            voice,
            fact=entry.fact,
        )
        for entry in dice.sample(facts, min(count, len(facts)))
    ]


def ask_story(
    story: Story, text: str, words: Mapping[str, str], count: int, dice: Dice, voice: Voice
) -> list[Question]:
    """Different questions about a story."""
    asks = dice.sample(story.asks, min(count, len(story.asks)))
    return [make_question(ask, text, words, voice) for ask in asks]


def make_question(
    ask: Ask, text: str, words: Mapping[str, str], voice: Voice, fact: Fact | None = None
) -> Question:
    """A question about a text in words of its scene."""
    still = Dice(0)  # questions and answers have no choices to draw
    return Question(
        context=text,
        question=_capitalise(render(ask.question, words, still)),
        answer=_capitalise(render(ask.answer, words, still)),
        kind=ask.kind,
        value=words[ask.value],
        language=voice.language,
        fact=fact,
    )


def tell_story(dice: Dice, voice: Voice) -> tuple[Story, str, Mapping[str, str]]:
    """A story with questions to ask, its text and the words of its cast."""
    story = dice.pick([story for story in voice.phrasebook.stories if story.asks])
    words = draw_cast(dice, voice)
    return story, _tell_whole(story, words, dice, voice), words


def _tell_whole(story: Story, words: Mapping[str, str], dice: Dice, voice: Voice) -> str:
    book = voice.phrasebook
    steps = list(story.steps)
    if story.openings:
        steps.insert(0, dice.pick(book.openings[dice.pick(story.openings)]))
    if story.endings and dice.chance(0.8):
        steps.append(dice.pick(book.endings[dice.pick(story.endings)]))
    return _tell(steps, words, dice, voice.grammar.joiner)


def _tell(steps: Sequence[str], words: Mapping[str, str], dice: Dice, joiner: str) -> str:
    sentences = (render(step, words, dice).strip() for step in steps)
    return joiner.join(sentence for sentence in sentences if sentence)


def _capitalise(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def with_questions(text: str, kind: str, questions: Sequence[Question], voice: Voice) -> Document:
    """A document of the text and its questions, each on a line with its answer."""
    lines = [f"{entry.question}{entry.continuation}" for entry in questions]
    return Document(
        text="\n".join([text, *lines]),
        language=voice.language,
        kind=kind,
        questions=tuple(questions),
    )


def plain(text: str, kind: str, voice: Voice) -> Document:
    """A document without questions."""
    return Document(text=text, language=voice.language, kind=kind)
