"""The page as its API sees it: opening, failing, cancelling and unloading models."""

import gzip
import inspect
import re
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest
from gradio_client import Client

from components.context import LOCAL_OWNER, Settings
from components.launch import Endpoint, launch_options, launch_page
from components.model_words import make_catalogue_view, make_ready_view, make_step_view
from components.shell import build_page
from components.tabs import TABS
from components.text import CHINESE, ENGLISH, load_words
from explorer.fitting import FitEstimate
from explorer.store_records import LoadStep
from tests.components.fake_store import CATALOGUE, FakeStore, make_summary

WORDS = load_words()
# What programs may call. A name that is missing here is in the API by mistake.
# Those that belong to no tab; all others begin with the name of theirs.
OF_NO_TAB = {"open_model", "cancel_model", "unload_model", "measure_format", "stop_measuring"}
OF_EARLIER_VERSIONS = {"tokenize", "attention", "chat", "chat_send", "pretrain_start"}


def test_the_open_model_is_described_as_in_the_look() -> None:
    view = make_ready_view(WORDS, ENGLISH, make_summary("smollm2-135m-instruct"))
    assert view["name"] == "SmolLM2-135M-Instruct"
    assert view["detail"] == "Llama · 134.5 M · fp32 538 MB · offline pack"


@pytest.mark.parametrize("origin", ["offline pack", "hub", "cache", "file", "folder", "upload"])
def test_every_origin_has_a_word_in_every_language(origin: str) -> None:
    for locale in (ENGLISH, CHINESE):
        assert make_ready_view(WORDS, locale, make_summary("x", origin=origin))["detail"]


def test_a_download_tells_bytes_speed_and_time_left() -> None:
    step = LoadStep("downloading", 40_000_000, 98_000_000, 5.2e6, 71.0)
    view = make_step_view(WORDS, ENGLISH, "GPT-2", step)
    assert view["detail"] == "downloading · 40.0 MB / 98.0 MB · 5.2 MB/s · 1 min 11 s left"
    assert view["fraction"] == pytest.approx(40 / 98)
    unknown = make_step_view(WORDS, CHINESE, "GPT-2", LoadStep("resolving"))
    assert (unknown["detail"], unknown["fraction"]) == ("正在查找", None)
    nothing_yet = make_step_view(WORDS, ENGLISH, "GPT-2", LoadStep("reading", 0, 98_000_000))
    assert (nothing_yet["detail"], nothing_yet["fraction"]) == ("reading · 98.0 MB", None)


def test_the_catalogue_tells_size_licence_and_presence() -> None:
    rows = make_catalogue_view(WORDS, ENGLISH, CATALOGUE, "gpt2")["rows"]
    assert rows[1]["detail"] == "GPT-2 · 548 MB · MIT"
    assert [row["presence_text"] for row in rows] == [
        "on this machine",
        "needs download",
        "needs download",
    ]


def test_the_catalogue_marks_counted_sizes_and_gates() -> None:
    page = "https://huggingface.co/google/gemma-3-1b-it"
    entry = replace(CATALOGUE[1], size_is_counted=True, gate_page=page)
    for locale in (ENGLISH, CHINESE):
        gated, free = make_catalogue_view(WORDS, locale, [entry, CATALOGUE[0]], None)["rows"]
        assert gated["detail"] == "GPT-2 · ≈ 548 MB · MIT"
        assert page in gated["gate_text"]
        assert "HF_TOKEN" in gated["gate_text"]
        assert free["gate_text"] == ""


def test_the_catalogue_tells_what_fits_in_the_chosen_format() -> None:
    fits = {
        "float32": FitEstimate("too large", 8 * 10**9, 9 * 10**9, 4 * 10**9),
        "int8": FitEstimate("tight", 2 * 10**9, 41 * 10**8, 4 * 10**9),
    }
    entries = [replace(CATALOGUE[0], fits=fits), CATALOGUE[1]]
    exact = make_catalogue_view(WORDS, ENGLISH, entries, "smollm2-135m-instruct#int8")
    assert exact["chosen"] == "smollm2-135m-instruct"
    assert exact["rows"][0]["fits_text"] == "too large: 9.0 GB of 4.0 GB"
    assert exact["rows"][1]["fits_text"] == ""  # nothing is known
    small = make_catalogue_view(WORDS, CHINESE, entries, None, "int8")["rows"][0]
    assert (small["fits"], small["fits_text"]) == ("tight", "勉强：需 4.1 GB，可用 4.0 GB")


@pytest.mark.parametrize("verdict", ["fits", "tight", "too large"])
def test_every_verdict_has_a_word_in_every_language(verdict: Any) -> None:
    entry = replace(CATALOGUE[0], fits={"float32": FitEstimate(verdict, 1, 2, 3)})
    for locale in (ENGLISH, CHINESE):
        assert "2 B" in make_catalogue_view(WORDS, locale, [entry], None)["rows"][0]["fits_text"]


@pytest.fixture(scope="module")
def store() -> Any:
    return FakeStore()


@pytest.fixture(scope="module")
def url(store: Any) -> Iterator[str]:
    demo, ctx = build_page(store, Settings())
    # Port None: the first free one; the number in Endpoint is replaced.
    yield launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    demo.close(verbose=False)


@pytest.fixture
def client(url: str) -> Client:
    return Client(url, verbose=False)


def test_a_model_opens_step_by_step(client: Client, store: Any) -> None:
    steps = list(client.submit("gpt2", api_name="/open_model"))
    assert [step[0]["state"] for step in steps] == ["loading", "loading", "ready"]
    assert steps[-1][0]["name"] == "GPT-2"
    assert store.opened[-1] == ("gpt2", LOCAL_OWNER)


