"""The switch for thinking, and the line that names the chat format."""

from pathlib import Path
from typing import Any

import pytest
from gradio_client import Client

from components.forms import read_form
from components.tabs.chat.handlers import say_format
from components.text import CHINESE, ENGLISH, load_words
from explorer.conversation import AnswerSettings, encode_prompt
from explorer.model_loader import ModelLoader
from models import load_model
from models.tokenizers import ChatTemplate
from tests.components.fake_store import make_summary
from tests.components.tiny_chat import ByteTokenizer, TinyStore, build_tiny_chat

WORDS = load_words()
HELLO = [{"role": "user", "content": "Hi"}]


def text_of(ids: list[int]) -> str:
    return ByteTokenizer().decode(ids)


def test_thinking_off_reaches_the_template_and_on_is_its_default(store: TinyStore) -> None:
    thinker = store.chats["thinker"]
    assert text_of(encode_prompt(thinker, HELLO)) == "<|user|>Hi<|model|>"
    assert text_of(encode_prompt(thinker, HELLO, thinking=True)) == "<|user|>Hi<|model|>"
    off = text_of(encode_prompt(thinker, HELLO, thinking=False))
    assert off == "<|user|>Hi<|model|><think></think>"
    plain = build_tiny_chat()  # its template knows no such switch
    assert encode_prompt(plain, HELLO, thinking=False) == encode_prompt(plain, HELLO)


def test_the_switch_changes_the_answer_through_the_api(url: str, store: TinyStore) -> None:
    client = Client(url, verbose=False)
    prompts = {}
    for thinking in (True, False):
        told = {"model": "thinker", "max_new_tokens": 2, "thinking": thinking}
        prompts[thinking] = client.predict("Hi", **told, api_name="/chat")["prompt_tokens"]
    assert prompts[False] == prompts[True] + len("<think></think>")


@pytest.mark.parametrize("sent", [None, "no", 0, "false"])
def test_what_is_neither_true_nor_false_counts_as_the_default(sent: Any) -> None:
    assert read_form(AnswerSettings, {"thinking": sent}).thinking is True
    assert read_form(AnswerSettings, {"thinking": False}).thinking is False


def test_a_summary_tells_format_and_thinking(golden_folder: Path) -> None:
    loader = ModelLoader()
    thinker = loader.summarise(build_tiny_chat(template="{{ enable_thinking }}"))
    assert (thinker.has_chat, thinker.knows_thinking, thinker.chat_format) == (True, True, None)
    base = loader.summarise(load_model(golden_folder / "llama"))
    assert (base.has_chat, base.knows_thinking, base.chat_format) == (False, False, None)
    broken = build_tiny_chat(template="{% if %}")  # complained about when somebody chats
    assert not loader.summarise(broken).knows_thinking
    named = build_tiny_chat()
    object.__setattr__(named, "chat", ChatTemplate("x", ByteTokenizer(), format_name="ChatML"))
    assert loader.summarise(named).chat_format == "ChatML"


@pytest.mark.parametrize("locale", [ENGLISH, CHINESE])
def test_the_line_tells_whose_format_it_is(locale: str) -> None:
    own = say_format(WORDS, locale, make_summary("x"))
    known = say_format(WORDS, locale, make_summary("x", chat_format="Mistral v1"))
    assert "Mistral v1" in known
    assert own
    assert "Mistral" not in own
    assert say_format(WORDS, locale, make_summary("x", has_chat=False)) == ""


@pytest.mark.slow
def test_the_page_shows_the_switch_only_where_the_template_knows_it(
    chromium: Any, url: str, store: TinyStore
) -> None:
    page = chromium.new_page()
    page.goto(f"{url}?tab=chat")
    for source, switch, line in (
        ("thinker", True, "own files"),
        ("formatted", False, "Mistral v1"),
        ("base", False, ""),
    ):
        page.locator(".pill").click()
        page.locator("#model-source input, #model-source textarea").first.fill(source)
        page.locator("#model-open").click()
        page.wait_for_function(
            "text => document.querySelector('#chat-format').textContent.includes(text)", arg=line
        )
        page.locator("#chat-settings-thinking").wait_for(state="visible" if switch else "hidden")
        page.wait_for_function("!document.body.classList.contains('picker-open')")
    page.close()
