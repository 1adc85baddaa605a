"""Token chips in a browser, and what the scripts of the kit share."""

import json
import unicodedata

import numpy as np
import pytest

from tests.components import kit_data
from tests.components.kit_page import chip, facts, wait_said

pytest_plugins = ["tests.components.kit_page"]
pytestmark = pytest.mark.slow


def test_texts_of_chips_are_literal(page):
    shown = page.locator("#chips .chip").all_inner_texts()
    wanted = kit_data.HARD_TEXTS
    for text in ("${1+1}", "<b>x</b>", "{{y}}", "`", "\\n", "שלום"):
        assert shown[1 + wanted.index(text)] == text
    assert page.locator("#chips b").count() == 0


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (" Mary", "·Mary"),
        ("\n", "⏎"),
        ("\t", "⇥"),
        ("    ", "····"),
        ("\x00", "NUL"),
        ("\x1b", "ESC"),
        ("\u200b", "200B"),
        ("\u202e", "202E"),
        ("\ue000", "E000"),
        ("\u0301", "◌\u0301"),
        ("👨‍👩‍👧‍👦", "👨‍👩‍👧‍👦7"),
        ("玛", "玛3"),
    ],
)
def test_every_character_can_be_seen(page, text: str, shown: str):
    index = 1 + kit_data.HARD_TEXTS.index(text)
    assert chip(page, "chips", index).text_content() == shown


@pytest.mark.parametrize("index", [2, 3, 12, 18, 20, 22])
def test_read_out_is_exact(page, index: int):
    unit = kit_data.make_plain_units()[index]
    chip(page, "chips", index).hover()
    shown = facts(page, "#chips .readout")
    assert shown["Position"] == str(index)
    assert shown["Token id"] == " ".join(map(str, unit["ids"]))
    points = [chr(int(point[2:], 16)) for point in shown["Characters"].split(" ")]
    assert "".join(points) == unit["t"]
    assert bytes.fromhex(shown["Bytes"].replace("|", "")).decode() == unit["t"]
    assert len(shown["Bytes"].split(" | ")) == len(unit["ids"])
    literal = page.locator("#chips .literal").text_content()
    assert json.loads(literal) == unit["t"]
    assert all(unicodedata.category(letter) not in {"Cc", "Cf", "Zl", "Zp"} for letter in literal)


def test_newline_breaks_the_line(page):
    newline, after = (chip(page, "chips", index).bounding_box() for index in (3, 4))
    assert after["y"] > newline["y"]
    assert after["x"] <= newline["x"]


def test_same_ids_are_marked(page):
    chip(page, "chips", 2).hover()
    places = page.evaluate(
        "[...document.querySelectorAll('#chips .chip')].flatMap((c, i) => "
        "c.classList.contains('same') ? [i] : [])"
    )
    texts = kit_data.HARD_TEXTS
    assert places == [1 + index for index, text in enumerate(texts) if text == " Mary"]


def test_click_and_keyboard_reach_python(page):
    chip(page, "chips", 5).click()
    wait_said(page, "{'index': 5}")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    wait_said(page, "{'index': 6}")
    page.keyboard.press("End")
    page.keyboard.press("Space")
    wait_said(page, "{'index': 27}")
    assert page.locator("#chips .chip[tabindex='0']").count() == 1
    assert chip(page, "chips", 27).get_attribute("aria-selected") == "true"


def test_left_key_goes_right_in_hebrew(page):
    chip(page, "rtl", 0).focus()
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("1: ")
    first, second = (chip(page, "rtl", index).bounding_box() for index in (0, 1))
    assert second["x"] < first["x"]


def test_probability_popover(page):
    before = page.locator("#weights").bounding_box()
    chip(page, "answer", 5).hover()
    assert facts(page, "#answer .popover")["Probability"] == "71.00 % · rank 1"
    alternatives = page.locator("#answer .popover .alt").all_inner_texts()
    assert alternatives == ["·Paris", "·Lyon", "⏎", "<i>"]
    shares = page.locator("#answer .popover .num").all_inner_texts()
    assert shares == ["71.0 %", "5.1 %", "2.0 %", "1.0 %"]
    assert page.locator("#weights").bounding_box() == before
    page.mouse.move(2, 2)
    assert not page.locator("#answer .popover").is_visible()


def test_popover_stays_inside_a_phone(open_page):
    page = open_page(width=390)
    chip(page, "answer", 9).hover()
    box = page.locator("#answer .popover").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_on_a_phone_no_popover_covers_what_a_tap_opens(open_page):
    for width, shown in ((390, False), (1280, True)):
        page = open_page(width=width)
        chip(page, "weights", 4).click()
        assert page.locator("#weights .popover").is_visible() is shown


