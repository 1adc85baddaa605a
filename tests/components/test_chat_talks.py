"""Conversations through the API: branches, files, replay, several visitors; and servers."""

import json
import threading
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gradio_client import Client

from components.routes import MatrixRoutes
from components.tabs.chat.answer_view import make_chips
from components.tabs.chat.answering import AnswerWriter, Parts
from components.tabs.chat.asking import Asking
from components.tabs.chat.handlers import work_of
from components.tabs.chat.talk_handlers import TalkHandlers
from components.tabs.chat.talk_view import MOST_SHOWN_CHARACTERS, make_conversation
from components.text import load_words
from components.token_units import MOST_CHIPS
from explorer.conversation import AnswerSettings, AnswerToken
from explorer.stop_switches import StopSwitches
from explorer.talk import MOST_DETAILED, Answer, Talk
from explorer.talk_file import write_talk
from explorer.talk_store import TalkStore
from tests.components.test_chat_tab import LONG_S, RESULTS, ask, said, units_of
from tests.components.tiny_chat import ByteTokenizer, TinyStore
from tests.explorer.model_server import END, make_delta, serve_models

HOT = {"max_new_tokens": 8, "temperature": 1.2, "seed": 3}


@pytest.fixture
def client(url: str) -> Client:
    return Client(url, verbose=False)


def call(client: Client, api_name: str, **named: Any) -> SimpleNamespace:
    values = client.predict(**named, api_name=api_name)
    return SimpleNamespace(**dict(zip(RESULTS, values, strict=True)))


def ids_of(result: SimpleNamespace) -> list[int]:
    return [id_ for unit in units_of(result.chips) for id_ in unit["ids"]]


def test_another_token_makes_a_branch_and_both_stay(client: Client, store: TinyStore) -> None:
    first = ask(client, "hi", **HOT)
    assert first.prompt["total"] == first.status["prompt"]
    assert first.view["messages"][1]["tokens"] is True
    branch = call(client, "/chat_branch", index=-1, token=2, alternative=4, **HOT)
    assert ids_of(branch)[:2] == ids_of(first)[:2]
    assert ids_of(branch)[2] != ids_of(first)[2]
    assert branch.view["messages"][1]["branch"] == [1, 2]
    assert ["known already", "6 tokens"] in branch.status["facts"]
    back = call(client, "/chat_switch", index=1, by=-1)
    assert said(back) == said(first)
    assert ids_of(back) == ids_of(first)
    wrong = call(client, "/chat_branch", index=0, token=0, alternative=0, **HOT)
    assert wrong.card["kind"] == "error"


