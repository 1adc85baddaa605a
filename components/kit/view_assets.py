"""The scripts and styles of all views of the kit, as one file each, sent once.

A `gr.HTML` brings its script and style along in the page's configuration. A page with two hundred
views would carry 4 MB of copies; so a view of ours only names itself, and what it runs is here:

    window.glassboxViews.chips(element, props, trigger, server, upload, watch)
"""

import gzip
import json
from collections.abc import Awaitable, Callable
from functools import cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from components.text import ASSETS, LOCALES, Words

KIT = ASSETS / "kit"
SCRIPT, STYLE = "views.js", "views.css"
_SHARED = "kit"  # kit.js and kit.css belong to all views

# A view keeps its fixed properties and words where Gradio takes them away: an event that leaves a
# `gr.HTML` as it is still sends it `{"__type__": "update"}` (seen in Gradio 6.31), and a view that
# is not in the page yet, such as one in a closed drawer, loses its own through that.
_MOUNT = """\
const mount = (name, fixed, further, element, props, ...rest) => {
  for (const [key, value] of Object.entries(fixed)) {
    if (props[key] === undefined) props[key] = value;
  }
  const own = {};
  for (const [locale, shared] of Object.entries(words[name])) {
    own[locale] = {...shared, ...further[locale]};
  }
  const get = (target, key) => (key === 'words' ? own : target[key]);
  return views[name](element, new Proxy(props, {get}), ...rest);
};
return {mount};
"""


def list_views() -> list[str]:
    """Names of all views: every script of `assets/kit` but the one that they share."""
    return sorted(path.stem for path in KIT.glob("*.js") if path.stem != _SHARED)


def make_script(words: Words) -> str:
    """One script with every view as a function of its name, and their sentences.

    Args:
        words: The sentences of the page.
    """
    names = list_views()
    sentences = {
        name: {locale: read_sentences(words, locale, f"kit.{name}.") for locale in LOCALES}
        for name in names
    }
    functions = "".join(
        f"{json.dumps(name)}(element, props, trigger, server, upload, watch) "
        f"{{\n{read_file(f'{name}.js')}\n}},\n"
        for name in names
    )
    return (
        "window.glassboxViews ??= (() => {\n"
        f"const words = {json.dumps(sentences, ensure_ascii=False)};\n"
        f"const views = {{\n{functions}}};\n{_MOUNT}}})();\n"
    )


def make_style() -> str:
    """One style sheet; what a view writes holds inside it alone.

    The name that no element has gives the rules the weight that Gradio's own scoping, by id, has.
    """
    shared = read_file(f"{_SHARED}.css")
    return "".join(
        f":is(#no-element, .view-{name}) {{\n{shared}{read_file(f'{name}.css')}\n}}\n"
        for name in list_views()
    )


def read_sentences(words: Words, locale: str, start: str) -> dict[str, str]:
    """Give the sentences whose key begins with `start`, under the rest of their key."""
    name = start.partition(".")[0]
    entries = words.of_file(locale, name).items()
    return {key.removeprefix(start): text for key, text in entries if key.startswith(start)}


@cache
def read_file(name: str) -> str:
    """Text of a file of `assets/kit`; a view without a style has none."""
    path = KIT / name
    return path.read_text(encoding="utf-8") if path.exists() else ""


def view_routes(words: Words) -> list[BaseRoute]:
    """The routes of both files, beside those of `components/routes.py`.

    Args:
        words: The sentences of the page.
    """
    files = ((SCRIPT, make_script(words), "text/javascript"), (STYLE, make_style(), "text/css"))
    return [Route(f"/glassbox/{name}", _server_of(text, kind)) for name, text, kind in files]


def _server_of(text: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    packed = gzip.compress(text.encode())
    # the address carries the version, so the content never changes
    headers = {"Cache-Control": "private, max-age=31536000, immutable", "Vary": "Accept-Encoding"}

    async def serve(request: Request) -> Response:
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, 200, {**headers, "Content-Encoding": "gzip"}, media_type)
        return Response(text, 200, headers, media_type)

    return serve
