"""The client of OpenAI-compatible servers, against servers that do well, and badly."""

import json
import socket
from collections.abc import Iterator

import pytest

from explorer.errors import ServerError, Stopped
from explorer.openai_server import ChatRequest, OpenAIServer, ServerRule, find_server_rule
from explorer.openai_wire import ServerPiece
from tests.explorer.model_server import END, ModelServer, make_delta, serve_models

HELLO = [{"role": "user", "content": "Capital of France?"}]


@pytest.fixture(scope="module")
def served() -> Iterator[ModelServer]:
    with serve_models() as plays:
        yield plays


@pytest.fixture
def plays(served: ModelServer) -> ModelServer:
    served.begin()
    return served


def ask(plays: ModelServer, **how: object) -> list[ServerPiece]:
    server = OpenAIServer(plays.url, silence_s=0.3)
    return list(server.stream_chat(ChatRequest(model="big", messages=HELLO, **how)))


def problem_of(plays: ModelServer) -> ServerError:
    with pytest.raises(ServerError) as caught:
        ask(plays)
    return caught.value


def test_an_answer_comes_with_its_log_probabilities(plays: ModelServer) -> None:
    plays.pieces = [make_delta("Par", log_probability=-0.25), make_delta("is"), END]
    first, second, last = ask(plays, temperature=0.5, max_tokens=9, seed=4)
    assert (first.text, second.text, last.text) == ("Par", "is", "")
    assert [piece.finish for piece in (first, second, last)] == [None, None, "stop"]
    assert first.tokens[0].log_probability == -0.25
    assert first.tokens[0].alternatives == (("Par", -0.25), ("other", -1.25))
    assert second.tokens == ()
    asked = plays.asked[0]
    assert (asked["model"], asked["messages"], asked["stream"]) == ("big", HELLO, True)
    assert (asked["temperature"], asked["max_tokens"], asked["seed"]) == (0.5, 9, 4)
    assert (asked["logprobs"], asked["top_logprobs"]) == (True, 10)


def test_its_models_are_listed_and_the_key_is_sent(plays: ModelServer) -> None:
    assert OpenAIServer(plays.url + "/", key=" secret ").models() == ("big", "bigger")
    assert OpenAIServer(plays.url).models() == ("big", "bigger")
    assert plays.keys == ["Bearer secret", None]


def test_the_operators_key_goes_to_the_operators_servers_only(plays: ModelServer) -> None:
    rule = find_server_rule(True, {"GLASSBOX_SERVERS": plays.url, "GLASSBOX_SERVER_KEY": "mine"})
    assert "mine" not in repr(rule)
    OpenAIServer(plays.url, rule=rule).models()
    open_rule = find_server_rule(False, {"GLASSBOX_SERVER_KEY": "mine"})
    OpenAIServer(plays.url, rule=open_rule).models()
    assert plays.keys == ["Bearer mine", None]


def test_a_public_host_calls_only_what_its_operator_named(plays: ModelServer) -> None:
    for rule in (ServerRule(public=True), find_server_rule(True, {"GLASSBOX_SERVERS": "a:1/v1"})):
        with pytest.raises(ServerError, match="GLASSBOX_SERVERS"):
            OpenAIServer(plays.url, rule=rule)
    named = find_server_rule(True, {"GLASSBOX_SERVERS": f"a:1/v1, {plays.url}/"})
    assert OpenAIServer(plays.url, rule=named).models() == ("big", "bigger")
    assert len(plays.keys) == 1


def test_a_redirect_is_not_followed(plays: ModelServer) -> None:
    plays.status, plays.headers = 307, {"Location": f"{plays.url}/models"}
    assert problem_of(plays).code == "server-refused"
    assert len(plays.keys) == 1


