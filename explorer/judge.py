"""A larger model as the judge of answers: one rubric, a number from 0 to 100 for each answer.

    rubric with {question} {wanted} {answer}  ─►  server  ─►  "Score: 85"  ─►  85

Zheng et al. 2023 (arXiv 2306.05685), section 3.1, single answer grading. The judge is asked at
temperature 0, with one seed and the same rubric for both models. What cannot be read as a number is
a failure: it is counted and shown, never guessed and never counted as 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from explorer.errors import ConfigError
from explorer.openai_server import ChatRequest

if TYPE_CHECKING:
    from explorer.openai_server import OpenAIServer

RUBRIC = """You grade the answer of a small language model.

Question:
{question}

A correct answer:
{wanted}

The answer to grade:
{answer}

Give 100 if it says the same as the correct answer, 50 if it is partly right, 0 if it is wrong, \
empty or about something else. Other wording costs nothing; what was not asked for costs points.
Reply with one line and nothing else:
Score: <a number from 0 to 100>"""
PLACEHOLDERS = ("{question}", "{wanted}", "{answer}")
MOST_REPLY_TOKENS = 400  # thoughts before the number included
MOST_QUOTED = 300
_THOUGHTS = re.compile(r"<think>.*?(</think>|\Z)", re.DOTALL)
_NUMBER = r"(?<![\d.,-])(\d{1,3}(?:\.\d+)?)(?![\d,]|\.\d)"
_SCORE = re.compile(rf"(?:score|grade|rating|分数|评分|得分)\W{{0,12}}?{_NUMBER}", re.IGNORECASE)
_ALONE = re.compile(rf"\W*{_NUMBER}\s*(?:/\s*100|%|points?|分)?\W*", re.IGNORECASE)

Who = Literal["base", "tuned"]


@dataclass(frozen=True, kw_only=True)
class JudgedAnswer:
    """What the judge is asked about.

    Args:
        row: Number of the question in its file.
        question: The question.
        wanted: The correct answer; may be empty.
        answer: The answer to grade.
        who: Which model wrote it.
    """

    row: int
    question: str
    wanted: str
    answer: str
    who: Who


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the judge said.

    Args:
        asked: About what.
        score: From 0 to 100; None where its reply holds no such number.
        reply: The reply, cut.
    """

    asked: JudgedAnswer
    score: float | None
    reply: str


@dataclass(frozen=True, kw_only=True)
class JudgeScores:
    """All that a judge said of one model.

    Args:
        n_asked: Answers that it was asked about.
        n_failed: Replies without a score.
        mean: Of the scores that could be read; None where there are none.
    """

    n_asked: int
    n_failed: int
    mean: float | None


def write_question(rubric: str, asked: JudgedAnswer) -> str:
    """The rubric with its places filled.

    Args:
        rubric: Holds `{answer}`; `{question}` and `{wanted}` may be left out.
        asked: What is put in.

    Raises:
        ConfigError: There is no place for the answer.
    """
    if "{answer}" not in rubric:
        raise ConfigError(
            "the rubric has no {answer} in it, so the judge would not see what it grades; put "
            "{answer} where the answer shall stand",
            code="judge-rubric",
            place="{answer}",
        )
    given = {"{question}": asked.question, "{wanted}": asked.wanted, "{answer}": asked.answer}
    # in one go: an answer that itself says {wanted} stays as it is
    return re.sub("|".join(map(re.escape, PLACEHOLDERS)), lambda m: given[m.group()], rubric)


def read_score(reply: str) -> float | None:
    """The score in a reply: the number behind the word, or one that stands alone.

    Args:
        reply: What the judge wrote; its thoughts are left out.

    Returns:
        From 0 to 100; None for prose, two different scores, or a number out of range.
    """
    said = _THOUGHTS.sub("", reply).strip()
    found = {float(number) for number in _SCORE.findall(said)}
    if not found and (alone := _ALONE.fullmatch(said)):
        found = {float(alone.group(1))}
    return found.pop() if len(found) == 1 and all(x <= 100 for x in found) else None


def ask_judge(
    server: OpenAIServer,
    model: str,
    rubric: str,
    asked: Sequence[JudgedAnswer],
    *,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[Verdict]:
    """Let a judge grade answers one by one.

    Args:
        server: Where it runs.
        model: What the server calls it.
        rubric: How it grades; see `write_question`.
        asked: The answers.
        stopped: Asked while it waits; True ends it.

    Yields:
        A verdict as soon as it is there.

    Raises:
        ConfigError: No model was named, or the rubric has no place for the answer.
        ServerError: The server is down, too slow, or refuses.
        Stopped: `stopped()` became true.
    """
    if not model.strip():
        raise ConfigError(
            "no model of the server was named; list its models and choose one", code="server-model"
        )
    for entry in asked:
        request = ChatRequest(
            model=model.strip(),
            messages=[{"role": "user", "content": write_question(rubric, entry)}],
            temperature=0.0,
            max_tokens=MOST_REPLY_TOKENS,
            n_alternatives=0,
        )
        reply = server.complete_chat(request, stopped=stopped)
        yield Verdict(asked=entry, score=read_score(reply), reply=reply.strip()[:MOST_QUOTED])


def sum_up(verdicts: Sequence[Verdict], who: Who) -> JudgeScores:
    """What a judge said of one model, in numbers.

    Args:
        verdicts: Of both models.
        who: Which one.
    """
    own = [verdict for verdict in verdicts if verdict.asked.who == who]
    scores = [verdict.score for verdict in own if verdict.score is not None]
    return JudgeScores(
        n_asked=len(own),
        n_failed=len(own) - len(scores),
        mean=sum(scores) / len(scores) if scores else None,
    )


def pair_scores(verdicts: Sequence[Verdict]) -> tuple[list[float], list[float]]:
    """Scores of base and tuned model on the questions where both could be read."""
    by_row: dict[int, dict[Who, float]] = {}
    for verdict in verdicts:
        if verdict.score is not None:
            by_row.setdefault(verdict.asked.row, {})[verdict.asked.who] = verdict.score
    both = [scores for scores in by_row.values() if len(scores) == 2]
    return [scores["base"] for scores in both], [scores["tuned"] for scores in both]
