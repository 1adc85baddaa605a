"""The Chat tab through its API, with a tiny model that writes forever, and through a browser."""

import json
import math
import threading
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest
import torch
from gradio_client import Client

from components.context import Settings
from components.forms import build_form, read_form
from components.shell import build_page
from components.tabs.chat.answer_view import make_chips
from components.tabs.chat.answering import Pace
from components.tabs.chat.talk_view import MOST_SHOWN_CHARACTERS, make_conversation
from components.text import load_words
from explorer.answer_units import compute_answer_units
from explorer.conversation import AnswerSettings, AnswerToken, encode_prompt, stream_answer
from explorer.talk import Talk
from tests.components.tiny_chat import ByteTokenizer, TinyStore, build_tiny_chat

ROOT = Path(__file__).parent.parent.parent
RESULTS = (
    "view",
    "status",
    "chips",
    "facts",
    "table",
    "exports",
    "message",
    "hint",
    "seed",
    "choice",
    "prompt",
    "talks",
    "card",
)
LONG_S = 30  # only ever waited for when something is broken


@pytest.fixture
def client(url: str) -> Client:
    return Client(url, verbose=False)


def ask(client: Client, message: str, api_name: str = "/chat_send", **how: Any) -> SimpleNamespace:
    """The last update of an answer, by the names of its parts."""
    named = {"max_new_tokens": 12, **how}
    if api_name == "/chat_send":
        named["message"] = message
    values = client.predict(**named, api_name=api_name)
    return SimpleNamespace(**dict(zip(RESULTS, values, strict=True)))


def units_of(chips: str) -> list[dict[str, Any]]:
    """The chips travel as the JSON of one unit a line."""
    return [json.loads(line) for line in chips.splitlines()]


def said(result: SimpleNamespace) -> list[tuple[str, str]]:
    return [(m["role"], m["text"]) for m in result.view["messages"]]


# --- answers --------------------------------------------------------------------------------------


def test_an_answer_is_what_the_model_writes_and_its_numbers_agree(
    client: Client, store: TinyStore
) -> None:
    result = ask(client, "hi", temperature=0)
    *_, last = stream_answer(
        store.usual,
        [{"role": "user", "content": "hi"}],
        AnswerSettings(temperature=0.0, max_new_tokens=12),
    )
    assert said(result) == [("user", "hi"), ("assistant", last.text)]
    assert result.status["text"].startswith("Cut: the longest answer")
    assert (result.status["prompt"], result.status["answer"]) == (4, 12)
    assert [i for unit in units_of(result.chips) for i in unit["ids"]] == [
        t.id for t in last.tokens
    ]
    rows = result.table["cells"]
    assert [int(row[1]) for row in rows] == [t.id for t in last.tokens]
    assert [row[2] for row in rows] == pytest.approx([t.probability for t in last.tokens])
    assert result.facts["shape"] == [12, store.usual.config.vocab_size]
    assert result.card is None


def test_the_probabilities_are_the_softmax_of_the_logits(client: Client, store: TinyStore) -> None:
    result = ask(client, "hi", temperature=0)
    prompt = encode_prompt(store.usual, [{"role": "user", "content": "hi"}])
    ids = [int(row[1]) for row in result.table["cells"]]
    logits = store.usual.model(torch.tensor([prompt + ids]))[0, len(prompt) - 1 : -1]
    shares = torch.exp(logits) / torch.exp(logits).sum(-1, keepdim=True)
    expected = shares[torch.arange(len(ids)), torch.tensor(ids)].tolist()
    assert [row[2] for row in result.table["cells"]] == pytest.approx(expected, rel=1e-4)


def test_the_model_gets_the_whole_conversation_and_the_system_prompt(client: Client) -> None:
    first = ask(client, "one", system="be brief")
    second = ask(client, "two", system="be brief")
    assert [role for role, _ in said(second)] == ["user", "assistant", "user", "assistant"]
    answer = said(first)[1][1]
    # <|user|> + text for each turn, <|model|> + answer, <|model|> at the end
    n_bytes = len("be brief") + len("one") + len(answer.encode()) + len("two")
    assert second.status["prompt"] == n_bytes + 5


def test_the_same_seed_writes_the_same_answer_and_the_next_seed_another(client: Client) -> None:
    first = ask(client, "hi", seed=7)
    again = ask(client, "", "/chat_regenerate", seed=7)
    assert said(again) == said(first)
    other = ask(client, "", "/chat_another", seed=7)
    assert len(said(other)) == 2
    assert said(other) != said(first)
    assert said(ask(client, "", "/chat_regenerate", seed=8)) == said(other)


