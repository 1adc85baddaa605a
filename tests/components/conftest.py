"""A page with a tiny chat model, served once for each test module that asks for it."""

from collections.abc import Iterator

import pytest

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.routes import MatrixRoutes
from components.shell import build_page
from components.tabs import chat
from tests.components.tiny_chat import TinyStore


@pytest.fixture(scope="module")
def served_routes() -> MatrixRoutes:
    """What the page with the tiny model publishes."""
    return MatrixRoutes()


@pytest.fixture(scope="module")
def served_chat(served_routes: MatrixRoutes) -> Iterator[tuple[TinyStore, str]]:
    """The store of the tiny model and the address of the page."""
    store = TinyStore()
    demo, ctx = build_page(store, Settings(), routes=served_routes, tabs=(chat.TAB,))
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    yield store, url
    demo.close(verbose=False)


@pytest.fixture
def store(served_chat: tuple[TinyStore, str]) -> TinyStore:
    """The store, as at first."""
    served_chat[0].begin()
    return served_chat[0]


@pytest.fixture
def url(store: TinyStore, served_chat: tuple[TinyStore, str]) -> str:
    """The address of the page."""
    return served_chat[1]
