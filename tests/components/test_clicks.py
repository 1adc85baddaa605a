"""Two answers of which a person takes the better one: they differ where the model lets them."""

from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import gradio as gr
import pytest

from components.tabs.finetune.click_handlers import ClickHandlers, Clicks, _note
from components.text import load_words
from explorer import clicks
from explorer.clicks import OWN_TEMPERATURES, AnswerPair, ask_twice, count_wins, make_preference
from explorer.datasets.examples import Example, Prompt
from explorer.errors import JobError
from explorer.training.tuning_config import TuningConfig

EXAMPLE = Example(row=1, prompt=Prompt(instruction="Who?"), answer="Ada")


def ask(monkeypatch: pytest.MonkeyPatch, answers: list[str]) -> tuple[AnswerPair, list[Any]]:
    """Let a model that gives these answers one after the other be asked."""
    asked: list[Any] = []

    def answer(loaded: Any, examples: Any, tuning: Any, **options: Any) -> tuple[str, ...]:
        asked.append((options["temperature"], options["seed"]))
        return (answers[min(len(asked), len(answers)) - 1],)

    monkeypatch.setattr(clicks, "answer_examples", answer)
    pair = ask_twice(None, EXAMPLE, TuningConfig(base="b"), 3, nullcontext)  # type: ignore[arg-type]
    return pair, asked


def test_a_second_answer_that_is_the_same_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, asked = ask(monkeypatch, ["a", "a", "a", "b"])
    assert (pair.left, pair.right, pair.tuned) == ("a", "b", None)
    assert [temperature for temperature, _ in asked] == [0.9, 0.9, 1.1, 1.4]
    assert len({seed for _, seed in asked}) == 4
    pair, asked = ask(monkeypatch, ["a", "b"])
    assert (pair.right, len(asked)) == ("b", 2)


def test_of_a_model_that_is_sure_both_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    pair, asked = ask(monkeypatch, ["a"])
    assert pair.left == pair.right == "a"
    assert len(asked) == 1 + len(OWN_TEMPERATURES)


def test_of_two_equal_answers_neither_wins_and_nothing_is_learned() -> None:
    same = AnswerPair(prompt="q", left="a", right="a", tuned="left")
    for side in ("left", "right"):
        after = _note(Clicks(pair=same), side)  # type: ignore[arg-type]
        assert (after.taken, after.rows, after.shown, after.pair) == ((), (), (), None)
    other = AnswerPair(prompt="q", left="a", right="b", tuned="left")
    after = _note(Clicks(pair=other), "right")
    assert (after.taken, after.shown) == ((False,), (("q", "b", "a"),))


class Tunings:
    """Two runs with two held-out questions each."""

    def examples(self, _run: str) -> tuple[Example, ...]:
        return (EXAMPLE, EXAMPLE)

    def objective(self, _run: str) -> str:
        return "sft"


def test_each_question_is_judged_once_and_another_run_begins_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ctx: Any = SimpleNamespace(owner_of=lambda _owner, _request: "me", words=load_words())
    on = ClickHandlers(ctx, Tunings())  # type: ignore[arg-type]
    pair = AnswerPair(prompt="q", left="a", right="b", tuned="left")
    monkeypatch.setattr(on, "_answer_pair", lambda *_: pair)
    asked = partial(on.ask, "blind", owner=None, model=None, request=gr.Request())
    clicks = asked(run="one", clicks=Clicks())[-1]
    clicks = asked(run="one", clicks=_note(clicks, "left"))[-1]
    with pytest.raises(JobError) as error:
        asked(run="one", clicks=_note(clicks, "left"))
    assert error.value.code == "tune-clicks-done"
    other = asked(run="two", clicks=_note(clicks, "left"))[-1]
    assert (other.taken, other.n_blind, other.n_asked) == ((), 1, 0)
    turned = on.turn_to("own", replace(other, rows=("{}",)), gr.Request())[-1]
    assert (turned.rows, turned.pair) == (("{}",), None)


def test_clicks_become_rows_and_a_win_rate() -> None:
    pair = AnswerPair(prompt="q", left="l", right="r", tuned="right")
    assert make_preference(pair, "right") == '{"prompt": "q", "chosen": "r", "rejected": "l"}'
    assert make_preference(pair, "left") == '{"prompt": "q", "chosen": "l", "rejected": "r"}'
    rate = count_wins([True, True, False])
    assert (rate.wins, rate.n) == (2, 3)
    assert rate.low < 2 / 3 < rate.high
