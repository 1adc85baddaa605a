"""The Chat tab in Chromium: servers that do badly, answers full of markup, and visitors who do."""

import json
import socket
import threading
import time

import pytest

from explorer.openai_server import OpenAIServer
from tests.explorer.model_server import END, make_delta, serve_models

pytestmark = pytest.mark.slow
SOON_MS = 120_000  # a machine may be busy; nothing here measures time
HARD = (
    "<select><option>one</option></select>",
    "<script>window.hit = 1</script>",
    "<img src=x onerror='window.hit = 1'> ${window.hit = 1}",
    "half \ud83d of one",
    "שלום \u202e abc",
)


@pytest.fixture
def open_page(chromium, url):
    """Opens pages of one browser, or of another; a fault of a script fails the test."""
    faults, contexts = [], []

    def open_one(context=None):
        if context is None:
            context = chromium.new_context(viewport={"width": 1280, "height": 900})
            context.set_default_timeout(SOON_MS)
            contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: (faults.append("a dialog"), dialog.dismiss()))
        page.goto(f"{url}?tab=chat&lang=en")
        page.wait_for_selector('#header .pill[data-state="ready"]')
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert faults == []


def send(page, text):
    page.locator("#chat-message textarea").fill(text)
    page.keyboard.press("Enter")


def new_talk(page):
    page.wait_for_selector("body[data-chat=idle]")
    page.locator("#chat-new").click()
    page.locator("#chat-conversation .greeting:visible").wait_for()


def use_server(page, address, wait_for="answers"):
    if not page.locator("#chat-server-url").is_visible():
        page.locator("#chat-server > button").click()
    page.locator("#chat-server-url input, #chat-server-url textarea").fill(address)
    page.locator("#chat-server-find").click()
    page.get_by_text(wait_for).first.wait_for()


def answers(page):
    return page.locator("#chat-conversation .assistant .text").all_inner_texts()


def test_what_a_server_does_wrong_is_said_and_nothing_is_lost(open_page, store, monkeypatch):
    monkeypatch.setitem(OpenAIServer.__init__.__kwdefaults__, "silence_s", 1.0)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    refusal = [b'{"error": {"message": "no such thing"}}']
    with serve_models() as plays:
        page = open_page()
        use_server(page, closed, "cannot be reached")
        page.wait_for_function(  # the fields are far below the card
            "() => { const {top, bottom} = document.querySelector('#chat-card .card')"
            ".getBoundingClientRect(); return bottom > 0 && top < innerHeight; }"
        )
        use_server(page, plays.url)
        new_talk(page)
        for status, pieces, told in (
            (401, refusal, "wants a key, or refuses this one (no such thing)"),
            (404, refusal, "refuses with status 404: no such thing"),
            (200, [b"<html><body>Not me</body></html>"], "not as an OpenAI-compatible server"),
            (200, [3.0, END], "was not done after 1 seconds"),
            (200, [], "broke off in the middle"),
        ):
            plays.status, plays.pieces = status, pieces
            send(page, "Capital?")
            page.get_by_text(told).first.wait_for()
            page.wait_for_selector("body[data-chat=idle]")
            page.locator("#chat-send").wait_for()
            assert page.locator("#chat-message textarea").input_value() == "Capital?"
            assert page.locator("#chat-conversation .message").count() == 0
        plays.pieces = [make_delta("Half an answ")]  # and then it hangs up
        send(page, "Capital?")
        page.get_by_text("Cut: the server failed in the middle").wait_for()
        assert answers(page) == ["Half an answ"]
        assert page.get_by_text("broke off in the middle").first.is_visible()
        plays.refuses_log_probabilities, plays.pieces = True, [make_delta("Paris"), END]
        send(page, "Again?")
        page.get_by_text("This server gives no probabilities").wait_for()
        assert answers(page) == ["Half an answ", "Paris"]
        page.reload()
        page.locator("#chat-conversation .assistant").nth(1).wait_for()
        assert answers(page) == ["Half an answ", "Paris"]
    assert store.passes == 0  # the model here was never asked instead


def test_an_answer_full_of_markup_is_text(open_page, store):
    with serve_models() as plays:
        plays.pieces = []
        for text in HARD:
            content = json.dumps(text + "\n\n")
            entry = f'{{"token": {content}, "logprob": -0.5, "top_logprobs": []}}'
            entry = entry.replace("[]", f'[{{"token": {content}, "logprob": -0.5}}]')
            choice = f'{{"delta": {{"content": {content}}}, "logprobs": {{"content": [{entry}]}}}}'
            plays.pieces.append(f'data: {{"choices": [{choice}]}}\n\n'.encode())
        plays.pieces.append(END)
        page = open_page()
        use_server(page, plays.url)
        new_talk(page)
        send(page, "Say it")
        page.locator("body[data-chat=idle] #chat-conversation .assistant .act").first.wait_for()
        told = page.locator("#chat-conversation .assistant .text p")
        assert told.all_inner_texts() == [text.replace("\ud83d", "\ufffd") for text in HARD]
        sides = told.evaluate_all("all => all.map(one => getComputedStyle(one).direction)")
        assert sides == ["ltr"] * 4 + ["rtl"]
        page.locator("#chat-chips .chip").nth(4).wait_for()
        for index in range(len(HARD)):
            # not by the pointer: the read-out of the one above may lie over it
            page.locator("#chat-chips .chip").nth(index).dispatch_event("click")
            page.wait_for_function(
                "t => document.querySelector('#chat-choice').innerText.includes(t)",
                arg=HARD[index].split(" ")[0],
            )
        page.locator("#chat-working button").first.click()
        page.locator("#chat-working-table td").first.wait_for()
        places = ["#chat-conversation", "#chat-chips", "#chat-choice", "#chat-working-table"]
        for place in places:
            assert page.locator(place).locator("select, script, img, option").count() == 0
        assert page.evaluate("window.hit") is None


