"""The judge: what is asked, what is read, and servers that are down, slow or talk in prose."""

import socket
from collections.abc import Iterator

import pytest

from explorer.errors import ConfigError, ServerError
from explorer.judge import (
    RUBRIC,
    JudgedAnswer,
    Verdict,
    Who,
    ask_judge,
    pair_scores,
    read_score,
    sum_up,
    write_question,
)
from explorer.openai_server import OpenAIServer
from tests.explorer.model_server import END, ModelServer, make_delta, serve_models


@pytest.fixture(scope="module")
def served() -> Iterator[ModelServer]:
    with serve_models() as plays:
        yield plays


@pytest.fixture
def plays(served: ModelServer) -> ModelServer:
    served.begin()
    return served


def asked(row: int = 1, who: Who = "tuned", answer: str = "Mia has it.") -> JudgedAnswer:
    return JudgedAnswer(row=row, question="Who has it?", wanted="Mia.", answer=answer, who=who)


def test_a_grade_is_read_and_prose_is_not() -> None:
    for reply, score in (
        ("Score: 85", 85),
        ("**Score:** 85/100", 85),
        ('{"score": 85}', 85),
        ("85", 85),
        (" 85 / 100.", 85),
        ("85%", 85),
        ("评分：85分", 85),
        ("<think>Score: 3? No.</think>\nScore: 85", 85),
        ("Score: 0", 0),
        ("The answer is right.\nScore: 92.5", 92.5),
        ("It gives 2 of 3 facts, which is quite good.", None),
        ("Score: 85 or Score: 90", None),
        ("Score: 850", None),
        ("Score: -5", None),
        ("Score: 101", None),
        ("<think>Score: 85", None),
        ("", None),
    ):
        assert read_score(reply) == score, reply


def test_the_rubric_is_sent_with_its_places_filled_once(plays: ModelServer) -> None:
    tricky = asked(answer="See {wanted} and {question}")
    found = write_question("Q {question} W {wanted} A {answer}", tricky)
    assert found == "Q Who has it? W Mia. A See {wanted} and {question}"
    plays.pieces = [make_delta("Score: 70"), END]
    list(ask_judge(OpenAIServer(plays.url), "big", RUBRIC, [tricky]))
    sent = plays.asked[0]
    assert sent["messages"][0]["content"] == write_question(RUBRIC, tricky)
    assert (sent["temperature"], sent["seed"], "logprobs" in sent) == (0.0, 0, False)
    with pytest.raises(ConfigError) as error:
        write_question("no place", tricky)
    assert error.value.code == "judge-rubric"


def test_replies_without_a_grade_are_counted_and_never_zero(plays: ModelServer) -> None:
    server = OpenAIServer(plays.url)
    verdicts: list[Verdict] = []
    replies = {("base", 1): "Score: 20", ("tuned", 1): "Score: 80", ("tuned", 2): "Well done!"}
    for (who, row), reply in replies.items():
        plays.pieces = [make_delta(reply), END]
        verdicts += ask_judge(server, "big", RUBRIC, [asked(row, who)])  # type: ignore[arg-type]
    tuned = sum_up(verdicts, "tuned")
    assert (tuned.n_asked, tuned.n_failed, tuned.mean) == (2, 1, 80.0)
    assert sum_up(verdicts[2:], "tuned").mean is None
    assert verdicts[2].reply == "Well done!"
    assert pair_scores(verdicts) == ([20.0], [80.0])


def test_a_server_that_is_down_or_slow_is_told_with_what_to_do(plays: ModelServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(ServerError) as down:
        list(ask_judge(OpenAIServer(url), "big", RUBRIC, [asked()]))
    assert down.value.code == "server-down"
    plays.pieces = [make_delta("Score"), 1.0, END]
    with pytest.raises(ServerError) as slow:
        list(ask_judge(OpenAIServer(plays.url, silence_s=0.2), "big", RUBRIC, [asked()]))
    assert slow.value.code == "server-slow"
    with pytest.raises(ConfigError):
        list(ask_judge(OpenAIServer(plays.url), " ", RUBRIC, [asked()]))