@pytest.mark.parametrize(
    "url", ["", "ftp://a/v1", "http://", "http://me:key@a/v1", "http://a /v1", "http://a:99999/v1"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ServerError, match="http://127.0.0.1:8000/v1"):
        OpenAIServer(url)


def test_a_key_that_cannot_be_sent_is_refused(plays: ModelServer) -> None:
    with pytest.raises(ServerError, match="copy it again"):
        OpenAIServer(plays.url, key="a\r\nHost: b")


def test_a_server_that_is_down_is_said_to_be() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(ServerError, match="cannot be reached") as caught:
        OpenAIServer(url).models()
    assert caught.value.code == "server-down"


def test_a_slow_server_is_said_to_be(plays: ModelServer) -> None:
    plays.pieces = [make_delta("Par"), 1.0, END]
    assert problem_of(plays).code == "server-slow"


def test_stop_does_not_wait_for_a_silent_server(plays: ModelServer) -> None:
    plays.pieces = [make_delta("Par"), *([0.02, b": wait\n"] * 200), END]
    pieces: list[ServerPiece] = []
    stream = OpenAIServer(plays.url).stream_chat(
        ChatRequest(model="big", messages=HELLO), stopped=lambda: bool(pieces)
    )
    with pytest.raises(Stopped):
        pieces.extend(stream)
    assert [piece.text for piece in pieces] == ["Par"]
    assert plays.closed.wait(10)  # the connection was ended, so the server need not go on


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        ([b"<html>hello</html>"], "server-garbage"),
        ([b"data: {not json\n\n"], "server-garbage"),
        ([b"data: [1, 2]\n\n"], "server-garbage"),
        ([b'data: {"choices": [{"delta": {"content": 5}}]}\n\n'], "server-garbage"),
        ([b"data: " + b"x" * 2_000_000 + b"\n\n"], "server-garbage"),
        ([b"[" * 200_000], "server-garbage"),
        ([b"\xff\xfe\x00"], "server-garbage"),
        ([b'data: {"error": {"message": "no memory"}}\n\n'], "server-failed"),
        ([make_delta("Par")], "server-broke-off"),
        ([], "server-broke-off"),
    ],
)
def test_garbage_is_an_error_that_says_so(
    plays: ModelServer, pieces: list[bytes | float], code: str
) -> None:
    plays.pieces = pieces
    assert problem_of(plays).code == code


def test_garbage_among_the_numbers_is_left_out(plays: ModelServer) -> None:
    numbers = b'[7, {"token": 1}, {"token": "a", "logprob": NaN}, {"token": "b", "logprob": -2}]'
    line = b'data: {"choices": [{"delta": {"content": "ab"}, "logprobs": {"content": %s}}]}\n\n'
    plays.pieces = [line % numbers, END]
    assert [(t.text, t.log_probability) for t in ask(plays)[0].tokens] == [("b", -2.0)]


@pytest.mark.parametrize(
    ("status", "code"), [(401, "server-key"), (404, "server-refused"), (500, "server-refused")]
)
def test_a_refusal_tells_the_servers_own_words(plays: ModelServer, status: int, code: str) -> None:
    plays.status, plays.pieces = status, [b'{"error": {"message": "model big is unknown"}}']
    problem = problem_of(plays)
    assert (problem.code, "model big is unknown" in problem.message) == (code, True)


def test_without_log_probabilities_it_is_asked_again(plays: ModelServer) -> None:
    plays.refuses_log_probabilities = True
    plays.pieces = [make_delta("Paris"), END]
    assert "".join(piece.text for piece in ask(plays)) == "Paris"
    assert ["logprobs" in asked for asked in plays.asked] == [True, False]


def test_a_whole_answer_and_thoughts_of_their_own_field_are_read(plays: ModelServer) -> None:
    plays.pieces = [
        b'{\n "choices": [{"message": {"content": "Paris", "reasoning_content": "Hm"},\n'
        b'"finish_reason": "length"}]}'
    ]
    assert [(p.text, p.finish) for p in ask(plays)] == [
        ("<think>Hm</think>Paris", None),
        ("", "length"),
    ]
    plays.pieces = [make_delta("", reasoning="H"), make_delta("", reasoning="m"), make_delta("P")]
    plays.pieces.append(END)
    assert "".join(p.text for p in ask(plays)) == "<think>Hm</think>P"


def test_halves_of_characters_are_joined_or_marked(plays: ModelServer) -> None:
    plays.pieces = [make_delta("a\ud83d"), make_delta("\ude00 \ude00"), make_delta("b\ud83d"), END]
    assert [piece.text for piece in ask(plays)] == ["a", "😀 \ufffd", "b", "\ufffd"]
    token = {"token": "\ud83d", "logprob": -1.0}
    choice = {"delta": {"content": "x"}, "logprobs": {"content": [token]}}
    plays.pieces = [b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n", END]
    assert ask(plays)[0].tokens[0].text == "\ufffd"
    plays.models = json.dumps({"data": [{"id": "m\ud83d"}]}).encode()
    assert OpenAIServer(plays.url).models() == ("m\ufffd",)