def test_another_answer_at_temperature_zero_is_explained(client: Client) -> None:
    ask(client, "hi", temperature=0)
    assert "temperature" in ask(client, "", "/chat_another", temperature=0).hint["title"]


def test_editing_a_message_drops_what_came_after_it(client: Client) -> None:
    ask(client, "one")
    ask(client, "two")
    result = ask(client, "", "/chat_edit", index=0, text="uno")
    assert said(result)[0] == ("user", "uno")
    assert len(said(result)) == 2
    wrong = ask(client, "", "/chat_edit", index=1, text="not mine")
    assert wrong.card["kind"] == "error"


def test_an_empty_message_is_not_sent(client: Client, store: TinyStore) -> None:
    result = ask(client, " \n\t ")
    assert result.hint["kind"] == "hint"
    assert store.passes == 0


def test_a_new_conversation_is_empty(client: Client) -> None:
    ask(client, "one")
    assert client.predict(api_name="/chat_clear")[0]["messages"] == []
    assert len(said(ask(client, "two"))) == 2


def test_settings_out_of_range_are_moved_into_it(client: Client) -> None:
    wrong = {"temperature": -4, "top_k": -1, "top_p": 9, "min_p": 7, "seed": -5}
    answer = client.predict(message="hi", max_new_tokens=0, **wrong, api_name="/chat")
    assert len(answer["tokens"]) == 1


def test_what_is_no_number_counts_as_the_default() -> None:
    usual = AnswerSettings()
    assert read_form(AnswerSettings, {"temperature": math.nan, "top_k": None, "seed": "x"}) == usual
    huge = read_form(
        AnswerSettings, {"temperature": math.inf, "top_k": 1e300, "max_new_tokens": 9.9}
    )
    assert (huge.temperature, huge.top_k, huge.max_new_tokens) == (2.0, 200, 9)
    assert isinstance(huge.top_k, int)


def test_every_setting_has_its_words_and_its_control() -> None:
    with gr.Blocks():
        form = build_form(load_words(), AnswerSettings, prefix="chat.settings", elem_id="s")
    assert list(form.controls) == [field.name for field in fields(AnswerSettings)]
    assert isinstance(form.controls["seed"], gr.Number)


# --- stopping -------------------------------------------------------------------------------------


def test_stop_acts_within_one_token(client: Client, store: TinyStore) -> None:
    """The button is pressed during the sixth pass; no seventh begins."""

    def press(passes: int) -> None:
        if passes == 6:
            client.predict(api_name="/chat_stop")

    store.after_pass = press
    result = ask(client, "hi", max_new_tokens=150)
    assert result.status["text"] == "Stopped by you."
    assert store.passes <= 7
    assert 5 <= result.status["answer"] <= 6
    assert len(said(result)) == 2


def test_waiting_for_a_model_can_be_stopped_and_nothing_is_lost(
    client: Client, store: TinyStore
) -> None:
    client.predict("slow", api_name="/open_model")
    job = client.submit(message="hi", max_new_tokens=12, api_name="/chat_send")
    assert store.slow_arrived.wait(LONG_S)
    client.predict(api_name="/chat_stop")
    result = SimpleNamespace(**dict(zip(RESULTS, job.result(LONG_S), strict=True)))
    assert result.card is None
    assert job.outputs()[1][1]["text"].startswith("Loading")
    assert result.status["text"] == "Stopped before the first token."
    assert result.message == "hi"
    store.slow_let_go.set()
    assert len(said(ask(client, "hi"))) == 2


def test_one_visitor_cannot_stop_another_and_both_go_on_at_once(url: str, store: TinyStore) -> None:
    one, two = Client(url, verbose=False), Client(url, verbose=False)
    pressed, second_began = threading.Event(), threading.Event()

    def press(passes: int) -> None:
        if passes == 3:  # the second visitor, who has nothing running yet
            two.predict(api_name="/chat_stop")
            pressed.set()
        if passes == 6:  # the first answer waits here until both are there
            second_began.wait(LONG_S)

    store.after_pass = press
    first = one.submit(message="a", max_new_tokens=40, api_name="/chat_send")
    assert pressed.wait(LONG_S)
    second = two.submit(message="b", max_new_tokens=40, api_name="/chat_send")
    second_began.set()
    for job, text in ((first, "a"), (second, "b")):
        view, status = job.result(LONG_S)[:2]
        assert view["messages"][0]["text"] == text
        assert status["answer"] == 40


