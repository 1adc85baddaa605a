"""Data sets of the lessons: nothing kept apart stands in what is learned from."""

import json
from itertools import pairwise

import pytest

from explorer.datasets.word_baseline import find_words
from explorer.starter.lesson_phrases import lesson_phrases
from explorer.starter.lessons import SIZES, build_lesson_voice, lesson_lines
from explorer.tuning_data import FOLDER, DataSets, DataSettings


def rows_of(name: str) -> list[dict[str, str]]:
    text = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", SIZES)
def test_files_are_what_their_seed_writes(name: str) -> None:
    assert (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8") == lesson_lines(name)


@pytest.mark.parametrize(
    ("name", "least"), [("messages", 600), ("instructions", 300), ("preferences", 300)]
)
def test_sizes_and_a_third_in_chinese(name: str, least: int) -> None:
    rows = rows_of(name)
    assert len(rows) >= least
    chinese = [
        row
        for row in rows
        if any("\u4e00" <= c <= "\u9fff" for c in json.dumps(row, ensure_ascii=False))
    ]
    assert len(chinese) == len(rows) // 3


def test_no_name_or_keyword_is_in_both_parts() -> None:
    for language in ("en", "zh"):
        training, kept = (
            build_lesson_voice(language, held_out=held_out).voice.lexicon.keywords()
            for held_out in (False, True)
        )
        assert len(kept) > 50
        assert not training & kept


def test_no_template_is_in_both_parts() -> None:
    phrases = lesson_phrases()
    for language in ("en", "zh"):
        parts = [phrases[language, held_out] for held_out in (False, True)]
        for field in ("messages", "tasks", "farewells", "asked"):
            first, second = (set(getattr(part, field)) for part in parts)
            assert first
            assert second
            assert not first & second


def test_no_sentence_or_question_of_the_instructions_is_in_both_parts() -> None:
    """With names and keywords blanked out: what is left of a row is its templates."""
    words = {
        word
        for language in ("en", "zh")
        for held_out in (False, True)
        for word in build_lesson_voice(language, held_out=held_out).voice.lexicon.keywords()
    }
    found: dict[str, set[str]] = {"training": set(), "test": set()}
    for row in rows_of("instructions"):
        text, question = row["input"].rsplit("\n", 1)
        for part in (text, question):
            found[row["split"]].add(blank(part, words))
    assert len(found["training"]) > 15
    assert not found["training"] & found["test"]


def blank(text: str, words: set[str]) -> str:
    for word in sorted(words, key=len, reverse=True):
        text = text.replace(word, "_")
    return text


def test_counting_words_cannot_tell_polite_from_blunt() -> None:
    rows = rows_of("preferences")
    for row in rows:
        assert sorted(find_words(row["chosen"])) == sorted(find_words(row["rejected"]))
        assert row["chosen"] != row["rejected"]
    assert DataSets().view(DataSettings(data="preferences")).baseline == 0.5
    assert all(a != b for a, b in pairwise(row["prompt"] for row in rows))