def test_a_reload_in_the_middle_loses_nothing_and_new_is_new(open_page, store):
    store.after_pass = lambda passes: time.sleep(0.05)
    page = open_page()
    new_talk(page)
    send(page, "question of the reload")
    page.locator("#chat-chips .chip").nth(5).wait_for()
    page.reload()
    mine = page.locator("#chat-conversation .user .text").get_by_text("question of the reload")
    mine.wait_for()
    page.locator("#chat-conversation .assistant").wait_for()
    assert len(answers(page)[0]) > 0
    page.get_by_text("Stopped before its end.").wait_for()
    page.wait_for_selector("body[data-chat=idle]")
    send(page, "second question")
    page.wait_for_selector("body[data-chat=busy]")  # the chips of the first answer are still there
    page.evaluate("document.querySelector('#chat-new').click()")  # no pointer gets there
    page.locator("#chat-conversation .greeting:visible").wait_for()
    page.wait_for_timeout(2_000)
    assert page.locator("#chat-conversation .message").count() == 0
    assert page.locator("#chat-send").is_visible()


def test_a_reload_before_the_first_word_shows_the_question_and_offers_an_answer(open_page, store):
    go_on = threading.Event()
    store.after_pass = lambda passes: go_on.wait(60)
    page = open_page()
    new_talk(page)
    send(page, "asked just now")
    page.locator("#chat-conversation .user").get_by_text("asked just now").wait_for()
    page.reload()
    page.locator("#chat-conversation .user").get_by_text("asked just now").wait_for()
    answer = page.locator("#chat-conversation").get_by_role("button", name="Answer", exact=True)
    answer.wait_for()
    go_on.set()
    answer.click()
    page.locator("body[data-chat=idle] #chat-conversation .assistant .act").first.wait_for()
    assert page.locator("#chat-conversation .user").count() == 1
    assert len(answers(page)[0]) > 0


def test_two_tabs_on_one_conversation_keep_what_both_said(open_page, store):
    page = open_page()
    new_talk(page)
    send(page, "both know this")
    page.locator("body[data-chat=idle] #chat-conversation .assistant .act").first.wait_for()
    other = open_page(page.context)
    other.locator("#chat-conversation .user").get_by_text("both know this").wait_for()
    other.wait_for_selector("body[data-chat=idle]")
    store.after_pass = lambda passes: time.sleep(0.01)
    send(page, "from the first")
    send(other, "from the second")
    for one, text in ((page, "from the first"), (other, "from the second")):
        one.locator("#chat-conversation .assistant").nth(1).wait_for()
        one.wait_for_selector("body[data-chat=idle]")
        assert text in one.locator("#chat-conversation .user .text").all_inner_texts()
    page.reload()
    page.locator("#chat-conversation .branches").first.wait_for()
    users = "#chat-conversation .user .text"
    seen = {page.locator(users).nth(1).inner_text()}
    page.locator("#chat-conversation .user .branches .step").last.click()
    page.wait_for_function(
        "([name, before]) => document.querySelectorAll(name)[1]?.innerText !== before",
        arg=[users, *seen],
    )
    seen.add(page.locator(users).nth(1).inner_text())
    assert seen == {"from the first", "from the second"}


def test_a_file_that_was_edited_by_hand(open_page, store, tmp_path):
    page = open_page()
    new_talk(page)
    send(page, "to be saved")
    page.locator("body[data-chat=idle] #chat-conversation .assistant .act").first.wait_for()
    with page.expect_download() as saved:
        page.locator("#chat-export").click()
    file = tmp_path / "talk.json"
    saved.value.save_as(file)
    whole = json.loads(file.read_text(encoding="utf-8"))

    def load(change, told):
        edited = json.loads(json.dumps(whole))
        change(edited)
        file.write_text(json.dumps(edited), encoding="utf-8")
        with page.expect_file_chooser() as chooser:
            page.locator("#chat-import").click()
        chooser.value.set_files(str(file))
        page.get_by_text(told).first.wait_for()

    load(lambda f: f["messages"][1].update(parent="nobody"), "names no message before it")
    load(lambda f: f["messages"][1]["settings"].update(temperature="hot"), "temperature")
    load(lambda f: f["messages"][1]["tokens"][0].update(id=10**9), "conversation")
    assert page.locator("#chat-conversation .user .text").inner_text() == "to be saved"
    load(lambda f: f["messages"][0].update(text=HARD[2]), "The conversation is open")
    page.wait_for_function(
        "t => document.querySelector('#chat-conversation .user .text').innerText === t", arg=HARD[2]
    )
    assert page.evaluate("window.hit") is None