# --- models and errors ----------------------------------------------------------------------------


def test_the_conversation_outlives_a_change_of_model(client: Client) -> None:
    ask(client, "one")
    client.predict("base", api_name="/open_model")
    result = ask(client, "two")
    assert len(said(result)) == 4
    assert result.status["prompt"] > 4


@pytest.mark.parametrize("size", [1_000, 1_000_000])
def test_a_prompt_longer_than_the_context_is_refused_and_goes_back(
    client: Client, size: int
) -> None:
    job = client.submit(message="x" * size, max_new_tokens=12, api_name="/chat_send")
    card = job.result(LONG_S)[-1]
    assert card["kind"] == "error"
    assert f"{size + 2} tokens" in card["text"]
    assert len(job.outputs()[-1][6]) == size
    assert len(str(job.outputs()[0][0])) < 2 * MOST_SHOWN_CHARACTERS
    assert len(said(ask(client, "short"))) == 2


def test_a_template_that_refuses_and_a_fault_of_ours_are_cards(client: Client) -> None:
    assert "no such talk" in ask(client, "hi", system="refuse").card["text"]  # joined, too
    client.predict("broken", api_name="/open_model")
    assert ask(client, "hi").card["kind"] == "error"
    client.predict("fine", api_name="/open_model")
    assert ask(client, "hi").card is None


@pytest.mark.parametrize("text", ["<script>", "\0", "שלום \u202e abc", "<|end|><|model|>", "${1}"])
def test_hard_texts_stay_as_they_are(client: Client, text: str) -> None:
    result = ask(client, text)
    assert said(result)[0] == ("user", text)
    assert result.status["prompt"] == len(text.encode()) + 2  # special tokens typed are only text


# --- for programs ---------------------------------------------------------------------------------


def test_a_program_gets_text_and_tokens(client: Client) -> None:
    answer = client.predict(message="hi", max_new_tokens=5, temperature=0, api_name="/chat")
    assert answer["finish"] == "length"
    assert len(answer["tokens"]) == 5
    assert set(answer["tokens"][0]) == {field.name for field in fields(AnswerToken)}


# --- the parts ------------------------------------------------------------------------------------


def test_a_unit_of_several_tokens_multiplies_their_probabilities() -> None:
    tokens = [
        AnswerToken(3 + byte, share, rank, (("first", 0.6),) if rank == 1 else (("no", 0.1),))
        for byte, share, rank in zip("é!".encode(), (0.5, 0.25, 0.75), (1, 4, 2), strict=True)
    ]
    accent, mark = compute_answer_units(ByteTokenizer(), tokens)
    assert (accent.unit.text, accent.probability, accent.rank) == ("é", 0.125, 4)
    assert accent.alternatives == (("first", 0.6),)
    assert (mark.unit.text, mark.probability, mark.rank) == ("!", 0.75, 2)
    chip = units_of(make_chips(ByteTokenizer(), tokens))[0]
    assert (chip["t"], chip["ids"], chip["p"]) == ("é", [3 + 0xC3, 3 + 0xA9], 0.125)


def test_only_so_much_of_a_conversation_is_drawn() -> None:
    talk = Talk()
    for number in range(150):
        talk = talk.ask(f"q{number}").answer("a" * (MOST_SHOWN_CHARACTERS + 5))
    view = make_conversation(talk)
    assert (view["earlier"], view["messages"][0]["index"]) == (100, 100)
    assert view["messages"][1]["more"] == 5
    assert len(talk.for_model("")) == 300


def test_a_pace_lets_through_what_is_due() -> None:
    times = iter([0.0, 0.05, 0.1, 0.15, 0.3])
    pace = Pace(0.1, clock=lambda: next(times))
    assert [pace.due() for _ in range(5)] == [True, False, True, False, True]


def test_a_base_model_goes_on_with_the_text_and_the_page_says_so(store: TinyStore) -> None:
    base = build_tiny_chat(chat=False)
    assert encode_prompt(base, [{"role": "user", "content": "ab"}]) == [3 + 97, 3 + 98]
    demo, _ = build_page(store, Settings())
    on_model = next(
        f.fn for f in demo.fns.values() if getattr(f.fn, "__qualname__", "") == "Handlers.model"
    )
    told = [on_model(None, model, None, None) for model in ("base", "usual", None)]
    hints = [
        next(value for part, value in updates.items() if part.elem_id == "chat-hint")
        for updates in told
    ]
    assert hints[0]["text"].startswith("base is a base model")
    assert hints[1:] == [None, None]
