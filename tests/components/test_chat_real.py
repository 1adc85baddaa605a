"""The Chat tab with the real model, in fresh processes and in a browser."""

import math
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from components.tabs.chat.handlers import EXAMPLE_TEXTS
from explorer.answer_snippet import make_answer_snippet
from explorer.conversation import AnswerSettings, stream_answer
from explorer.replay import find_answers, replay_answer
from explorer.talk import Answer, Talk
from explorer.talk_file import read_talk, write_talk
from tests.components.tiny_chat import TinyStore

ROOT = Path(__file__).parent.parent.parent


def run_snippet(snippet: str) -> tuple[list[tuple[int, float, int]], str]:
    done = subprocess.run(
        [sys.executable, "-c", snippet],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    *rows, text = done.stdout.strip().split("\n")
    numbers = [row.split() for row in rows]
    return [(int(i), float(p), int(r)) for i, p, r in numbers], text


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_the_snippet_gives_the_same_answer_in_a_fresh_process(
    smollm2_file: Path, temperature: float
) -> None:
    from models import load_model

    source = "smollm2-135m-instruct"
    settings = AnswerSettings(temperature=temperature, max_new_tokens=9, seed=11)
    messages = [{"role": "user", "content": EXAMPLE_TEXTS[0]}]
    *_, answer = stream_answer(load_model(source), messages, settings)
    rows, text = run_snippet(make_answer_snippet(source, messages, settings, answer))
    assert [(i, r) for i, _, r in rows] == [(t.id, t.rank) for t in answer.tokens]
    for (_, found, _), token in zip(rows, answer.tokens, strict=True):
        assert math.isclose(found, token.probability, rel_tol=1e-4)
    assert text == answer.text
    if temperature == 0:
        assert text == "The capital of France is Paris."


@pytest.mark.slow
def test_a_conversation_with_the_real_model_replays_from_its_file(smollm2_file: Path) -> None:
    from models import load_model

    source, settings, talk = "smollm2-135m-instruct", AnswerSettings(max_new_tokens=8), Talk()
    loaded = load_model(source)
    for question in (EXAMPLE_TEXTS[0], "And of Spain?"):
        talk = talk.ask(question)
        *_, last = stream_answer(loaded, talk.for_model(""), settings)
        record = Answer(source=source, settings=settings, tokens=last.tokens, finish=last.finish)
        talk = talk.answer(last.text, record)
    talk = read_talk(write_talk(talk))
    for index in find_answers(talk):
        *_, replay = replay_answer(loaded, talk, index)
        assert (replay.done, replay.differs_at) == (replay.total, None)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["after Escape", "while it is written"])
def test_a_token_is_chosen_in_the_page_and_escape_stops(
    chromium: Any, url: str, store: TinyStore, when: str
) -> None:
    page = chromium.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}?tab=chat")
    page.locator("#chat-message textarea").fill("Hello")
    page.keyboard.press("Enter")
    page.locator("#chat-chips .chip").nth(4).wait_for()
    if when == "after Escape":
        page.keyboard.press("Escape")
        page.wait_for_selector("body:not([data-chat=busy])")
    page.locator("#chat-chips .chip").nth(2).click()
    page.locator("#chat-choice .pick").first.click()
    branches = page.locator("#chat-conversation .assistant").last.locator(".branches")
    branches.wait_for()  # it is seen when the new answer has ended
    assert branches.inner_text().split()[1:4] == ["2", "of", "2"]
    page.reload()  # the conversation is there again
    branches.wait_for()
    assert page.locator("#chat-conversation .user .text").last.inner_text() == "Hello"
    assert problems == []
    page.close()


@pytest.mark.slow
def test_markup_in_messages_is_shown_and_never_run(
    chromium: Any, url: str, store: TinyStore
) -> None:
    hard = "<img src=x onerror='window.hit=1'><b>bold</b> ${1+1} **not bold**"
    page = chromium.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"{url}?tab=chat")
    page.locator("#chat-message textarea").fill(hard)
    page.keyboard.press("Enter")
    shown = page.locator("#chat-conversation .user .text").get_by_text("not bold")
    shown.wait_for()
    page.locator("body:not([data-chat=busy]) #chat-conversation .assistant .act").last.wait_for()
    assert shown.inner_text() == hard
    assert shown.locator("*").count() == 0
    assert page.evaluate("window.hit") is None
    page.locator("#chat-working button").first.click()
    page.locator("#chat-working-table td").first.wait_for()
    assert problems == []
    page.close()


@pytest.mark.slow
def test_the_focus_goes_from_send_to_stop_to_the_message(
    chromium: Any, url: str, store: TinyStore
) -> None:
    page, usual = chromium.new_page(), store.after_pass
    page.goto(f"{url}?tab=chat")
    store.after_pass = lambda passes: time.sleep(0.05)  # an answer that can be seen being written
    page.locator("#chat-message textarea").fill("Hello")
    page.locator("#chat-send").click()
    page.wait_for_selector("#chat-stop:focus")
    page.keyboard.press("Enter")
    store.after_pass = usual
    page.wait_for_selector("#chat-message textarea:focus")
    assert page.locator("#chat-stop").count() == 0 or page.locator("#chat-stop").is_hidden()
    page.close()