def test_surprise_is_darker_than_certainty(page):
    def lightness(index: int) -> float:
        red, green, blue = page.evaluate(
            "index => getComputedStyle(document.querySelectorAll('#answer .chip')[index])"
            ".backgroundColor.match(/[0-9]+/g).map(Number)",
            index,
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    # Probabilities 0.05, 0.12, 0.33, 0.55, 0.71, 0.93, 0.999.
    shades = [lightness(index) for index in (8, 6, 7, 9, 5, 0, 2)]
    assert shades == sorted(shades)
    assert len(set(shades)) == len(shades)


def test_copied_ids_are_all_ids(open_page):
    page = open_page(permissions=["clipboard-read", "clipboard-write"])
    page.locator("#chips .copy").click()
    page.get_by_role("button", name="Copied").wait_for()
    ids = [number for unit in kit_data.make_plain_units() for number in unit["ids"]]
    assert json.loads(page.evaluate("navigator.clipboard.readText()")) == ids


def test_streaming_keeps_the_chips_that_are_there(fresh_page):
    fresh_page.locator("#b_stream").click()
    fresh_page.wait_for_function("document.querySelectorAll('#many .chip').length >= 1")
    fresh_page.evaluate("document.querySelector('#many .chip').dataset.kept = 'yes'")
    fresh_page.wait_for_function("document.querySelectorAll('#many .chip').length === 30")
    assert chip(fresh_page, "many", 0).get_attribute("data-kept") == "yes"
    assert chip(fresh_page, "many", 29).text_content() == "·word29"


def test_edit_in_the_middle_rebuilds_only_the_middle(fresh_page):
    fresh_page.locator("#b_stream").click()
    fresh_page.wait_for_function("document.querySelectorAll('#many .chip').length === 30")
    fresh_page.evaluate(
        "document.querySelectorAll('#many .chip').forEach(c => c.dataset.kept = 'yes')"
    )
    fresh_page.locator("#b_middle").click()
    fresh_page.wait_for_function("document.querySelectorAll('#many .chip').length === 31")
    assert fresh_page.locator("#many .chip[data-kept]").count() == 29
    assert chip(fresh_page, "many", 15).text_content() == "new"
    chip(fresh_page, "many", 30).hover()
    assert facts(fresh_page, "#many .popover")["Position"] == "30"


def test_a_thousand_chips(fresh_page):
    fresh_page.locator("#b_many").click()
    fresh_page.wait_for_function("document.querySelectorAll('#many .chip').length === 1000")
    assert fresh_page.locator("#many .more").text_content() == (
        "1,000 of 1,234 shown, 234 more not drawn"
    )


def test_colours_follow_the_theme(fresh_page):
    def colour() -> str:
        return fresh_page.evaluate(
            "getComputedStyle(document.querySelectorAll('#weights .chip')[4]).backgroundColor"
        )

    light = colour()
    fresh_page.evaluate("document.body.classList.toggle('dark')")
    fresh_page.wait_for_function(
        "light => getComputedStyle(document.querySelectorAll('#weights .chip')[4])"
        ".backgroundColor !== light",
        arg=light,
    )


def test_chinese_words(open_page):
    page = open_page("?__theme=dark&lang=zh-CN")
    assert page.locator("#chips .copy").text_content() == "复制编号"
    assert page.locator("#layer .name").text_content() == "层"
    assert page.locator("#examples button").all_inner_texts()[1] == "重复的短语"
    assert "展示计算过程" in page.locator("#working").text_content()


def luminance(colour: list[float]) -> float:
    """Relative luminance of WCAG 2.2 of a colour from 0 to 255."""
    shares = [part / 255 for part in colour]
    linear = [s / 12.92 if s <= 0.04045 else ((s + 0.055) / 1.055) ** 2.4 for s in shares]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


@pytest.mark.parametrize("scale", ["weight", "chance", "difference"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_letters_on_every_colour_can_be_read(page, scale: str, theme: str):
    pairs = page.evaluate(
        """([scale, theme]) => Array.from({length: 101}, (_, i) => {
             const rgb = glassboxKit.colour(i / 100, scale, theme);
             return [rgb, glassboxKit.inkOn(rgb)];
           })""",
        [scale, theme],
    )
    for rgb, ink in pairs:
        letters = [int(ink[i : i + 2], 16) for i in (1, 3, 5)]
        low, high = sorted([luminance(rgb), luminance(letters)])
        assert (high + 0.05) / (low + 0.05) >= 4.5


@pytest.mark.parametrize("scale", ["weight", "chance"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_scales_change_evenly_in_one_direction(page, scale: str, theme: str):
    """Lightness alone tells the order, whatever colours an eye can tell apart."""
    colours = page.evaluate(
        "([scale, theme]) => Array.from({length: 33}, (_, i) => "
        "glassboxKit.colour(i / 32, scale, theme))",
        [scale, theme],
    )
    steps = np.diff([luminance(colour) for colour in colours])
    assert (steps > 0).all() or (steps < 0).all()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_differences_grow_out_of_the_paper_in_two_colours(page, theme: str):
    """A map's byte of 0 is 128: it has the colour of an empty cell of the other maps."""
    colours, paper = page.evaluate(
        """theme => [
             Array.from({length: 65}, (_, i) => glassboxKit.colour(i / 64, 'difference', theme)),
             glassboxKit.colour(0, 'weight', theme)]""",
        theme,
    )
    zero = page.evaluate("theme => glassboxKit.colour(128 / 255, 'difference', theme)", theme)
    assert colours[32] == zero == paper
    away = [np.diff([luminance(c) for c in side]) for side in (colours[32:], colours[32::-1])]
    assert all((steps > 0).all() or (steps < 0).all() for steps in away)
    assert all(c[0] > c[2] for c in colours[:28])
    assert all(c[0] < c[2] for c in colours[37:])


def test_shown_numbers_read_back_as_the_same_float32(page):
    rng = np.random.default_rng(0)
    numbers = np.exp(rng.normal(-4, 6, 500)).astype("f4")
    shown = page.evaluate("all => all.map(glassboxKit.exact)", [float(n) for n in numbers])
    assert (np.array(shown, dtype="f4") == numbers).all()
    assert page.evaluate("glassboxKit.exact(Math.fround(0.4508))") == "0.4508"
    assert page.evaluate("glassboxKit.exact(0)") == "0"
