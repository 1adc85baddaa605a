"""The address of a view: what it says is checked and put where it belongs."""

import gradio as gr
import pytest
from hypothesis import given
from hypothesis import strategies as st

from components.address import (
    ViewAddress,
    parse_choice,
    parse_integer,
    parse_switch,
    parse_text,
)


@pytest.fixture
def view() -> dict:
    address = ViewAddress()
    with gr.Blocks():
        parts: dict = {"inner": gr.Tabs(elem_id="attention-panels")}
        parts |= {"text": gr.Textbox(), "layer": gr.Slider(), "other": gr.Textbox()}
        address.register("attention", "text", parts["text"])
        address.register("attention", "layer", parts["layer"], parse_integer(0, 29))
        address.register("tokens", "text", parts["other"])
        address.register_panels("attention", parts["inner"], ["heads", "masks"], card=gr.HTML())
    return {"address": address, **parts}


def updates(view: dict, **query: str) -> dict:
    return view["address"].updates("attention", query)


def test_a_whole_address(view: dict) -> None:
    found = updates(view, tab="attention", panel="masks", text="a <b> 玛", layer="13")
    assert found[view["inner"]].selected == "masks"
    assert found[view["text"]] == "a <b> 玛"
    assert found[view["layer"]] == 13
    assert view["other"] not in found


@pytest.mark.parametrize(("layer", "value"), [("99", 29), ("-3", 0), ("7", 7)])
def test_a_number_is_moved_into_its_range(view: dict, layer: str, value: int) -> None:
    assert updates(view, tab="attention", layer=layer)[view["layer"]] == value


@pytest.mark.parametrize("layer", ["", "x", "1.5", "nan", "9" * 5000])
def test_what_is_no_number_is_left_out(view: dict, layer: str) -> None:
    assert view["layer"] not in updates(view, tab="attention", layer=layer)


@pytest.mark.parametrize("query", [{}, {"tab": "tokens", "text": "a"}, {"text": "a"}])
def test_the_address_of_another_tab_changes_nothing(view: dict, query: dict) -> None:
    assert updates(view, **query) == {}


def test_an_unknown_panel_is_left_out(view: dict) -> None:
    assert view["inner"] not in updates(view, tab="attention", panel="nothing")


def test_a_key_is_given_once(view: dict) -> None:
    with pytest.raises(ValueError, match="taken"):
        view["address"].register("attention", "text", view["other"])
    with pytest.raises(ValueError, match="choose another"):
        view["address"].register("attention", "panel", view["other"])


@given(st.text(max_size=3000))
def test_any_text_is_cut_to_what_an_address_holds(text: str) -> None:
    parsed = parse_text(text)
    assert len(parsed) <= 2000
    assert "\0" not in parsed


def test_choices_and_switches() -> None:
    assert parse_choice(["causal", "window"])("window") == "window"
    with pytest.raises(ValueError, match="none of causal, window"):
        parse_choice(["causal", "window"])("paint")
    assert parse_switch("true") is True
    assert parse_switch("false") is False
    with pytest.raises(ValueError, match="none of false, true"):
        parse_switch("yes")
