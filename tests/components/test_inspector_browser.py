"""The Next token and Layers tabs in Chromium: what follows a slider, a click, a link; reports."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs import layers
from components.tabs import next as next_tab
from tests.components.tiny_chat import TinyStore

pytestmark = pytest.mark.slow
SOON_MS = 120_000  # a machine may be busy; nothing here measures time


@pytest.fixture(scope="module")
def url():
    demo, ctx = build_page(TinyStore(), Settings(), tabs=(next_tab.TAB, layers.TAB))
    yield launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    demo.close(verbose=False)


@pytest.fixture
def open_page(chromium, url):
    """Opens views; a fault of a script fails the test."""
    faults: list[str] = []
    context = chromium.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    context.set_default_timeout(SOON_MS)
    context.grant_permissions(["clipboard-read", "clipboard-write"])

    def open_one(query):
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{url}?{query}")
        page.wait_for_selector('#header .pill[data-state="ready"]')
        return page

    yield open_one
    context.close()
    assert faults == []


def put(page, selector, value):
    """Type a number where a slider has its box."""
    box = page.locator(f"{selector} input[type=number]")
    box.fill(value)
    box.press("Tab")


@pytest.mark.parametrize(
    ("panel", "shown"),
    [
        ("attribution", "#attribution-said"),
        ("gradients", "#gradients-chips .chips"),
        ("losses", "#losses-chips .chips"),
    ],
)
def test_the_panel_of_a_link_is_asked_and_no_other(open_page, panel, shown):
    page = open_page(f"tab=layers&panel={panel}&text=ab+cd")
    page.wait_for_function("where => document.querySelector(where)?.innerText.trim()", arg=shown)
    page.locator("#layers-text textarea").fill("other")
    page.wait_for_timeout(1_500)
    assert page.locator("#lens-grid .rows tr").count() == 0
    page.get_by_role("tab", name="Lens").click()
    page.wait_for_function("document.querySelectorAll('#lens-grid .rows tr').length === 3")
    assert page.locator("#lens-grid .heads th").count() == 1 + len("other")


def test_bars_follow_a_slider_and_say_what_cannot_be(open_page):
    page = open_page("tab=next&text=ab+cd&top_k=2")
    page.wait_for_selector("#next-bars .row")
    assert page.locator("#next-bars .row:not(.gone)").count() == 2
    page.locator("#next-dial-top_k input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("document.querySelectorAll('#next-bars .row:not(.gone)').length === 3")
    assert "top-k: place 4, kept up to 3" in page.locator("#next-bars .row").nth(3).inner_text()
    put(page, "#next-dial-temperature", "0")
    page.wait_for_function("document.querySelectorAll('#next-bars .row:not(.gone)').length === 1")
    put(page, "#next-dial-temperature", "0.000000001")
    page.locator("#next-bars .note").get_by_text("temperature = 1e-09 is not").wait_for()
    put(page, "#next-dial-temperature", "1")
    page.locator("#next-typed-drawer > button").click()
    page.locator("#next-typed textarea").fill("a -inf, b -inf")
    page.locator("#next-card").get_by_text("No logit is finite").wait_for()


def test_a_walk_is_stepped_looked_at_forced_and_played(open_page):
    page = open_page("tab=next&panel=step&text=ab+cd")
    chips = page.locator("#step-chips .chip")
    page.wait_for_function("document.querySelectorAll('#step-chips .chip').length === 5")
    bars = page.locator("#step-bars .row .word")
    bars.first.wait_for()
    best = bars.first.inner_text()
    bars.first.click()
    page.wait_for_function("document.querySelectorAll('#step-chips .chip').length === 6")
    page.locator("#step-said").get_by_text("Place 2, 1 written").wait_for()
    page.locator("#step-next").click()
    page.locator("#step-said").get_by_text("Place 3, 2 written").wait_for()
    chips.nth(5).click()
    page.locator("#step-said").get_by_text("Place 1, 2 written").wait_for()
    assert page.locator("#step-bars .row .word").first.inner_text() == best
    page.locator("#step-word textarea, #step-word input").fill("z")
    page.keyboard.press("Enter")
    page.locator("#step-said").get_by_text("Place 2, 1 written").wait_for()
    assert chips.nth(5).inner_text() == "z"
    page.get_by_label("4/s").check()
    page.locator("#step-play").click()
    page.locator("#step-said").get_by_text(re.compile("[4-9] written")).wait_for()
    page.locator("#step-pause").click()
    page.wait_for_timeout(1_000)
    n_written = chips.count()
    page.wait_for_timeout(1_500)
    assert chips.count() == n_written


def test_a_report_opens_offline_and_says_the_same(open_page, chromium, tmp_path):
    page = open_page("tab=next&text=ab+cd&temperature=0.7")
    page.wait_for_selector("#next-bars .row")
    shown = page.locator("#next-bars .rows").inner_text()
    with page.expect_download() as started:
        page.locator("#next-report").click()
    file = tmp_path / started.value.suggested_filename
    started.value.save_as(file)
    assert file.name == "glassbox-next.html"
    offline = chromium.new_context(offline=True, viewport={"width": 1280, "height": 900})
    asked, said = [], []
    report = offline.new_page()
    report.on("request", lambda request: asked.append(request.url))
    report.on("console", lambda message: said.append(message.text))
    report.goto(file.as_uri())
    assert report.locator("#next-bars .rows").inner_text() == shown
    assert report.locator("#next-text textarea").input_value() == "ab cd"
    assert report.locator("#next-dial-temperature input[type=number]").input_value() == "0.7"
    assert report.evaluate("document.querySelectorAll('script').length") == 0
    width = report.evaluate("document.documentElement.scrollWidth")
    offline.close()
    assert (asked, said, width) == ([file.as_uri()], [], 1280)


def test_a_shared_view_carries_the_settings_of_the_tab(open_page):
    page = open_page("tab=next&panel=step&text=ab+cd&layer=1&speed=4&temperature=0.5")
    page.locator("#step-layer .place").get_by_text("1 of 0–1").wait_for()
    assert page.get_by_label("4/s").is_checked()
    page.locator("#next-share").click()
    page.wait_for_function("location.search.includes('layer')")
    found = parse_qs(urlsplit(page.url).query)
    expected = {"tab": "next", "panel": "step", "text": "ab cd", "layer": "1", "speed": "4"}
    expected |= {"temperature": "0.5", "top_k": "0", "seed": "123"}
    assert {key: found[key] for key in expected} == {k: [v] for k, v in expected.items()}


def test_chips_are_saved_as_a_picture_and_measures_stand_together(open_page):
    page = open_page("tab=layers&panel=gradients&text=ab+cd")
    page.wait_for_selector("#gradients-chips .chip")
    page.locator("#gradients-working > button").click()
    with page.expect_download() as started:
        page.locator("#gradients-working-exports .png").click()
    assert started.value.suggested_filename == "gradients-picture.png"
    page.get_by_label("leave one out").check()
    page.wait_for_function("document.querySelectorAll('#gradients-working-table th').length >= 3")
