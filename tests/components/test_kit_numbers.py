"""A number outside its ends is refused in the reader's language, and nothing goes into the log."""

import gradio as gr
import pytest
from gradio.context import LocalContext
from starlette.requests import Request

from components.kit.numbers import Number, Slider


def ask_in(language: str) -> gr.Request:
    headers = [(b"accept-language", language.encode())]
    return gr.Request(Request({"type": "http", "headers": headers, "query_string": b""}))


def refusal(number: gr.Number | gr.Slider, value: float, language: str = "en") -> gr.Error:
    token = LocalContext.request.set(ask_in(language))
    try:
        with pytest.raises(gr.Error) as error:
            number.preprocess(value)
    finally:
        LocalContext.request.reset(token)
    return error.value


@pytest.mark.parametrize("value", [-8.0, 0.0, 41.0, float("nan"), float("inf")])
def test_a_field_refuses_a_number_outside_with_its_ends(value: float) -> None:
    number = Number(minimum=1, maximum=40, value=3)
    error = refusal(number, value)
    assert "from 1 to 40" in error.message
    assert not error.print_exception
    assert "1 到 40" in refusal(number, value, "zh-CN").message


def test_a_slider_counts_as_its_end_where_the_page_moves_it_to() -> None:
    slider = Slider(1, 40, value=3, step=1)
    found = [slider.preprocess(value) for value in (-8, 1, 7, 41, float("inf"))]
    assert found == [1, 1, 7, 40, 40]
    assert "from 1 to 40" in refusal(slider, float("nan")).message


def test_a_number_inside_passes_and_an_empty_field_is_nothing() -> None:
    field, slider = Number(precision=0, minimum=1), Slider(0, 1, step=0.1)
    assert [field.preprocess(x) for x in (1, 10**9, None)] == [1, 10**9, None]
    assert slider.preprocess(0.3) == 0.3
    assert "from 1 to ∞" in refusal(field, -1).message


def test_the_page_draws_them_as_what_they_are() -> None:
    with gr.Blocks():
        assert Number(1).get_block_name() == "number"
        assert Slider(0, 1).get_block_name() == "slider"
