"""The panel "data" of the Fine-tune tab: what it says of rows that are few, alike or left out."""

import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from components.context import Settings
from components.shell import build_page
from components.text import CHINESE, ENGLISH, LOCALES, load_words
from explorer.datasets.records import RowProblem
from explorer.tuning_data import DataSettings
from tests.components.tiny_chat import TinyStore

Show = Callable[..., Mapping[str, Any]]
TWINS = [{"prompt": "a", "chosen": "b", "rejected": "b"}]
HALF = [{"instruction": "a", "output": "b"}, {"instruction": "c", "output": {"text": "d"}}]


def ask_in(locale: str) -> gr.Request:
    class Inner:
        headers = {"accept-language": locale}
        cookies: Mapping[str, str] = {}

    return gr.Request(request=Inner())  # type: ignore[arg-type]


def labelled(n: int, labels: str = "ab") -> list[dict[str, str]]:
    return [{"label": labels[i % len(labels)], "text": f"t {i}"} for i in range(n)]


@pytest.fixture(scope="module")
def events() -> list[Callable[..., Any]]:
    """The events of the page that show a data set."""
    demo, _ = build_page(TinyStore(), Settings())
    return [
        event.fn
        for event in demo.fns.values()
        if getattr(event.fn, "__qualname__", "") == "DataHandlers.show"
    ]


@pytest.fixture
def show(events: list[Callable[..., Any]]) -> Show:
    """What the page shows of typed rows, by the ids of its parts."""

    def run(rows: list[Any], locale: str = ENGLISH, *, event: int = 0) -> Mapping[str, Any]:
        settings = DataSettings(data="typed", typed="\n".join(map(json.dumps, rows)))
        request = ask_in(locale)
        values = dataclasses.astuple(settings)
        shown = events[event](request, None, request, *values)
        return {part.elem_id or "card": value for part, value in shown.items()}

    return run


def card_of(shown: Mapping[str, Any]) -> str:
    return next(value["text"] for name, value in shown.items() if "card" in name)


def test_rows_that_serve_twice_are_told_on_the_page(show: Show) -> None:
    for n, split in ((2, "1 to learn from"), (4, "2 to learn from")):
        said = show(labelled(n))["finetune-count"]
        assert split in said
        assert "the same rows serve to look at meanwhile and for the test" in said
        assert "score says little" in said
        assert "同样的行" in show(labelled(n), CHINESE)["finetune-count"]
    assert "same rows" not in show(labelled(10))["finetune-count"]


def test_one_class_is_told_before_the_start_and_no_score_to_beat(show: Show) -> None:
    said = show(labelled(10, "a"))["finetune-baseline"]
    assert said.startswith("All rows have the same class (a)")
    assert "100" not in said
    assert "Counting words" in show(labelled(10))["finetune-baseline"]


def test_what_is_wrong_with_a_row_is_said_in_the_readers_language(show: Show) -> None:
    assert "row 1: both answers are the same" in card_of(show(TWINS))
    assert "第 1 行：两个回答相同" in card_of(show(TWINS, CHINESE))
    assert "row 2: output is an object or list, not a text" in card_of(show(HALF))
    assert "第 2 行：output 是对象或列表，不是文本" in card_of(show(HALF, CHINESE))
    assert card_of(show(HALF)).startswith("Rows that remain: 1, too few")


def test_a_missing_side_of_a_pair_is_said_on_the_page(show: Show) -> None:
    rows = [{"prompt": "ab"[i % 2], "rejected": f"x {i}"} for i in range(8)]
    assert "has no column chosen" in card_of(show(rows))
    assert "没有 chosen 列" in card_of(show(rows, CHINESE))


def test_an_error_empties_the_views_of_the_data_before(
    show: Show, events: list[Callable[..., Any]]
) -> None:
    views = {n: v for n, v in show(labelled(10)).items() if n.startswith("finetune-")}
    assert views["finetune-rows"]["total"] == 10
    assert len(events) > 10
    for event in range(len(events)):
        failed = show(TWINS, event=event)
        assert failed.keys() >= views.keys()
        for name in ("count", "mapped", "baseline", "duplicates"):
            assert failed[f"finetune-{name}"] == ""
        for name in ("rows", "problems", "classes", "data-working-facts", "data-working-table"):
            assert failed[f"finetune-{name}"] is None
        assert set(failed["finetune-data-working-exports"].values()) == {None}
        assert "finetune-typed" not in failed  # what was typed stays, to be mended


def test_a_broken_file_does_not_hide_the_button_for_another_one() -> None:
    demo, _ = build_page(TinyStore(), Settings())
    choose = [
        event.fn
        for event in demo.fns.values()
        if getattr(event.fn, "__qualname__", "") == "DataHandlers.sources"
    ]
    assert choose
    for event in choose:
        for data, wanted in (("upload", "upload"), ("typed", "typed"), ("hub", "hub"), ("x", None)):
            shown = event(ask_in(ENGLISH), data)
            places = {p.elem_id: v["visible"] for p, v in shown.items() if "card" not in p.elem_id}
            assert {name for name, seen in places.items() if seen} == (
                {f"finetune-{wanted}"} if wanted else set()
            )


def test_numbers_in_sentences_need_no_plural() -> None:
    say = load_words().say
    assert say(ENGLISH, "errors.data-too-few", rows=1, training=0, test=1).startswith(
        "Rows that remain: 1, too few"
    )
    assert "questions: 1 " in say(ENGLISH, "finetune.choice_said", name="x", n=1, chance=50)
    twice = say(ENGLISH, "finetune.duplicates", n=1, rows="8 = 0")
    assert twice == "Rows kept apart that stand in training, too: 1 (8 = 0)"


def test_every_problem_of_a_row_has_its_words_and_says_them_in_english() -> None:
    words, folder = load_words(), Path(__file__).parents[2] / "explorer" / "datasets"
    text = "".join((folder / f"{name}.py").read_text("utf-8") for name in ("records", "examples"))
    codes = set(re.findall(r'(?:_Unusable\(|RowProblem\([^)]*code=)"([a-z_]+)"', text))
    assert len(codes) > 8
    for code in codes:
        key = f"finetune.problem.{code}"
        assert all(key in words.sentences[locale] for locale in LOCALES)
        problem = RowProblem(number=1, code=code, what="output")
        assert str(problem) == words.say(ENGLISH, key, what="output")
