"""One page for each tab, of one app.

Gradio finds a component by walking over all of a page: with nine tabs, two thousand components, a
page takes a minute to settle, with one it takes a second. So a visitor is sent the components and
events of the tab that he opens, and those that all tabs share: header, model bar, the visitor's
choices. On the server it is one app: a program that opens a model has it open for every function.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

import gradio as gr
from starlette.types import ASGIApp, Receive, Scope, Send

# Gradio's name of the page at the root of the address.
ROOT = ""


class TabPages(gr.Blocks):
    """Blocks whose parts belong to a tab, or to all; the root shows the first tab."""

    @contextmanager
    def tab_page(self, tab_id: str, title: str) -> Iterator[None]:
        """What is built, and connected, inside this context belongs to that tab alone.

        It may be entered again, to connect what other tabs have built since.

        Args:
            tab_id: Id of the tab; its page is served under `/<tab_id>`.
            title: What Gradio's own list of pages calls it.
        """
        if tab_id not in self.tab_ids():
            self.pages.append((tab_id, title, False))
        self.current_page = tab_id
        try:
            yield
        finally:
            self.current_page = ROOT

    def tab_ids(self) -> list[str]:
        """The tabs so far, from left to right."""
        return [page for page, _, _ in self.pages if page != ROOT]

    def get_config_file(self) -> Any:
        """Gradio's description of the app, with what all tabs share on each of their pages."""
        config: dict[str, Any] = dict(super().get_config_file())
        # Gradio draws a bar of its own above an app of several pages; ours is in the header.
        config["pages"] = [(ROOT, "", False)]
        pages, tabs = config["page"], self.tab_ids()
        shared = pages[ROOT]
        for tab_id in tabs:
            pages[tab_id] = _join(shared, pages[tab_id])
        pages[ROOT] = pages[tabs[0]] if tabs else shared
        return config

    # Without `page`, which Gradio then looks up in the description above; with it, the functions
    # that all tabs share would count as those of the root alone.
    def get_api_info(self, all_endpoints: bool = False) -> Any:  # type: ignore[override]
        """Describe the functions for programs, as Gradio does.

        Args:
            all_endpoints: With those that are not documented.
        """
        return super().get_api_info(all_endpoints=all_endpoints)


def _join(shared: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    children = [*shared["layout"]["children"], *own["layout"]["children"]]
    return {
        "layout": {**own["layout"], "children": children},
        "components": [*shared["components"], *own["components"]],
        "dependencies": [*shared["dependencies"], *own["dependencies"]],
    }


class TabAddress:
    """ASGI middleware: an address with `?tab=chat` is answered with the page of that tab.

    So that addresses of views stay what they are, wherever the page itself is served.

    Args:
        app: The application behind it.
        tab_ids: The tabs there are; another name gets the root.
    """

    def __init__(self, app: ASGIApp, tab_ids: list[str]) -> None:
        self._app = app
        self._tab_ids = frozenset(tab_ids)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, to the page of its tab when it names one."""
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            root = scope.get("root_path", "").rstrip("/")
            if scope["path"] in (f"{root}/", root):
                named = parse_qs(scope["query_string"].decode("latin-1")).get("tab", [""])[0]
                if named in self._tab_ids:
                    path = f"{root}/{named}"
                    scope = {**scope, "path": path, "raw_path": path.encode()}
        await self._app(scope, receive, send)
