"""A newcomer's way through the page in Chromium, with real weights: type, look, chat, stop.

The app runs as the README starts it, in a process of its own. Every test fails on a console error,
a script error or a request to another host.
"""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent.parent
LONG_MS = 120_000  # only ever waited for when something is broken


@pytest.fixture(scope="module")
def url(smollm2_file, tmp_path_factory) -> Iterator[str]:
    """The app, started as the README says, with no way to the network.

    Its home is new: the page goes on with the conversation that was changed last, and what other
    tests have said would stand before its first question.
    """
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = str(tmp_path_factory.mktemp("e2e"))
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "GLASSBOX_HOME": home}
    command = [sys.executable, "app.py", "--port", str(port)]
    app = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}/"
    for _ in range(600):
        try:
            urllib.request.urlopen(address).read()
            break
        except OSError:
            assert app.poll() is None, "the app ended before it served a page"
            time.sleep(0.1)
    yield address
    app.terminate()
    app.wait(30)


@pytest.fixture
def open_view(chromium, url):
    """Opens views of the page; complains at the end about all that they must not do."""
    complaints, contexts = [], []

    def open_one(query, width=1280):
        context = chromium.new_context(viewport={"width": width, "height": 900}, locale="en-US")
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LONG_MS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        page.on("request", lambda r: complaints.append(r.url) if _is_foreign(r.url, url) else None)
        page.goto(url + query)
        page.wait_for_selector('#header .pill[data-state="ready"]')
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def _is_foreign(address, url):
    return not address.startswith((url, "data:", "blob:"))


def test_typing_becomes_tokens(open_view):
    page = open_view("?tab=tokens")
    page.locator("#tokens-text textarea").fill("Hi 玛!\n<b>x</b> ${1+1}")
    page.wait_for_function(
        "document.querySelector('#tokens-counts').innerText.includes('characters: 21')"
    )
    chips = page.locator("#tokens-chips .chips")
    assert "<b>" in chips.inner_text().replace("·", "").replace("\n", "")
    assert chips.locator("b").count() == 0  # text, never markup
    chips.get_by_text("玛").hover()
    readout = page.locator("#tokens-chips .readout")
    page.wait_for_function(
        "document.querySelector('#tokens-chips .readout').innerText.includes('玛')"
    )
    assert "U+739B" in readout.inner_text()


def test_a_head_is_clicked_and_a_token_followed(open_view):
    page = open_view("?tab=attention&text=The%20cat%20sat.%20The%20cat%20sat.&at=11.0.7")
    page.wait_for_selector("#attention-grid button[aria-pressed=true]")
    page.wait_for_function("document.querySelector('#attention-map').innerText.includes('Head 0')")
    page.locator("#attention-grid button").nth(4).click()
    page.wait_for_function("document.querySelector('#attention-map').innerText.includes('Head 4')")
    assert "11 of" in page.locator("#attention-layer").inner_text()
    page.locator("#attention-chips .chips > *").nth(3).click()
    page.locator("#attention-working .label-wrap").click()
    page.wait_for_function(
        "document.querySelector('#attention-working').innerText.includes('Token 3')"
    )
    weights = page.locator("#attention-working-table tbody tr td:last-child").all_inner_texts()
    assert sum(float(weight) for weight in weights) == pytest.approx(1, abs=1e-3)
    page.locator("#attention-layer input").fill("5")
    page.wait_for_function(
        "document.querySelector('#attention-heading').innerText.includes('layer 5')"
    )


def test_1024_tokens_do_not_freeze_the_page(open_view):
    page = open_view("?tab=attention")
    page.wait_for_selector("#attention-grid button[aria-pressed=true]")
    page.locator("#attention-text textarea").fill("The blue cat sat on the mat. " * 150)
    page.wait_for_function(
        "document.querySelector('#attention-counts').innerText.includes('Tokens 0 to 1,023 of ')"
    )
    # the page still answers: a click on another head arrives
    page.locator("#attention-grid button").nth(2).click()
    page.wait_for_function("document.querySelector('#attention-map').innerText.includes('Head 2')")


def test_paris_is_answered_with_probabilities(open_view):
    page = open_view("?tab=chat&temperature=0")
    page.locator("#chat-message textarea").fill("What is the capital of France?")
    page.keyboard.press("Enter")
    page.wait_for_function(
        "document.querySelector('#chat-conversation').innerText"
        ".includes('The capital of France is Paris.')"
    )
    page.wait_for_function("document.querySelector('#chat-chips').innerText.includes('Paris')")
    page.locator("#chat-chips .chips").get_by_text("Paris").hover()
    page.wait_for_function(
        "/9\\d\\.\\d+ ?%/.test(document.querySelector('#chat-chips .popover').innerText)"
    )


def test_stop_ends_a_long_answer(open_view):
    page = open_view("?tab=chat")
    page.locator("#chat-message textarea").fill("Write a very long story about a cat.")
    page.locator("#chat-send").click()
    page.locator("#chat-stop").wait_for()  # the chips of an earlier conversation are gone now
    page.wait_for_function("document.querySelectorAll('#chat-chips .chips > *').length > 3")
    page.locator("#chat-stop").click()
    page.wait_for_function(
        "document.querySelector('#chat-status').innerText.toLowerCase().includes('stopped')"
    )
    written = page.locator("#chat-conversation").inner_text()
    page.wait_for_timeout(1500)
    assert page.locator("#chat-conversation").inner_text() == written


def test_the_phone_shows_all_of_it_in_one_column(open_view):
    for tab in ("tokens", "attention", "chat"):
        page = open_view(f"?tab={tab}", width=390)
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
