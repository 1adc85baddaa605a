"""The page of the Tokens tab, served with the tiny model, and pages of it in Chromium."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from components.context import AppContext, Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs import tokens
from explorer.runs import Runs
from tests.components.test_tokens_panels import Store

SOON_MS = 120_000  # a machine may be busy; nothing here measures time


@contextmanager
def serve_tokens(
    home: Any, *, tabs: tuple[Any, ...] = (tokens.TAB,)
) -> Iterator[tuple[str, AppContext]]:
    """Serve it; gives the address and the page's context."""
    demo, ctx = build_page(Store(), Settings(), runs=Runs(home), tabs=tabs)
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    yield url, ctx
    demo.close(verbose=False)


@contextmanager
def tokens_pages(chromium: Any, url: str) -> Iterator[Callable[..., Any]]:
    """Opens panels; a fault of a script, a dialog, or an image of ours fails the test."""
    faults: list[str] = []
    contexts = []

    def open_one(panel: str, *, width: int = 390, more: str = "", tab: str = "tokens") -> Any:
        context = chromium.new_context(viewport={"width": width, "height": 900})
        context.set_default_timeout(SOON_MS)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda m: faults.append(m.text) if "js_on_load" in m.text else None)
        page.on("dialog", lambda dialog: (faults.append("a dialog"), dialog.dismiss()))
        page.goto(f"{url}?tab={tab}&panel={panel}&lang=en&__theme=light{more}")
        page.wait_for_selector('#header .pill[data-state="ready"]')
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []
