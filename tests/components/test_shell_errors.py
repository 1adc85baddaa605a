"""Errors become cards: translated, and with a short id for faults of ours."""

import logging
from collections.abc import Iterator

import gradio as gr
import pytest
from gradio.helpers import special_args

from components.errors import card_for, guarded, make_error_card
from components.text import CHINESE, ENGLISH, Words
from explorer.errors import ExplorerError, SourceError, Stopped, WeightError

TABLE = {
    "errors.title.ExplorerError": "Failed",
    "errors.title.SourceError": "Cannot open",
    "errors.fault_title": "Fault",
    "errors.fault_text": "See {fault_id}.",
    "errors.gone": "{name} is gone.",
}
CHINESE_TABLE = {**TABLE, "errors.gone": "{name} 不见了。", "errors.title.SourceError": "无法打开"}
WORDS = Words({ENGLISH: TABLE, CHINESE: CHINESE_TABLE})


def test_a_card_has_the_title_of_its_class_and_the_sentence_of_its_code() -> None:
    error = SourceError("x is gone; ask again", code="gone", name="x{y}")
    assert make_error_card(WORDS, CHINESE, error) == {
        "kind": "error",
        "title": "无法打开",
        "text": "x{y} 不见了。",
    }


def test_without_a_code_the_english_message_is_shown() -> None:
    assert make_error_card(WORDS, CHINESE, SourceError("x is gone"))["text"] == "x is gone"


def test_a_code_may_have_a_title_of_its_own() -> None:
    table = {**TABLE, "errors.title.gone": "It is gone"}
    words = Words({ENGLISH: table, CHINESE: table})
    error = SourceError("x is gone", code="gone", name="x")
    assert make_error_card(words, ENGLISH, error)["title"] == "It is gone"


def test_a_class_without_a_title_takes_that_of_its_base() -> None:
    assert make_error_card(WORDS, ENGLISH, WeightError("no"))["title"] == "Failed"


def test_a_fault_is_logged_with_its_traceback_and_shown_by_id(
    caplog: pytest.LogCaptureFixture,
) -> None:
    try:
        raise ZeroDivisionError("secret detail")
    except ZeroDivisionError as error:
        with caplog.at_level(logging.ERROR, "glassbox"):
            card = card_for(WORDS, ENGLISH, error)
    fault_id = card["text"].removeprefix("See ").removesuffix(".")
    assert fault_id in caplog.text
    assert "ZeroDivisionError: secret detail" in caplog.text
    assert "secret" not in str(card)


@pytest.fixture
def parts() -> tuple:
    with gr.Blocks():
        return gr.Textbox(), gr.Textbox(), gr.HTML()


def call(handler, *inputs, request: gr.Request | None = None):
    """Call as Gradio does: special parameters are found by the signature."""
    return handler(*special_args(handler, list(inputs), request)[0])


def test_success_fills_the_outputs_and_empties_the_card(parts: tuple) -> None:
    one, two, card = parts
    handler = guarded(lambda text: (text, text * 2), [one, two], card, WORDS)
    assert call(handler, "a") == {one: "a", two: "aa", card: None}


def test_one_output_and_none_and_partial_outputs(parts: tuple) -> None:
    one, two, card = parts
    assert call(guarded(lambda: (1, 2), [one], card, WORDS)) == {one: (1, 2), card: None}
    assert call(guarded(lambda: None, [], card, WORDS)) == {card: None}
    assert call(guarded(lambda: {two: 5}, [one, two], card, WORDS)) == {two: 5, card: None}
    assert call(guarded(lambda: {"t": 5}, [one], card, WORDS)) == {one: {"t": 5}, card: None}


def test_an_error_fills_the_card_and_leaves_the_outputs(parts: tuple) -> None:
    one, _, card = parts

    def fail(_text: str) -> str:
        raise ExplorerError("Nothing there; try again.")

    answer = call(guarded(fail, [one], card, WORDS), "a")
    assert list(answer) == [card]
    assert answer[card]["text"] == "Nothing there; try again."


def test_after_an_error_nothing_old_stands_beside_a_new_question(parts: tuple) -> None:
    one, two, card = parts

    def fail(_text: str) -> tuple[str, str]:
        raise ExplorerError("Too long.")

    def steps(_text: str) -> Iterator[tuple[str, str]]:
        yield "a", "b"
        raise ExplorerError("Too long.")

    for handler in (fail, steps):
        answer = call(guarded(handler, [one, two], card, WORDS, nothing=("", None)), "a")
        last = answer if isinstance(answer, dict) else list(answer)[-1]
        assert (last[one], last[two]) == ("", None)
        assert last[card]["text"] == "Too long."


def test_a_generator_keeps_what_it_gave_before_the_error(parts: tuple) -> None:
    one, _, card = parts

    def steps() -> Iterator[str]:
        yield "first"
        raise ExplorerError("Then it broke.")

    answers = list(call(guarded(steps, [one], card, WORDS)))
    assert answers[0] == {one: "first", card: None}
    assert answers[1][card]["text"] == "Then it broke."


def test_a_generator_without_a_value_changes_nothing(parts: tuple) -> None:
    """Gradio itself would send None for every output: the name of the open model went with it."""
    one, _, card = parts

    def nothing() -> Iterator[str]:
        yield from ()

    (answer,) = call(guarded(nothing, [one], card, WORDS))
    assert answer == {card: gr.skip()}


def test_stopped_work_shows_no_card(parts: tuple) -> None:
    one, _, card = parts

    def stop() -> str:
        raise Stopped

    assert call(guarded(stop, [one], card, WORDS)) == {card: None}


def test_closing_the_wrapper_closes_the_handler(parts: tuple) -> None:
    one, _, card = parts
    closed = []

    def steps() -> Iterator[int]:
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    running = call(guarded(steps, [one], card, WORDS))
    next(running)
    running.close()
    assert closed == [True]


def test_special_parameters_of_the_handler_still_arrive(parts: tuple) -> None:
    one, _, card = parts
    seen = []

    def handler(text: str, request: gr.Request, progress: gr.Progress = gr.Progress()) -> str:  # noqa: B008
        seen.append((text, request, type(progress)))
        return text

    request = gr.Request()
    call(guarded(handler, [one], card, WORDS), "a", request=request)
    assert seen == [("a", request, gr.Progress)]
