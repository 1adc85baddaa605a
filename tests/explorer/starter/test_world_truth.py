"""The generated world: nothing contradicts itself, every answer follows from its text."""

import re
from collections import Counter, defaultdict

import pytest

from explorer.starter.documents import build_voice, generate_questions
from tests.explorer.starter.world import LANGUAGES, SENTENCE_END, take, text_of


def people_near(value, text, names):
    """Names in the sentences around a value: "There is a red ball. It belongs to Mia."."""
    sentences = [part for part in SENTENCE_END.split(text) if part]
    near = set()
    for place, sentence in enumerate(sentences):
        if value in sentence:
            window = " ".join(sentences[max(0, place - 1) : place + 2])
            near |= {name for name in names if name in window}
    return near


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", ["training", "held_out"])
def test_every_answer_follows_from_the_facts(language, split):
    lexicon = build_voice(language, split).lexicon
    names = {name.word for name in lexicon.names}
    plurals = {noun.word: noun.plural for noun in (*lexicon.fruits, *lexicon.trinkets)}
    documents = take(1500, seed=4, split=split, language=language)
    questions = [
        (document, question)
        for document in documents
        if document.kind == "description"
        for question in document.questions
    ]
    assert len(questions) > 500
    for document, question in questions:
        fact = question.fact
        assert fact in document.facts
        fitting = [
            other
            for other in document.facts
            if (other.relation, other.value, other.colour, other.count)
            == (fact.relation, fact.value, fact.colour, fact.count)
        ]
        assert fitting == [fact], "two people fit one description"
        same_person = [
            other
            for other in document.facts
            if (other.relation, other.person) == (fact.relation, fact.person)
        ]
        assert same_person == [fact], "one person has two answers"
        assert fact.person in question.question + question.answer
        if question.kind == "who" and fact.relation != "friend":
            assert question.value == fact.person
        value = plurals.get(fact.value) or fact.value
        assert fact.person in people_near(value, question.context, names)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("split", ["training", "held_out"])
def test_the_value_of_every_answer_stands_in_the_text(language, split):
    documents = take(1500, seed=5, split=split, language=language)
    questions = [question for document in documents for question in document.questions]
    questions += generate_questions(6, 300, language=language, split=split)
    for question in questions:
        assert question.value.lower() in question.answer.lower()
        if question.kind != "count":  # the number of a list is counted, not read
            known = question.context.lower()
            assert question.value.lower() in known, question


def test_no_english_document_contradicts_itself(training):
    """Read with patterns of its own, without the generator: one home, one pet, one colour each."""
    patterns = {
        "home": r"(\w+) lives ((?:in|by|near|on) the [a-z ]+)\.",
        "colour": r"(\w+'s [a-z -]+?) is (red|blue|green|yellow|grey|brown|pink|purple|golden)\.",
        "food": r"(\w+)'s favourite food is ([a-z ]+)\.",
        "place": r"(?<!['\w])([A-Z]\w+) is ((?:in|by|at|on) the [a-z ]+)\.",
        "owner": r"[Tt]he ([a-z]+ [a-z -]+?) (?:belongs to|is) ([A-Z]\w+)(?:'s)?\.",
        "friend": r"(\w+)'s best friend is (\w+)\.",
    }
    seen = Counter()
    for document in training["en"]:
        for kind, pattern in patterns.items():
            values = defaultdict(set)
            for subject, value in re.findall(pattern, document.text):
                values[subject].add(value)
                seen[kind] += 1
            for subject, found in values.items():
                assert len(found) == 1, (subject, found, document.text)
    assert min(seen[kind] for kind in patterns) > 30, seen


def test_sums_are_right(training):
    number = build_voice("en", "training").lexicon.numbers.index
    zh_number = build_voice("zh", "training").lexicon.numbers.index
    text, chinese = text_of(training["en"]), text_of(training["zh"])
    plus = re.findall(r"(\d+) \+ (\d+) = (\d+)\.", text)
    minus = re.findall(r"(\d+) - (\d+) = (\d+)\.", text)
    words = re.findall(r"(\w+) and (\w+) (?:make|are) (\w+)\.", text)
    words = [entry for entry in words if all(is_number(part) for part in entry)]
    added = re.findall(
        r"([一二三四五六七八九十]+)加([一二三四五六七八九十]+)[是等于]+([一二三四五六七八九十]+)",
        chinese,
    )
    assert min(map(len, (plus, minus, words, added))) > 20
    assert all(int(a) + int(b) == int(c) for a, b, c in plus)
    assert all(int(a) - int(b) == int(c) for a, b, c in minus)
    assert all(number(a.lower()) + number(b) == number(c) for a, b, c in words)
    assert all(zh_number(a) + zh_number(b) == zh_number(c) for a, b, c in added)


def is_number(word):
    return word.lower() in build_voice("en", "training").lexicon.numbers


def test_swapped_things_have_their_new_owner():
    asked = 0
    for question in generate_questions(7, 3000, language="en", split="training"):
        match = re.match(r"Who has the ([a-z -]+) now\?", question.question)
        if match:
            asked += 1
            given = re.search(rf"gave (\w+) the {re.escape(match[1])}\b", question.context)
            assert question.answer.startswith(given[1])
    assert asked > 10