def test_a_number_format_becomes_a_part_of_the_source(client: Client, store: Any) -> None:
    client.predict("gpt2", "int8", api_name="/open_model")
    assert store.opened[-1] == ("gpt2#int8", LOCAL_OWNER)
    client.predict(api_name="/unload_model")
    assert "gpt2#int8" not in store.loaded


def test_a_failure_goes_back_to_the_open_model_and_says_why(client: Client) -> None:
    client.predict("gpt2", api_name="/open_model")
    last = list(client.submit("missing", api_name="/open_model"))[-1]
    cards = [part for part in last if isinstance(part, dict) and part.get("kind") == "error"]
    assert [card["text"] for card in cards] == ["'missing' was not found; check the spelling."]
    again = client.predict(api_name="/cancel_model")
    assert again[0]["name"] == "GPT-2"


def test_unloading_leaves_no_model(client: Client, store: Any) -> None:
    client.predict("qwen3-0.6b", api_name="/open_model")
    view = client.predict(api_name="/unload_model")
    assert view[0]["state"] == "empty"
    assert "qwen3-0.6b" not in store.loaded


def test_two_visitors_hold_two_models(url: str) -> None:
    def visit(source: str) -> str:
        client = Client(url, verbose=False)
        client.predict(source, api_name="/open_model")
        return client.predict(api_name="/cancel_model")[0]["name"]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(visit, ["gpt2", "qwen3-0.6b"])) == ["GPT-2", "Qwen3-0.6B"]


def test_the_head_of_the_page_comes_first_and_is_served(url: str) -> None:
    request = urllib.request.Request(
        url, headers={"Accept": "text/html", "Accept-Encoding": "gzip, br"}
    )
    with urllib.request.urlopen(request) as answer:
        assert answer.headers["Content-Encoding"] == "gzip"
        sent = answer.read()
    page = gzip.decompress(sent).decode()
    assert len(sent) < len(page) / 3  # the configuration of all components is in it
    assert page.index("glassbox_language") < page.index("window.gradio_config = ")
    assert page.index('href="glassbox/assets/style.css') < page.index("window.gradio_config = ")
    assert page.count("</script>") >= 4


def test_only_named_events_are_listed() -> None:
    demo, _ = build_page(FakeStore(), Settings())
    names = [fn.api_name for fn in demo.fns.values() if fn.api_visibility == "public"]
    assert len(names) == len(set(names))
    assert set(names) >= OF_NO_TAB | OF_EARLIER_VERSIONS
    # Gradio names an event after its function, with a number where that is not the only one
    tabs = "|".join(tab.id for tab in TABS)
    unnamed = [name for name in names if not re.fullmatch(rf"({tabs})(_[a-z]+)*", str(name))]
    assert set(unnamed) == OF_NO_TAB | {"tokenize"}


def test_every_handler_takes_as_many_values_as_it_has_inputs() -> None:
    demo, _ = build_page(FakeStore(), Settings())
    for block_function in demo.fns.values():
        if block_function.fn is None:
            continue
        hints = inspect.get_annotations(block_function.fn)
        given = [
            parameter
            for parameter in inspect.signature(block_function.fn).parameters.values()
            if hints.get(parameter.name) not in (gr.Request, gr.EventData)
            and not isinstance(parameter.default, gr.Progress)
        ]
        if given and given[-1].kind is inspect.Parameter.VAR_POSITIONAL:
            assert len(given) - 1 <= len(block_function.inputs), block_function.name
        else:
            assert len(given) == len(block_function.inputs), block_function.name


def test_the_launch_settings_are_the_safe_ones() -> None:
    demo, ctx = build_page(FakeStore(), Settings(public=True, max_upload_bytes=1234), tabs=())
    options = launch_options(demo, ctx, Endpoint("127.0.0.1", 1))
    assert options["max_file_size"] == 1234
    assert (options["ssr_mode"], options["share"]) == (False, False)
    assert (options["enable_monitoring"], options["run_history"]) == (False, False)
    assert "allowed_paths" not in options
    assert "show_error" not in options


def test_on_a_public_host_every_visitor_is_an_owner() -> None:
    _, ctx = build_page(FakeStore(), Settings(public=True), tabs=())
    assert ctx.owner_of("abc") == "abc"
    assert ctx.owner_of(None).startswith("session-")
    _, local = build_page(FakeStore(), Settings(), tabs=())
    assert local.owner_of("abc") == local.owner_of(None) == LOCAL_OWNER


@pytest.mark.parametrize("named", ["", "https://models.example.org/v1"])
def test_a_public_host_shows_fields_of_a_server_where_its_operator_named_one(
    monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("GLASSBOX_SERVERS", named)
    demo, _ = build_page(FakeStore(), Settings(public=True))
    shown = [
        all(getattr(place, "visible", True) is True for place in [block, *parents_of(block)])
        for block in demo.blocks.values()
        if str(block.elem_id).endswith(("-server-url", "-server-key", "-server-find"))
    ]
    assert len(shown) >= 3
    assert set(shown) == {bool(named)}


def parents_of(block: Any) -> Iterator[Any]:
    while (block := block.parent) is not None:
        yield block


def test_tabs_have_unique_ids_and_titles_in_the_words() -> None:
    ids = [tab.id for tab in TABS]
    assert len(set(ids)) == len(ids)
    assert all(WORDS.has(tab.title_key) for tab in TABS)
