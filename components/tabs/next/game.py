"""The panel "game": guess the next token, against the model."""

from typing import Any

import gradio as gr
import numpy as np

from components.api import expose
from components.errors import wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.game import build_game
from components.kit.plotly_panel import fresh_key
from components.kit.working import build_working
from components.tabs.asking import Ask, Asking
from components.text import locale_of
from explorer.guessing_game import Round, make_rounds
from explorer.inspector_snippets import make_game_snippet
from explorer.snippets import source_file_of

EXAMPLE_KEYS = ("next.game.example_story", "next.game.example_fact", "next.game.example_recipe")
# Of this project; the same in every language, because small models know English best.
TEXTS = (
    "Once upon a time there was a little girl who lived in a house by the sea. Every morning she "
    "went down to the beach with her dog. One day they found a small boat in the sand. There was "
    "nobody in it, only an old map and a key. The girl was very happy and ran home to show it to "
    "her mother.",
    "The sun is a star, and the earth goes around it once a year. The moon goes around the earth "
    "and has no light of its own: what we see is the light of the sun. When the earth stands "
    "between the sun and the moon, the moon becomes dark for a few hours.",
    "To make bread you need flour, water, salt and a little yeast. Mix everything in a large bowl "
    "and let it rest for an hour. Then put it into a hot oven and bake it for forty minutes. Let "
    "the bread cool down before you cut it.",
)
FORMULA = r"""
$$\text{the model is right when}\quad x_{t+1} = \arg\max_w\, p(w \mid x_1 \dots x_t)$$
"""


def build(asking: Asking, seed: Any) -> gr.Textbox:
    """Build the panel and connect its events; returns the text of the game.

    Args:
        asking: The question of the tab.
        seed: The control of the seed.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    text = gr.Textbox(
        TEXTS[0],
        label=t("next.game.text"),
        info=t("next.game.text_info"),
        lines=3,
        max_lines=8,
        elem_id="game-text",
    )
    examples = build_examples(words, EXAMPLE_KEYS, elem_id="game-examples")
    with gr.Row(elem_classes=["button-row"]):
        deal = gr.Button(t("next.game.deal"), variant="primary", elem_id="game-deal", min_width=0)
    board = build_game(words, elem_id="game-board")
    working = build_working(words, elem_id="game-working", formula=FORMULA, png="game-board")
    build_note(words, "next.look_for_game", elem_id="game-note")
    ctx, held, options = asking.ctx, asking.held["game"], asking.options
    on = GameHandlers(asking)
    drawer = [working.facts, working.table, working.exports]
    inputs = [held, asking.opened, text, seed, ctx.owner]
    wire([held.change, deal.click, text.change], on.deal, inputs, [board, *drawer], **options)
    wire(examples.example, on.example, [], [text], queue=False, **options)
    expose(on.next_game, "next_game")
    return text


class GameHandlers:
    """Handlers of the panel's events.

    Args:
        asking: The question of the tab.
    """

    def __init__(self, asking: Asking) -> None:
        self._ctx = asking.ctx

    def example(self, event: gr.EventData) -> str:
        """Take one of the texts."""
        return TEXTS[int(event._data["index"])]

    def deal(
        self, ask: Ask, opened: str, text: str, seed: int, owner: str | None, request: gr.Request
    ) -> tuple[Any, ...]:
        """Make new questions from the text."""
        if opened != "game" or not ask.source:
            return (gr.skip(),) * 4
        rounds = self._make(ask.source, text, int(seed), owner, request)
        return (
            {"deal": fresh_key(), "rounds": [make_round(one) for one in rounds]},
            {"tensor": "logits", "file": source_file_of(make_rounds)},
            # the answers stand there: it is folded up until somebody wants to know
            self._table(rounds, locale_of(request)),
            {
                "csv": self._publish(rounds),
                "png": "game-board",
                "python": make_game_snippet(ask.source, text, int(seed)),
            },
        )

    def next_game(self, text: str, request: gr.Request, seed: int = 0) -> list[Any]:
        """Questions of the guessing game from a text: context, options, which one came."""
        rounds = self._make(self._ctx.source_of(None), text, seed, None, request)
        return [make_round(one) for one in rounds]

    def _make(
        self, source: str, text: str, seed: int, owner: str | None, request: gr.Request
    ) -> tuple[Round, ...]:
        ctx = self._ctx
        with ctx.store.lease(source, ctx.owner_of(owner, request)) as loaded:
            return make_rounds(loaded, text, seed=seed, turn=ctx.slots.turn)

    def _table(self, rounds: tuple[Round, ...], locale: str) -> dict[str, Any]:
        say = self._ctx.words.say
        cells = []
        for one in rounds:
            came = next(option for option in one.options if option.came)
            cells.append([came.label, came.probability, one.model_choice])
        return {
            "corner": say(locale, "next.game.round"),
            "rows": [str(place + 1) for place in range(len(rounds))],
            "cols": [say(locale, f"next.game.column_{n}") for n in ("came", "chance", "model")],
            "tokens": [0, 2],
            "cells": cells,
            "digits": 4,
        }

    def _publish(self, rounds: tuple[Round, ...]) -> str:
        options = [(i, option) for i, one in enumerate(rounds) for option in one.options]
        return self._ctx.routes.publish(
            np.array([[i, o.probability, float(o.came)] for i, o in options]).reshape(-1, 3),
            row_labels=[option.label for _, option in options],
            column_labels=("round", "probability", "came"),
        )


def make_round(one: Round) -> dict[str, Any]:
    """One question as the page plays it."""
    return {
        "context": one.context,
        "options": [
            {"t": o.label, "p": round(o.probability, 6), "came": o.came} for o in one.options
        ],
        "model": one.model_choice,
        "right": one.model_right,
    }
