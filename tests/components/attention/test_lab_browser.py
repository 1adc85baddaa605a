"""The Attention tab in Chromium: by keyboard, by mouse, with a thousand tokens, and bad inputs."""

from dataclasses import replace

import pytest
import torch

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs import attention
from explorer.runs import Runs
from models.initialise import build_decoder
from tests.components.tiny_chat import CONFIG, TinyStore

pytestmark = pytest.mark.slow
SOON_MS = 120_000  # a machine may be busy; nothing here measures time
N_TOKENS = 1_024


class Store(TinyStore):
    """The tiny model with more context."""

    def __init__(self):
        super().__init__()
        config = replace(CONFIG, context_length=N_TOKENS)
        decoder = build_decoder(config, torch.Generator().manual_seed(5)).requires_grad_(False)
        self.usual = replace(self.usual, model=decoder, config=config)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    runs = Runs(tmp_path_factory.mktemp("home"))
    demo, ctx = build_page(Store(), Settings(), runs=runs, tabs=(attention.TAB,))
    yield launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    demo.close(verbose=False)


@pytest.fixture
def open_panel(chromium, url):
    """Opens a panel; a fault of a script fails the test."""
    faults: list[str] = []
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(SOON_MS)

    def open_one(panel, further=""):
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"{url}?tab=attention&panel={panel}&lang=en&__theme=light{further}")
        page.wait_for_selector('#header .pill[data-state="ready"]')
        return page

    yield open_one
    context.close()
    assert faults == []


def wait_text(page, selector, part):
    page.wait_for_function(
        "([selector, part]) => document.querySelector(selector)?.innerText.includes(part)",
        arg=[selector, part],
    )


def test_by_hand_by_keyboard_with_a_guess_and_a_changed_cell(open_panel):
    page = open_panel("by_hand")
    wait_text(page, "#lab-hand-title", "1.")
    page.locator("#lab-hand-stepper .next").focus()
    for number in (2, 3, 4, 5):
        page.keyboard.press("ArrowRight")
        wait_text(page, "#lab-hand-title", f"{number}.")
    page.keyboard.press("ArrowLeft")
    wait_text(page, "#lab-hand-title", "4.")
    page.keyboard.press("ArrowRight")
    wait_text(page, "#lab-hand-title", "5. Softmax")
    page.locator("#lab-hand-predict input").check()
    wait_text(page, "#lab-hand-said", "Which word")
    hidden = page.locator('#lab-hand-matrices td:text-is("?")')
    assert hidden.count() == 6
    hidden.nth(1).click()
    wait_text(page, "#lab-hand-said", "Right")
    scores = page.locator("#lab-hand-matrices figure").first.locator("td.number")
    scores.nth(8).dblclick()
    page.keyboard.press("Control+A")
    page.keyboard.type("-3")
    page.keyboard.press("Enter")
    page.wait_for_selector("#lab-hand-matrices .changed")
    assert page.locator("#lab-hand-matrices .changed").inner_text() == "-3.0000"
    scores.nth(8).click()
    page.keyboard.press("Control+A")
    page.keyboard.type("three")
    page.keyboard.press("Enter")
    wait_text(page, "#attention-card", "'three' is no number")


def paint(page, cells, n):
    """Hold the button down over cells, in rows and columns."""
    box = page.locator("#lab-mask-painter canvas").bounding_box()
    side = box["width"] / n
    for k, (row, column) in enumerate(cells):
        page.mouse.move(box["x"] + side * (column + 0.5), box["y"] + side * (row + 0.5))
        if not k:
            page.mouse.down()
    page.mouse.up()


def test_a_mask_is_painted_with_the_mouse_to_the_last_cell(open_panel):
    page = open_panel("masks", "&mask_text=abcd")
    wait_text(page, "#lab-mask-said", "0.0000 nats")
    paint(page, [(3, 0), (3, 1)], 4)
    wait_text(page, "#lab-mask-said", "50 % of")
    assert page.locator("#lab-mask-kind input").input_value() == "Painted"
    for row in range(4):
        first = 2 if row == 3 else 0
        paint(page, [(row, column) for column in range(first, row + 1)], 4)
    wait_text(page, "#lab-mask-said", "so their rows are 0: 0, 1, 2, 3")


def test_a_map_of_a_thousand_tokens_is_an_overview_and_exact_when_near(open_panel):
    page = open_panel("heads")
    page.locator("#attention-text textarea").fill("some text to read " * 500)
    wait_text(page, "#attention-counts", "Tokens 0 to 1,023 of 9,000")
    wait_text(page, "#attention-map .insight", "2 × 2 cells")
    page.wait_for_function(f"document.querySelectorAll('#attention-chips .chip').length > {1_000}")
    for _ in range(7):
        page.locator("#attention-map .zoomin").click()
    wait_text(page, "#attention-map .insight", "rows 508–515, columns 508–515")
    assert page.locator("#attention-map canvas").get_attribute("width") == "8"
    page.locator("#attention-map .plot").focus()
    page.keyboard.press("Home")
    wait_text(page, "#attention-map .insight", "columns 0–7")
    page.locator("#attention-map .whole").click()
    wait_text(page, "#attention-map .insight", "2 × 2 cells")
    page.locator("#attention-first input").fill("8000")
    page.keyboard.press("Enter")
    wait_text(page, "#attention-counts", "Tokens 7,976 to 8,999 of 9,000")


def test_one_token_and_the_same_token_again_and_again(open_panel):
    page = open_panel("heads")
    box = page.locator("#attention-text textarea")
    for text, said in (("x", "Tokens: 1"), ("x" * 30, "Tokens: 30")):
        box.fill(text)
        wait_text(page, "#attention-counts", said)
        page.wait_for_selector("#attention-map canvas")
    page.locator("#lab-kind").scroll_into_view_if_needed()
    wait_text(page, "#lab-overview-said", "Mean weight")
    box.fill("y")
    wait_text(page, "#lab-overview-said", "nothing to measure")
    assert page.locator("#attention-card .text").inner_text() == ""


def test_nine_ways_say_how_far_they_are_and_stop_at_once(open_panel):
    page = open_panel("ways")
    for name, number in (("n_tokens", "512"), ("batch", "4"), ("rounds", "25")):
        page.locator(f"#lab-ways-{name} input").first.fill(number)
        page.keyboard.press("Tab")
    page.locator("#lab-ways-start").click()
    wait_text(page, "#lab-ways-said", "Measuring")
    page.locator("#lab-ways-stop").click()
    wait_text(page, "#lab-ways-said", "Stopped.")
    assert page.locator("#attention-card .text").inner_text() == ""


def test_after_an_error_no_old_result_stands_beside_the_new_question(open_panel):
    page = open_panel("ablate")
    wait_text(page, "#lab-ablate-said", "nats")
    page.wait_for_selector("#lab-ablate-bars .row")
    page.locator("#lab-ablate-changes input, #lab-ablate-changes textarea").fill("nonsense")
    page.locator("#lab-ablate-run").click()
    wait_text(page, "#attention-card", "is no change")
    page.wait_for_selector("#lab-ablate-bars .row", state="detached")
    assert page.locator("#lab-ablate-said").inner_text().strip() == ""
