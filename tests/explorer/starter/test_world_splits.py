"""The generated world: the held-out text shares no name, keyword or template with the other."""

import re

import pytest

from explorer.starter.documents import build_voice
from explorer.starter.phrasebook import Ask, Story
from explorer.starter.reserved import RESERVED_FORMS
from tests.explorer.starter.world import LANGUAGES, SENTENCE_END, text_of, words_inside


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_keyword_of_one_split_stands_in_the_other(language, training, held_out):
    words = {split: build_voice(language, split).lexicon for split in ("training", "held_out")}
    assert not words["training"].keywords() & words["held_out"].keywords()
    for split, other in (("training", held_out), ("held_out", training)):
        text = text_of(other[language])
        assert words_inside(words[split].keywords(), text, language) == []
        own = text_of({"training": training, "held_out": held_out}[split][language])
        assert len(words_inside(words[split].keywords(), own, language)) > 50


def templates_of(value):
    """Every template inside a phrasebook."""
    if isinstance(value, str):
        return {value}
    if isinstance(value, Ask):
        return {value.question, value.answer}
    if isinstance(value, Story):
        return templates_of(value.steps) | templates_of(value.asks)
    if isinstance(value, dict):
        value = tuple(value.values())
    return set().union(*(templates_of(item) for item in value))


def phrasebook_templates(language, split):
    return templates_of(tuple(vars(build_voice(language, split).phrasebook).values())) - {""}


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_template_is_in_both_splits(language):
    training, held_out = (phrasebook_templates(language, s) for s in ("training", "held_out"))
    assert len(training) > 150
    assert len(held_out) > 50
    assert not training & held_out


def skeletons(documents, language):
    """Sentences with everything blanked out that a lexicon could have filled in."""
    words = {"K"}
    for split in ("training", "held_out"):
        lexicon = build_voice(language, split).lexicon
        words |= {*lexicon.keywords(), *lexicon.colours, *lexicon.numbers, *lexicon.weather}
        words |= {relative.word for relative in lexicon.relatives}
    longest = sorted(words, key=len, reverse=True)
    edge = r"\b" if language == "en" else ""
    blank = re.compile(f"{edge}({'|'.join(map(re.escape, longest)).lower()}){edge}")
    found = set()
    for line in set(SENTENCE_END.split(text_of(documents).lower())):
        if line.strip('”"').endswith((".", "!", "?", "。", "！", "？")):
            found.add(re.sub(r"\ban K", "a K", blank.sub("K", line.strip('“”" '))))
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_sentence_is_in_both_splits_whatever_its_names(language, training, held_out):
    seen, new = skeletons(training[language], language), skeletons(held_out[language], language)
    assert len(seen) > 1000
    assert len(new) > 150
    assert seen & new == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_reserved_forms_are_left_to_fine_tuning(language, training, held_out):
    text = (text_of(training[language]) + text_of(held_out[language])).lower()
    assert [form for form in RESERVED_FORMS if form.lower() in text] == []
    templates = phrasebook_templates(language, "training") | phrasebook_templates(
        language, "held_out"
    )
    everything = "\n".join(templates).lower()
    assert [form for form in RESERVED_FORMS if form.lower() in everything] == []
