"""Two answers of which a person takes the better one: they differ where the model lets them."""

from contextlib import nullcontext
from typing import Any

import pytest

from components.tabs.finetune.click_handlers import Clicks, _note
from explorer import clicks
from explorer.clicks import OWN_TEMPERATURES, AnswerPair, ask_twice, count_wins, make_preference
from explorer.datasets.examples import Example, Prompt
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


def test_clicks_become_rows_and_a_win_rate() -> None:
    pair = AnswerPair(prompt="q", left="l", right="r", tuned="right")
    assert make_preference(pair, "right") == '{"prompt": "q", "chosen": "r", "rejected": "l"}'
    assert make_preference(pair, "left") == '{"prompt": "q", "chosen": "l", "rejected": "r"}'
    rate = count_wins([True, True, False])
    assert (rate.wins, rate.n) == (2, 3)
    assert rate.low < 2 / 3 < rate.high
