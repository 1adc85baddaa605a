"""The demo of the kit in a browser: fixtures and readers for the tests of the kit.

A test module takes the fixtures in with `pytest_plugins`.
"""

from typing import Any

import pytest

from tests.components import kit_demo


class Opener:
    """Opens the demo, and remembers every error and every request to another host."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser, self.url = browser, url
        self.faults: list[str] = []
        self.contexts: list[Any] = []

    def __call__(self, query: str = "?__theme=light&lang=en", width: int = 1280, **options: Any):
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, accept_downloads=True, **options
        )
        self.contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._on_console)
        page.on("request", self._on_request)
        page.goto(self.url + query)
        page.wait_for_function("document.querySelector('#heat canvas')?.width === 22")
        page.wait_for_function("document.querySelectorAll('#answer .chip').length === 10")
        return page

    def _on_console(self, line: Any) -> None:
        if line.type == "error":
            self.faults.append(line.text)

    def _on_request(self, request: Any) -> None:
        if not request.url.startswith((self.url, "data:", "blob:")):
            self.faults.append(request.url)

    def close(self) -> None:
        for context in self.contexts:
            context.close()


@pytest.fixture(scope="session")
def kit_app():
    """The running demo: its address, and the maps that it shows."""
    demo, url, maps = kit_demo.launch_demo(None)
    yield url, maps
    demo.close(verbose=False)


@pytest.fixture
def open_page(chromium, kit_app):
    opener = Opener(chromium, kit_app[0])
    yield opener
    opener.close()
    assert not opener.faults


@pytest.fixture
def fresh_page(open_page):
    """A page of its own, for a test that changes more than the next one could bear."""
    return open_page()


@pytest.fixture(scope="module")
def shared(chromium, kit_app):
    opener = Opener(chromium, kit_app[0])
    page = opener()
    yield page, opener
    opener.close()


@pytest.fixture
def page(shared):
    """The page that most tests share: opening one takes seconds."""
    page, opener = shared
    page.mouse.move(2, 2)
    yield page
    assert not opener.faults


def wait_said(page: Any, text: str) -> None:
    """Wait until Python has answered with this text."""
    page.wait_for_function(
        "text => document.querySelector('#said textarea, #said input').value === text", arg=text
    )


def facts(page: Any, panel: str) -> dict[str, str]:
    """Read the facts of a read-out as a mapping."""
    return page.evaluate(
        """selector => Object.fromEntries([...document.querySelectorAll(selector + ' .fact')]
             .map(fact => [fact.children[0].textContent, fact.children[1].textContent]))""",
        panel,
    )


def chip(page: Any, view: str, index: int) -> Any:
    """Find one chip of a view."""
    return page.locator(f"#{view} .chip").nth(index)


def point_at(page: Any, row: int, column: int, n_tokens: int) -> None:
    """Move the pointer over one cell of the heatmap."""
    box = page.locator("#heat .plot").bounding_box()
    page.locator("#heat .plot").hover(
        position={
            "x": box["width"] * (column + 0.5) / n_tokens,
            "y": box["height"] * (row + 0.5) / n_tokens,
        }
    )


def weight_shown(page: Any) -> float:
    """Read the weight in the read-out, once it has come."""
    page.wait_for_function(
        "/^[0-9.]/.test(document.querySelector('#heat .weight')?.textContent ?? '')"
    )
    return float(page.locator("#heat .weight").text_content())


def open_plot(page: Any) -> None:
    """Open the tab that holds the panel, and draw curves."""
    page.get_by_role("tab", name="plot").click()
    page.locator("#b_curves").click()
    page.wait_for_selector("#loss .plot[data-drawn]", timeout=30_000)


def drawn(page: Any, what: str) -> Any:
    """Read something from the drawn figure."""
    return page.evaluate(f"document.querySelector('#loss .plot').{what}")
