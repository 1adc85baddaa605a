"""The generated world: right English, right Chinese."""

import re
from collections import Counter

import pytest

from explorer.starter.documents import build_voice
from explorer.starter.lexicon import make_plural
from tests.explorer.starter.world import text_of


def test_english_articles_and_spaces_are_right(training, held_out):
    text = text_of(training["en"]) + text_of(held_out["en"])
    assert re.findall(r"\b[Aa] [aeiou]\w*", text) == []
    assert re.findall(r"\b[Aa]n [^aeiou]\w*", text) == []
    assert re.findall(r"  | [.,!?]|\.\.|\[|\]|[{}|]", text) == []


def test_english_plurals_follow_numbers(training):
    told = [entry for entry in training["en"] if entry.kind in {"story", "description", "sums"}]
    text = text_of(told)
    for noun in build_voice("en", "training").lexicon.fruits:
        assert re.search(rf"\b(two|ten) {noun.plural}\b", text)
        assert not re.search(rf"\b(two|three|ten) {noun.word}\b(?!s)", text)
        assert not re.search(rf"\bone {noun.plural}\b", text)


def test_english_sentences_begin_with_a_capital(training):
    for document in training["en"]:
        if document.kind in {"story", "description"}:
            assert re.findall(r"[.!?] [a-z]\w*", document.text) == [], document.text
            assert document.text[0].isupper()


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("box", "boxes"), ("cherry", "cherries"), ("toy", "toys"), ("brush", "brushes")],
)
def test_regular_plurals(noun, plural):
    assert make_plural(noun) == plural


def test_chinese_has_no_ascii_and_its_own_punctuation(training, held_out):
    text = text_of(training["zh"]) + text_of(held_out["zh"])
    marks = set(re.findall(r"[^\u4e00-\u9fff\n]", text))
    assert marks <= set("，。？！：、“”")
    assert text.count("“") == text.count("”")
    assert re.findall(r"[，。？！、]{2}|。”。|(?<!十)二[个只条本把]", text) == []


def test_chinese_measure_words_fit_their_nouns(training):
    lexicon = build_voice("zh", "training").lexicon
    nouns = (*lexicon.things, *lexicon.animals, *lexicon.fruits, *lexicon.trinkets)
    measures = {noun.measure for noun in nouns}
    text = text_of(training["zh"])
    found = Counter()
    for noun in nouns:
        pattern = rf"[一两三四五六七八九十]([{''.join(measures)}])(?:.色的)?{noun.word}"
        for measure in re.findall(pattern, text):
            found[noun.word] += 1
            assert measure == noun.measure, noun
    assert len(found) > 0.9 * len(nouns)  # nobody counts farm animals
