"""The small views and the Plotly panel in a browser."""

from pathlib import Path

import pytest

from tests.components.kit_page import drawn, open_plot, wait_said

pytest_plugins = ["tests.components.kit_page"]
pytestmark = pytest.mark.slow


def test_stepper(fresh_page):
    assert fresh_page.locator("#stepper .place").text_content() == "3 of 12"
    fresh_page.locator("#stepper .next").click()
    wait_said(fresh_page, "{'index': 3}")
    fresh_page.keyboard.press("ArrowLeft")
    wait_said(fresh_page, "{'index': 2}")
    fresh_page.keyboard.press("End")
    wait_said(fresh_page, "{'index': 11}")
    assert fresh_page.locator("#stepper .next").is_disabled()


def test_stepper_plays_to_the_end_and_stops(fresh_page):
    fresh_page.locator("#stepper .speed").select_option("4")
    fresh_page.locator("#stepper .slider").fill("9")
    fresh_page.get_by_role("button", name="Play").click()
    fresh_page.get_by_role("button", name="Pause").wait_for()
    wait_said(fresh_page, "{'index': 11}")
    fresh_page.get_by_role("button", name="Play").wait_for()


def test_stepper_is_slow_where_less_motion_is_wanted(open_page):
    page = open_page(reduced_motion="reduce")
    assert page.locator("#stepper .speed").input_value() == "0.5"


def test_layer_picker_is_an_input(page):
    assert page.locator("#layer .place").text_content() == "13 of 0–29"
    page.locator("#layer .slider").focus()
    page.keyboard.press("ArrowRight")
    wait_said(page, "layer 14")
    assert page.locator("#layer .place").text_content() == "14 of 0–29"


def test_examples(page):
    page.get_by_role("button", name="A repeated phrase").click()
    wait_said(page, "{'index': 1}")


def test_bars(page):
    assert page.locator("#bars .number").all_inner_texts()[:2] == ["71.0 %", "23.7 %"]
    assert page.locator("#bars bdi").all_inner_texts()[:3] == ["·Paris", "⏎", "<b>"]
    assert page.locator("#bars .track i").first.evaluate("node => node.style.width") == "71%"
    page.locator("#bars .row").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_said(page, "{'index': 1}")


def test_card_comes_and_goes(fresh_page):
    assert not fresh_page.locator("#error").is_visible()
    fresh_page.locator("#b_fail").click()
    card = fresh_page.get_by_role("alert").filter(has_text="The file cannot be read")
    card.wait_for()
    assert "<b>model.gguf</b> has 12 bytes" in card.text_content()
    card.get_by_role("button", name="Close").click()
    assert not fresh_page.locator("#error").is_visible()
    fresh_page.locator("#b_fail").click()
    card.wait_for()


def test_note(page):
    note = page.locator("#note .note")
    assert note.text_content() == (
        "What to look for. The first column glows in many heads: a sink. See attn.pattern."
    )
    assert note.locator("em").text_content() == "sink"
    assert note.locator("code").text_content() == "attn.pattern"


def test_curves_are_drawn_with_literal_names(fresh_page):
    open_plot(fresh_page)
    names = fresh_page.locator("#loss .legendtext").all_text_contents()
    assert names == ["train <b>", "${1+1}"]
    assert fresh_page.evaluate("typeof window.Plotly") == "undefined"
    # The button that would send the figure to another host.
    assert fresh_page.locator("#loss .modebar-btn").count() > 0
    assert "hare" not in "".join(
        fresh_page.locator("#loss .modebar-btn").evaluate_all(
            "all => all.map(b => b.dataset.title)"
        )
    )


def test_new_points_are_added_and_the_zoom_stays(fresh_page):
    open_plot(fresh_page)
    fresh_page.evaluate(
        "glassboxKit.plotly.then(P => P.relayout(document.querySelector('#loss .plot'),"
        "{'xaxis.range': [50, 100]}))"
    )
    fresh_page.locator("#b_live").click()
    fresh_page.wait_for_function("document.querySelector('#loss .plot').data[0].x.length === 202")
    assert drawn(fresh_page, "data[0].y.at(-1)") == 1.7
    assert drawn(fresh_page, "data[1].x.length") == 200
    fresh_page.wait_for_function("document.querySelector('#loss .plot').dataset.drawn === '2'")
    assert drawn(fresh_page, "layout.xaxis.range") == [50, 100]


def test_a_gap_is_noticed(fresh_page):
    open_plot(fresh_page)
    fresh_page.locator("#b_gap").click()
    wait_said(fresh_page, "gap")
    assert drawn(fresh_page, "data[0].x.length") == 200


def test_plot_follows_theme_and_width(fresh_page):
    open_plot(fresh_page)
    light = drawn(fresh_page, "_fullLayout.font.color")
    fresh_page.evaluate("document.body.classList.toggle('dark')")
    fresh_page.wait_for_function(
        "light => document.querySelector('#loss .plot')._fullLayout.font.color !== light", arg=light
    )
    fresh_page.set_viewport_size({"width": 700, "height": 900})
    fresh_page.wait_for_function("document.querySelector('#loss .plot')._fullLayout.width <= 700")


def test_plot_is_saved_as_png(fresh_page):
    open_plot(fresh_page)
    with fresh_page.expect_download() as download:
        fresh_page.locator("#loss .save").click()
    assert download.value.suggested_filename == "loss.png"
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")