def test_another_token_is_chosen_while_the_answer_is_written(
    client: Client, store: TinyStore
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def hold(passes: int) -> None:
        if passes == 6:
            reached.set()
            go_on.wait(LONG_S)

    store.after_pass = hold
    first = client.submit(message="hi", api_name="/chat_send", **HOT)
    assert reached.wait(LONG_S)
    other = client.submit(index=-1, token=0, alternative=4, api_name="/chat_branch", **HOT)
    next(iter(other))  # it waits for the model
    go_on.set()
    first.result(LONG_S)
    branch = SimpleNamespace(**dict(zip(RESULTS, other.result(LONG_S), strict=True)))
    assert branch.view["messages"][1]["branch"] == [1, 2]  # what was written stays the other one
    assert len(ids_of(branch)) == HOT["max_new_tokens"]
    back = call(client, "/chat_switch", index=1, by=-1)
    assert said(back)[0] == ("user", "hi")
    assert 1 <= len(ids_of(back)) <= 6


@pytest.mark.slow
def test_a_conversation_goes_out_as_a_file_and_replays(
    client: Client, url: str, served_routes: MatrixRoutes
) -> None:
    first = ask(client, "hi", system="sys", **HOT)
    call(client, "/chat_branch", index=-1, token=1, alternative=2, **HOT)
    saved = client.predict(api_name="/chat_save")[0]
    text = served_routes.find(saved["id"]).content.decode()
    file = json.loads(text)
    assert [m["settings"]["seed"] for m in file["messages"][1:]] == [3, 3]
    assert file["messages"][1]["system"] == "sys"
    other = Client(url, verbose=False)
    opened = call(other, "/chat_load", text=text)
    assert opened.view["messages"][0]["text"] == "hi"
    assert said(call(other, "/chat_switch", index=1, by=1)) == said(first)
    replayed = call(other, "/chat_replay")
    assert replayed.hint["title"] == "All came out the same"
    file["messages"][1]["tokens"][5]["id"] ^= 1
    call(other, "/chat_load", text=json.dumps(file))
    call(other, "/chat_switch", index=1, by=1)
    assert "token 5" in call(other, "/chat_replay").hint["text"]
    broken = call(other, "/chat_load", text=text[:-9])
    assert broken.card["kind"] == "error"


def test_conversations_are_listed_opened_and_deleted(client: Client) -> None:
    name = f"question {id(client)}"
    listed = ask(client, name, **HOT).talks
    chosen = listed["value"]
    assert [name, chosen] in [list(choice) for choice in listed["choices"]]
    client.predict(api_name="/chat_clear")
    opened = call(client, "/chat_open", name=chosen)
    assert [text for _, text in said(opened)][0] == name
    assert len(ids_of(opened)) == 8
    gone = call(client, "/chat_delete")
    assert name not in [choice[0] for choice in gone.talks["choices"]]
    assert call(client, "/chat_open", name=chosen).card["kind"] == "error"


def test_a_server_answers_with_its_probabilities(client: Client, store: TinyStore) -> None:
    with serve_models() as plays:
        plays.pieces = [make_delta("Par", log_probability=-0.5), make_delta("is"), END]
        found = client.predict(url=plays.url, key="", api_name="/chat_server_models")
        assert found[0]["choices"] == [["big", "big"], ["bigger", "bigger"]]
        result = ask(client, "Capital?", **HOT)
        assert said(result) == [("user", "Capital?"), ("assistant", "Paris")]
        assert units_of(result.chips)[0]["p"] == pytest.approx(0.606531)
        assert store.passes == 0
        plays.pieces = [b"<html>"]
        assert "OpenAI" in ask(client, "Again?", **HOT).card["text"]
        plays.pieces = [make_delta("Rome"), END]
        answer = client.predict("Hi", model="big", server=plays.url, api_name="/chat")
        assert answer["text"] == "Rome"


def test_a_server_without_probabilities_answers_all_the_same(client: Client) -> None:
    with serve_models() as plays:
        plays.refuses_log_probabilities = True
        plays.pieces = [make_delta("Par"), 0.3, make_delta("is"), END]
        client.predict(url=plays.url, key="", api_name="/chat_server_models")
        result = ask(client, "Capital?", **HOT)
        assert result.card is None
        assert said(result) == [("user", "Capital?"), ("assistant", "Paris")]
        assert result.status["notes"] == [
            "This server gives no probabilities, so there are no tokens to look at."
        ]


def test_what_a_server_said_before_it_failed_is_kept(client: Client) -> None:
    with serve_models() as plays:
        plays.pieces = [make_delta("Half an answ")]
        client.predict(url=plays.url, key="", api_name="/chat_server_models")
        result = ask(client, "Capital?", **HOT)
        assert said(result)[1] == ("assistant", "Half an answ")
        assert "broke off" in result.card["text"]


def test_two_models_are_asked_at_once(client: Client, store: TinyStore) -> None:
    how = {"left": "", "right": "base", "max_new_tokens": 6}
    both = client.predict("hi", **how, api_name="/chat_side_by_side")
    alone = client.predict("hi", max_new_tokens=6, temperature=0, api_name="/chat")
    assert both["texts"][0] == alone["text"]
    assert len(both["ids"][1]) == 6
    shown = client.predict("hi", **how, api_name="/chat_side")
    assert [[i for unit in units_of(chips) for i in unit["ids"]] for chips in shown[:2]] == both[
        "ids"
    ]


def test_thoughts_are_drawn_apart_also_while_they_grow() -> None:
    def draw(text: str, *, busy: bool, inside: bool = False) -> dict[str, Any]:
        answer = Answer(source="x", settings=AnswerSettings(), starts_inside=inside)
        talk = Talk().ask("q").answer(text, answer)
        return make_conversation(talk, busy=busy)["messages"][1]

    growing = draw("<think>Hm</th", busy=True)
    assert (growing["thought"], growing["thinks"], growing["text"]) == ("Hm", True, "")
    done = draw("Hm</think>Paris", busy=False, inside=True)
    assert (done["thought"], done["thinks"], done["text"]) == ("Hm", False, "Paris")
    assert "thought" not in draw("a < b", busy=False)


def test_a_very_long_answer_is_drawn_in_part_and_kept_whole() -> None:
    token = AnswerToken(3 + 97, 0.5, 1, (("a", 0.5),), (3 + 97,))
    tokens = (token,) * 10_000
    assert len(make_chips(ByteTokenizer(), tokens).splitlines()) == MOST_CHIPS
    record = Answer(source="x", settings=AnswerSettings(), tokens=tokens)
    talk = Talk().ask("q").answer("a" * 30_000, record).lightened()
    assert make_conversation(talk)["messages"][1]["more"] == 30_000 - MOST_SHOWN_CHARACTERS
    kept = talk.messages[1].answer.tokens
    assert len(kept) == 10_000
    assert sum(t.alternatives != () for t in kept) == MOST_DETAILED
    assert len(write_talk(talk)) < 3_000_000


def test_the_last_conversation_comes_back_unless_a_new_one_has_begun(tmp_path: Path) -> None:
    talks, stops = TalkStore(tmp_path), StopSwitches()
    kept = talks.save("visitor", Talk().ask("before"))
    writer = AnswerWriter(None, None)
    answers = SimpleNamespace(open_talk=lambda talk, *_: {"talk": talk}, chosen=[], writer=writer)
    ctx = SimpleNamespace(talks=talks, stops=stops, owner_of=lambda owner, _: owner)
    handlers = TalkHandlers(ctx, None, answers, None)
    handlers._look = lambda *_: {}
    request = SimpleNamespace(session_hash="page")
    assert handlers.restore("visitor", Talk(), request)["talk"].id == kept.id
    asked = Talk().ask("now")
    writer._so_far[asked.leaf] = "visitor", asked  # it is being answered
    assert handlers.restore("visitor", Talk(), request)["talk"] is asked
    assert handlers.restore("other", Talk(), request)["talk"] == Talk()
    with stops.armed(work_of(request)):
        assert handlers.restore("visitor", Talk(), request) == {}
    assert handlers.open("", "visitor", request)["talk"] == Talk()  # "New", or one of the list
    assert handlers.restore("visitor", Talk(), request) == {}


def test_a_page_that_closes_before_the_first_word_keeps_the_question(tmp_path: Path) -> None:
    names = {field.name: field.name for field in fields(Parts)}
    working = SimpleNamespace(facts="facts", table="table", exports="exports")
    parts = SimpleNamespace(**{**names, "working": working})
    ctx = SimpleNamespace(talks=TalkStore(tmp_path), stops=StopSwitches(), words=load_words())
    asking = Asking("work", "model", "visitor", "", AnswerSettings(), "en")
    writer = AnswerWriter(ctx, parts)
    writing = writer.answer(Talk(), Talk().ask("hi"), asking, {})
    next(writing)
    # a reload is faster than the end of the page that it closes
    assert writer.find_asked("visitor").messages[0].text == "hi"
    assert writer.find_asked("somebody else") is None
    writing.close()
    assert writer.find_asked("visitor") is None
    [entry] = ctx.talks.list("visitor")
    assert [m.text for m in ctx.talks.load("visitor", entry.id).messages] == ["hi"]
