"""Conversations with branches: kept by owner, taken along as a file, written again."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.conversation import AnswerSettings, AnswerToken, choose_alternative, stream_answer
from explorer.errors import DataError
from explorer.replay import find_answers, replay_answer
from explorer.talk import Answer, Talk
from explorer.talk_file import read_talk, write_talk
from explorer.talk_store import TalkStore
from tests.components.tiny_chat import build_tiny_chat

HOT = AnswerSettings(temperature=1.2, max_new_tokens=8, seed=5)
TOKEN = AnswerToken(
    7, 0.25, 2, (("a", 0.5), ("b", 0.25)), (9, 7), 1.5, (("a", 0.75), ("b", 0.25)), 2
)


def texts(talk: Talk) -> list[str]:
    return [message.text for message in talk.messages]


def made(text: str = "A", **changes: object) -> Answer:
    return replace(Answer(source="tiny", settings=HOT, tokens=(TOKEN,), finish="stop"), **changes)


def test_branches_are_kept_and_can_be_switched() -> None:
    first = Talk().ask("q").answer("A", made())
    second = first.without_answer().answer("B").ask("more").answer("C")
    assert texts(second) == ["q", "B", "more", "C"]
    assert [second.place(i) for i in range(4)] == [(0, 1), (1, 2), (0, 1), (0, 1)]
    back = second.switched(1, 1)
    assert texts(back) == ["q", "A"]
    assert texts(back.switched(1, 1)) == ["q", "B", "more", "C"]  # to its newest end
    reworded = second.reworded(2, "other")
    assert texts(reworded) == ["q", "B", "other"]
    assert texts(reworded.switched(2, -1)) == ["q", "B", "more", "C"]
    assert len(reworded.nodes) == 6


def test_the_very_same_answer_is_no_second_branch() -> None:
    talk = Talk().ask("q").answer("A", made())
    assert len(talk.without_answer().answer("A", made()).nodes) == 2
    other = made(settings=replace(HOT, seed=6))
    assert len(talk.without_answer().answer("A", other).nodes) == 3


def test_thoughts_are_not_said_again_to_the_model() -> None:
    talk = Talk().ask("q").answer("Hm</think>\n\nA", made(starts_inside=True)).ask("<think>x")
    assert [m["content"] for m in talk.for_model("")] == ["q", "A", "<think>x"]


def test_two_pages_on_one_conversation_lose_nothing(tmp_path: Path) -> None:
    store = TalkStore(tmp_path)
    base = store.save("me", Talk().ask("q").answer("A", made()))
    one, two = base.ask("from one").answer("1"), base.ask("from two").answer("2")
    store.save("me", one)
    both = store.save("me", two)
    assert texts(both) == ["q", "A", "from two", "2"]
    assert both.place(2) == (1, 2)
    assert texts(store.load("me", base.id).switched(2, 1)) == ["q", "A", "from one", "1"]


def test_conversations_are_their_owners_alone(tmp_path: Path) -> None:
    store = TalkStore(tmp_path)
    mine = store.save("me", Talk().ask("secret\nplan " + "x" * 100))
    assert [entry.id for entry in store.list("me")] == [mine.id]
    assert store.list("me")[0].title.startswith("secret plan xxx")
    assert len(store.list("me")[0].title) == 60
    assert store.list("you") == ()
    for act in (store.load, store.delete):
        for name in (mine.id, "../" + mine.id, "", "0" * 16):
            with pytest.raises(DataError, match="another browser"):
                act("you", name)
    assert not [path for path in tmp_path.rglob("*") if "me" in path.name.split("-")]
    assert texts(store.load("me", mine.id)) == texts(mine)
    store.delete("me", mine.id)
    assert store.list("me") == ()


def test_a_damaged_file_and_too_many_conversations_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = TalkStore(tmp_path)
    talk = store.save("me", Talk().ask("q"))
    path = next(tmp_path.rglob("*.json"))
    path.write_text(path.read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(DataError, match="version"):
        store.load("me", talk.id)
    path.write_text("\udcff", errors="surrogateescape")
    assert store.list("me") == ()
    monkeypatch.setattr("explorer.talk_store.MOST_TALKS", 1)
    with pytest.raises(DataError, match="delete some"):
        store.save("me", Talk().ask("another"))


def test_a_file_brings_back_everything_and_only_new_tokens_keep_their_details() -> None:
    server_token = AnswerToken(-1, 0.5, 1, (("x", 0.5),), text="x")
    answer = made(system="S", n_start=1, starts_inside=True, tokens=(TOKEN, server_token))
    talk = Talk().ask("שלום <script> \U0001f600").answer("A", answer)
    talk = talk.without_answer().answer("B", made(finish="length"))
    again = read_talk(write_talk(talk), talk.id)
    assert again == talk
    light = talk.lightened(most=1).nodes.values()
    kept = [t.alternatives != () for node in light if node.answer for t in node.answer.tokens]
    assert kept == [False, False, True]


def test_half_a_character_can_be_saved(tmp_path: Path) -> None:
    store = TalkStore(tmp_path)
    talk = store.save("me", Talk().ask("\ud83d half"))
    assert texts(store.load("me", talk.id)) == ["? half"]


def edited(path: list[object], value: object) -> str:
    whole = json.loads(write_talk(Talk().ask("q").answer("A", made())))
    at = whole
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return json.dumps(whole)


def test_a_file_edited_by_hand_says_what_does_not_fit() -> None:
    answer, token = ["messages", 1], ["messages", 1, "tokens", 0]
    for path, value, place in (
        (["format"], "x", '"format"'),
        (["version"], 2, '"version"'),
        (["messages"], {}, '"messages"'),
        (["messages", 0], 5, r"messages\[0\]"),
        (["leaf"], "nobody", '"leaf"'),
        ([*answer, "id"], "../x", '"id" of messages'),
        ([*answer, "parent"], "nobody", '"parent" of messages'),
        ([*answer, "role"], "tool", '"role" of messages'),
        (["messages", 0, "role"], "assistant", '"role" of messages'),
        ([*answer, "text"], None, '"text" of messages'),
        ([*answer, "finish"], "never", '"finish"'),
        ([*answer, "n_start"], 2, '"n_start"'),
        ([*answer, "settings"], None, r"messages\[1\].settings"),
        ([*answer, "settings", "temperature"], 9, '"temperature"'),
        ([*answer, "settings", "seed"], 0.5, '"seed"'),
        ([*answer, "settings", "thinking"], "yes", '"thinking"'),
        ([*answer, "tokens"], "x", '"tokens"'),
        ([*token, "id"], 1e99, r'"id" of messages\[1\].tokens\[0\]'),
        ([*token, "p"], "NaN", '"p"'),
        ([*token, "rank"], True, '"rank"'),
        ([*token, "alternatives"], [[1, 2]], '"alternatives"'),
        ([*token, "kept"], [["a", 7]], '"p"'),
    ):
        with pytest.raises(DataError, match=place):
            read_talk(edited(path, value))
    for text in ("", "[" * 100_000, "[]", "{}", b"\xff\xfe", "null"):
        with pytest.raises(DataError, match="no conversation"):
            read_talk(text)


def test_an_exported_conversation_replays_to_the_same_tokens() -> None:
    chat, talk = build_tiny_chat(), Talk()
    start: tuple[AnswerToken, ...] = ()
    for question in ("one", "two", "three"):
        talk = talk.ask(question)
        steps = stream_answer(chat, talk.for_model("sys"), HOT, start=start)
        *_, last = steps
        record = made(system="sys", tokens=last.tokens, n_start=len(start), finish=last.finish)
        talk = talk.answer(last.text, record)
        start = (*last.tokens[:2], choose_alternative(last.tokens[2], 3))
    talk = read_talk(write_talk(talk))
    assert find_answers(talk) == (1, 3, 5)
    for index in find_answers(talk):
        *_, replay = replay_answer(chat, talk, index)
        assert (replay.done, replay.total, replay.differs_at) == (8, 8, None)
    file = json.loads(write_talk(talk))
    file["messages"][3]["tokens"][6]["id"] ^= 1
    *_, replay = replay_answer(chat, read_talk(json.dumps(file)), 3)
    assert replay.differs_at == 6
    file["messages"][5]["tokens"].append(file["messages"][5]["tokens"][0])
    *_, replay = replay_answer(chat, read_talk(json.dumps(file)), 5)
    assert replay.differs_at == 8


def test_a_stopped_answer_replays_as_far_as_it_goes() -> None:
    chat, talk = build_tiny_chat(), Talk().ask("one")
    *_, last = stream_answer(chat, talk.for_model(""), HOT)
    talk = talk.answer("x", made(tokens=last.tokens[:3], finish="stopped"))
    steps = list(replay_answer(chat, talk, 1))
    assert [step.done for step in steps] == [1, 2, 3]
    assert steps[-1].differs_at is None
