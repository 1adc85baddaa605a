"""What the panel "clicks" does: asks, notes what was taken, hands the rows over."""

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr

from components.context import AppContext
from components.text import locale_of
from explorer.clicks import (
    AnswerPair,
    Side,
    ask_both,
    ask_twice,
    count_wins,
    make_preference,
)
from explorer.datasets.examples import Example
from explorer.errors import JobError
from explorer.training.tuning_config import TuningConfig
from explorer.tuning_data import TYPED, DataSettings
from explorer.tuning_runs import TuningRuns

LEAST_TO_TRAIN = 4


@dataclass(frozen=True, kw_only=True)
class Clicks:
    """What was taken so far.

    Args:
        run: Whose answers are judged; of another run the wins begin anew.
        n_asked: Questions asked for preferences.
        n_blind: Questions of the test part that were asked for wins.
        pair: The one that is open.
        rows: Preferences, one line of JSON each.
        taken: Whether the tuned model's answer was taken.
        shown: Question and both answers of what was taken, for the table.
    """

    run: str | None = None
    n_asked: int = 0
    n_blind: int = 0
    pair: AnswerPair | None = None
    rows: tuple[str, ...] = ()
    taken: tuple[bool, ...] = ()
    shown: tuple[tuple[str, str, str], ...] = ()


class ClickHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
        tunings: Knows the runs.
    """

    def __init__(self, ctx: AppContext, tunings: TuningRuns) -> None:
        self._ctx = ctx
        self._tunings = tunings

    def turn_to(self, mode: str, clicks: Clicks, request: gr.Request) -> tuple[Any, ...]:
        """Another mode: another question; what was clicked in either stays."""
        return self._show(replace(clicks, pair=None), mode, request)

    def ask(
        self,
        mode: str,
        run: str | None,
        model: str | None,
        owner: str | None,
        clicks: Clicks,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """The next question, answered twice."""
        visitor = self._ctx.owner_of(owner, request)
        if clicks.run != run:
            clicks = replace(clicks, run=run, taken=(), n_blind=0)
        if run is None and mode == "own":
            pair = self._ask_open(model, visitor, clicks.n_asked)
        elif run is None:
            raise JobError("there is no run yet; train one first", code="tune-no-run")
        elif self._tunings.objective(run) == "classification":
            raise JobError(
                "a classifier writes no answers; choose another run", code="tune-no-answers"
            )
        else:
            pair = self._ask(mode, run, visitor, clicks)
        is_blind = mode == "blind"
        clicks = replace(
            clicks,
            pair=pair,
            n_asked=clicks.n_asked + (not is_blind),
            n_blind=clicks.n_blind + is_blind,
        )
        return self._show(clicks, mode, request)

    def take_left(
        self,
        mode: str,
        run: str | None,
        model: str | None,
        owner: str | None,
        clicks: Clicks,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """The left answer is better."""
        return self.ask(mode, run, model, owner, _note(clicks, "left"), request)

    def take_right(
        self,
        mode: str,
        run: str | None,
        model: str | None,
        owner: str | None,
        clicks: Clicks,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """The right answer is better."""
        return self.ask(mode, run, model, owner, _note(clicks, "right"), request)

    def take_neither(
        self,
        mode: str,
        run: str | None,
        model: str | None,
        owner: str | None,
        clicks: Clicks,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Neither is better: it counts for nothing."""
        return self.ask(mode, run, model, owner, replace(clicks, pair=None), request)

    def _ask_open(self, model: str | None, visitor: str, number: int) -> AnswerPair:
        """Without any run the open model answers questions of the sample."""
        examples = self._tunings.data.view(DataSettings(data="instructions")).parts.test
        source = self._ctx.source_of(model)
        with self._ctx.store.lease(source, visitor) as loaded:
            tuning = TuningConfig(base=source, template="alpaca" if loaded.chat is None else "chat")
            example = examples[number % len(examples)]
            return ask_twice(loaded, example, tuning, number, self._ctx.slots.turn)

    def hand_over(self, clicks: Clicks) -> tuple[Any, ...]:
        """The clicks as a data set to train on."""
        return TYPED, "\n".join(clicks.rows), gr.Tabs(selected="data")

    def _ask(self, mode: str, run: str, visitor: str, clicks: Clicks) -> AnswerPair:
        examples = self._tunings.examples(run)
        if mode == "blind" and clicks.n_blind >= len(examples):
            raise JobError(
                f"all {len(examples)} questions of the test part were asked; asking them again "
                "would only make the interval look narrower than it is",
                code="tune-clicks-done",
                n=len(examples),
            )
        number = clicks.n_blind if mode == "blind" else clicks.n_asked
        example = examples[number % len(examples)]
        return self._answer_pair(mode, run, visitor, example, number)

    def _answer_pair(
        self, mode: str, run: str, visitor: str, example: Example, number: int
    ) -> AnswerPair:
        tuning, store, turn = self._tunings.tuning(run), self._ctx.store, self._ctx.slots.turn
        source = self._ctx.runs.checkpoint_source(run, self._tunings.best_step(run))
        with store.lease(source, visitor) as tuned:
            if mode == "own":
                return ask_twice(tuned, example, tuning, number, turn)
            with store.lease(self._tunings.base(run), visitor) as base:
                return ask_both(base, tuned, example, tuning, number, turn)

    def _show(self, clicks: Clicks, mode: str, request: gr.Request) -> tuple[Any, ...]:
        say, locale, pair = self._ctx.words.say, locale_of(request), clicks.pair
        wins = count_wins(clicks.taken)
        said = say(
            locale,
            "finetune.clicks_wins" if mode == "blind" else "finetune.clicks_count",
            n=len(clicks.rows),
            wins=wins.wins,
            all=wins.n,
            low=f"{100 * wins.low:.0f}",
            high=f"{100 * wins.high:.0f}",
        )
        heads = ("question", "better", "worse")
        table = {
            "cols": [say(locale, f"finetune.column_{name}") for name in heads],
            "rows": [list(row) for row in clicks.shown],
        }
        enough = mode == "own" and len(clicks.rows) >= LEAST_TO_TRAIN
        asked = gr.update(visible=pair is not None)
        is_same = pair is not None and pair.left == pair.right
        choosable = gr.update(visible=pair is not None and not is_same)
        if is_same:
            said = f"{said} · {say(locale, 'finetune.clicks_same')}"
        return (
            said,
            "" if pair is None else pair.prompt,
            "" if pair is None else pair.left or "∅",
            "" if pair is None else pair.right or "∅",
            choosable,
            choosable,
            asked,
            gr.update(visible=enough),
            table if clicks.shown else None,
            clicks,
        )


def _note(clicks: Clicks, better: Side) -> Clicks:
    """Take a click down; of two equal answers neither is better."""
    pair = clicks.pair
    if pair is None or pair.left == pair.right:
        return replace(clicks, pair=None)
    taken = clicks.taken if pair.tuned is None else (*clicks.taken, pair.tuned == better)
    chosen, rejected = (pair.left, pair.right) if better == "left" else (pair.right, pair.left)
    return replace(
        clicks,
        pair=None,
        taken=taken,
        rows=(*clicks.rows, make_preference(pair, better)),
        shown=(*clicks.shown, (pair.prompt, chosen, rejected)),
    )
