"""Each tab has a page of its own that holds all it needs, and no part of another."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from gradio_client import Client

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs import TABS
from tests.components.fake_store import FakeStore

TAB_IDS = [tab.id for tab in TABS]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    demo, ctx = build_page(FakeStore(), Settings())
    yield launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    demo.close(verbose=False)


def read_page(url: str, address: str) -> dict[str, Any]:
    """The description that Gradio's script finds in a page."""
    page = urllib.request.urlopen(url + address).read().decode()
    begin = "window.gradio_config = "
    found, _ = json.JSONDecoder().raw_decode(page[page.index(begin) + len(begin) :])
    return found


def ids_in(layout: dict[str, Any]) -> Iterator[int]:
    for child in layout.get("children", []):
        yield child["id"]
        yield from ids_in(child)


def tabs_on(page: dict[str, Any]) -> list[str]:
    """Tabs whose own column is among the components of a page."""
    ids = [str(component["props"].get("elem_id")) for component in page["components"]]
    return [tab for tab in TAB_IDS if f"tab-{tab}" in ids]


@pytest.mark.parametrize("tab", TAB_IDS)
def test_a_page_holds_its_tab_and_all_that_its_events_name(url: str, tab: str) -> None:
    page = read_page(url, f"?tab={tab}")
    assert page["current_page"] == tab
    assert tabs_on(page) == [tab]
    components = {component["id"] for component in page["components"]}
    assert set(ids_in(page["layout"])) <= components
    known = components | {page["layout"]["id"], None}
    events = {event["id"] for event in page["dependencies"]}
    for event in page["dependencies"]:
        named = [*event["inputs"], *event["outputs"], *(target for target, _ in event["targets"])]
        assert set(named) <= known, event["api_name"]
        assert event["trigger_after"] is None or event["trigger_after"] in events


@pytest.mark.parametrize(
    ("address", "tab"),
    [
        ("", TAB_IDS[0]),
        ("?tab=nothing", TAB_IDS[0]),
        ("chat", "chat"),
        ("?tab=chat&text=a", "chat"),
    ],
)
def test_which_tab_an_address_shows(url: str, address: str, tab: str) -> None:
    assert tabs_on(read_page(url, address)) == [tab]


def test_gradio_draws_no_bar_of_its_own(url: str) -> None:
    assert len(read_page(url, "?tab=chat")["pages"]) == 1


def test_a_page_lists_its_own_functions_and_those_of_all_tabs(url: str) -> None:
    listed = json.load(urllib.request.urlopen(f"{url}gradio_api/info?page=chat"))
    names = set(listed["named_endpoints"])
    assert {"/open_model", "/chat_send"} <= names
    assert "/pretrain_start" not in names


def test_a_program_finds_the_functions_of_all_tabs(url: str) -> None:
    names = Client(url, verbose=False).view_api(return_format="dict", print_info=False)
    assert {"/open_model", "/chat_send", "/pretrain_start"} <= set(names["named_endpoints"])
