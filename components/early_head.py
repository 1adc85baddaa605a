"""Puts our first script and style sheet into the served page, ahead of Gradio's.

`launch(head=...)` travels in the page's configuration and is added by Gradio's own script: too
late to choose a language or a theme without a flash. This middleware changes the HTML itself.
"""

import gzip
import json
from hashlib import sha256
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from components.kit.view_assets import SCRIPT, STYLE, make_script, make_style
from components.text import ASSETS, LOCALES, Words

_SCRIPT_FILES = ("shell",)
# Asked for early, so that the first text does not change its font.
_FONTS = (
    "static/fonts/IBMPlexSans/IBMPlexSans-Regular.woff2",
    "static/fonts/IBMPlexSans/IBMPlexSans-Bold.woff2",
)


def make_early_head(words: Words) -> str:
    """Write the HTML that goes first into the head of the page.

    Args:
        words: Their `shell` file travels along, for the scripts of the page.

    Returns:
        Scripts, the style sheet and the fonts to fetch first.
    """
    table = {
        locale: {key: text for name in _SCRIPT_FILES for key, text in _entries(words, locale, name)}
        for locale in LOCALES
    }
    # "<" is written as an escape: a sentence that held "</script>" would end the element.
    as_json = json.dumps(table, ensure_ascii=False).replace("<", "\\u003c")
    early = (ASSETS / "early.js").read_text(encoding="utf-8")
    fonts = "".join(
        f'<link rel="preload" as="font" type="font/woff2" crossorigin href="{address}">'
        for address in _FONTS
    )
    return (
        f"<script>{early.replace('GLASSBOX_WORDS', as_json)}</script>"
        f'<link rel="stylesheet" href="{_versioned("style.css")}">'
        f'<script src="{_versioned("shell.js")}" defer></script>'
        f'<script src="{_versioned("report.js")}" defer></script>'
        f'<script src="{_versioned("kit/kit.js")}" defer></script>'
        f'<link rel="stylesheet" href="{_made(STYLE, make_style())}">'
        f'<script src="{_made(SCRIPT, make_script(words))}" defer></script>'
        f"{fonts}"
    )


def _entries(words: Words, locale: str, name: str) -> list[tuple[str, str]]:
    return list(words.of_file(locale, name).items())


def _made(name: str, content: str) -> str:
    """The address of a file that is put together when it is asked for."""
    return f"glassbox/{name}?v={_hash(content.encode())}"


def _hash(content: bytes) -> str:
    return sha256(content).hexdigest()[:12]


def _versioned(name: str) -> str:
    """Give the address of an asset, which changes when its content does.

    It is relative to the page, so that it holds behind a proxy with a path of its own.
    """
    return f"glassbox/assets/{name}?v={_hash((ASSETS / name).read_bytes())}"


class EarlyHead:
    """ASGI middleware that inserts HTML right after `<head>` of every page that is served.

    Args:
        app: The application behind it.
        html: What to insert.
    """

    def __init__(self, app: ASGIApp, html: str) -> None:
        self._app = app
        self._html = html.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; change its answer when it is a page."""
        if not _asks_for_a_page(scope):
            await self._app(scope, receive, send)
            return
        # Without this header the page comes uncompressed, so that it can be changed.
        headers = [pair for pair in scope["headers"] if pair[0] != b"accept-encoding"]
        accepted = dict(scope["headers"]).get(b"accept-encoding", b"")
        changer = _PageChanger(send, self._html, compress=b"gzip" in accepted)
        await self._app({**scope, "headers": headers}, receive, changer.send)


class _PageChanger:
    """Holds one answer back until it is whole, then sends it with the HTML inserted."""

    def __init__(self, send: Send, html: bytes, *, compress: bool) -> None:
        self._send = send
        self._html = html
        self._compress = compress
        self._start: Message | None = None
        self._body = bytearray()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _is_html(message):
            self._start = message
        elif message["type"] == "http.response.body" and self._start is not None:
            self._body += message.get("body", b"")
            if not message.get("more_body", False):
                await self._send_changed(self._start)
        else:
            await self._send(message)

    async def _send_changed(self, start: Message) -> None:
        body = bytes(self._body).replace(b"<head>", b"<head>" + self._html, 1)
        headers = [pair for pair in start["headers"] if pair[0].lower() != b"content-length"]
        if self._compress:
            body = gzip.compress(body, compresslevel=6)
            headers += [(b"content-encoding", b"gzip"), (b"vary", b"accept-encoding")]
        headers.append((b"content-length", str(len(body)).encode()))
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": body})


def _asks_for_a_page(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "GET":
        return False
    accepted: dict[bytes, Any] = dict(scope["headers"])
    return b"text/html" in accepted.get(b"accept", b"")


def _is_html(message: Message) -> bool:
    kinds = [value for name, value in message["headers"] if name.lower() == b"content-type"]
    return bool(kinds) and kinds[0].startswith(b"text/html")
