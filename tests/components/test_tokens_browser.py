"""The Tokens tab in Chromium: hard texts in every panel, drawn as text and never run."""

import pytest

from components.tabs import tokens
from tests.components.tokens_page import serve_tokens, tokens_pages

pytestmark = pytest.mark.slow
MARKUP = "</span><img src=x onerror=alert(1)>"
HARD = (
    MARKUP,
    "<script>alert(1)</script>",
    "u\u0307 cafe\u0301 \ufffd",
    "😶\u200d🌫️ 每个人都有他的作战策略 שָׁלוֹם ភាសា \u202eabc",
    "  Hello World.\n! !\n! #include <stdio.h>",
)
# Panel -> its boxes, and where a text that was typed is drawn when it has been answered.
BOXES = {
    "chips": (["tokens-text"], "tokens-chips"),
    "compare": (["compare-text"], "compare-chips-0"),
    "merges": (["merges-text"], "merges-split"),
    "before": (["before-learnt", "before-text"], "before-chips-bytes"),
    "extend": (["extend-new", "extend-text"], "extend-chips-after"),
    "windows": (["windows-text"], None),
    "embeddings": (["embed-token", "embed-map-words", "embed-vector-text"], None),
    "train": (["train-text", "train-name"], None),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with serve_tokens(tmp_path_factory.mktemp("home")) as (address, _):
        yield address


@pytest.fixture
def open_panel(chromium, url):
    with tokens_pages(chromium, url) as open_one:
        yield open_one


@pytest.mark.parametrize("panel", tokens.PANELS)
def test_hard_texts_are_drawn_and_not_run(open_panel, panel):
    page = open_panel(panel)
    boxes, place = BOXES[panel]
    for name in boxes:
        box = page.locator(f"#{name} textarea, #{name} input").first
        for text in HARD:
            box.fill(text)
            if panel == "train":
                page.locator("#train-begin").click()
            page.wait_for_timeout(300)  # some must be overtaken by the next one
    if place is not None:
        box.fill(MARKUP)
        wanted = MARKUP.encode().hex().upper() if panel == "before" else "onerror"
        page.wait_for_function(
            """([place, wanted]) => [...document.querySelectorAll(
               `#${place} .unit, #${place} tbody td`)].map(one => one.unit ? one.unit.t
               : one.textContent).join('').includes(wanted)""",
            arg=[place, wanted],
        )
    assert page.locator('img[src="x"]').count() == 0
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= 390, f"{panel} is {width} px wide"


def test_of_a_long_text_the_page_says_what_it_does_not_show(open_panel):
    page = open_panel("chips")
    page.locator("#tokens-text textarea").fill("每个人 x " * 16_667)
    said = page.wait_for_function(
        """() => { const more = document.querySelector('#tokens-chips .more');
           return more && !more.closest('[hidden]') && more.textContent; }"""
    ).json_value()
    assert "not drawn" in said
    n_chips = page.locator("#tokens-chips .chips > *").count()
    assert 0 < n_chips <= 1_000
    page.wait_for_function(
        "document.querySelector('#tokens-counts').innerText.includes('characters: 100,002')"
    )
    # the page still answers
    page.locator("#tokens-text textarea").fill("short")
    page.wait_for_function("document.querySelectorAll('#tokens-chips .chips > *').length < 6")


def test_pointing_at_an_id_tells_its_token_and_marks_where_it_is_repeated(open_panel):
    page = open_panel("chips")
    page.locator("#tokens-text textarea").fill("xyx")
    page.wait_for_function("document.querySelector('#tokens-counts').innerText.includes(': 3')")
    page.wait_for_function("document.querySelectorAll('#tokens-chips .chips > *').length === 3")
    first = page.locator("#tokens-chips .lane-ids > *").first
    first.hover()
    page.wait_for_function(
        "id => document.querySelector('#tokens-chips .readout').innerText.includes(id)",
        arg=first.inner_text().strip(),
    )
    assert page.locator("#tokens-chips .chips .same").all_inner_texts() == ["x", "x"]
