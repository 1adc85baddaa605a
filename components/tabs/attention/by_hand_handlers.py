"""Handlers of the panel "by hand": stage by stage, with cells to change and a guess first."""

from dataclasses import dataclass, replace
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.kit.matrices import MatrixItem, matrices_value
from components.tabs.attention.by_hand_stages import STAGES, TITLES, WEIGHTS, Stage, labels_of
from components.tabs.attention.drawer import Shown, fill_drawer
from components.text import locale_of
from explorer.attention_lab.by_hand import (
    WIDTHS,
    WORDS,
    ChangedCell,
    HandAttention,
    HandSettings,
    compute_by_hand,
    parse_cell,
)
from explorer.attention_lab.by_hand_snippet import make_hand_snippet

TEST_FILE = "tests/explorer/attention_lab/test_attention_by_hand.py"
FIRST_WORD = 1  # "journey", the token 2 of the course
# Stage and settings that the examples choose.
EXAMPLES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("naive", {"gain": 100.0}),
    ("masked", {}),
    ("contexts", {"weights": "rand", "seed": 123}),
)


@dataclass(frozen=True)
class HandState:
    """What the reader has changed and guessed.

    Args:
        changed: Overwritten cells, the newest last.
        picked: Guesses: the matrix, the word, and the word that was guessed to be read most.
    """

    changed: tuple[ChangedCell, ...] = ()
    picked: tuple[tuple[str, int, int], ...] = ()

    def with_cell(self, cell: ChangedCell) -> "HandState":
        """The same with one more cell; the cell's older value goes."""
        place = (cell.matrix, cell.row, cell.column)
        kept = tuple(c for c in self.changed if (c.matrix, c.row, c.column) != place)
        return replace(self, changed=(*kept, cell))

    def guess(self, matrix: str, word: int) -> int | None:
        """What was guessed for a row, or None."""
        found = (g for name, row, g in reversed(self.picked) if (name, row) == (matrix, word))
        return next(found, None)


def parse_stage(text: str) -> dict[str, int]:
    """Take the name of a stage, as it stands in addresses.

    Raises:
        ValueError: There is no such stage.
    """
    index = [stage.key for stage in STAGES].index(text)
    return {"index": index, "count": len(STAGES)}


class HandHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def show(
        self,
        at: dict[str, int] | None,
        state: HandState,
        word: str,
        predict: bool,
        request: gr.Request,
        settings: HandSettings,
    ) -> tuple[Any, ...]:
        """Show one stage."""
        stage = _stage_at(at)
        hand = compute_by_hand(settings, changed=state.changed)
        return self._view(stage, hand, state, _word_at(word), predict, request, settings)

    def edit(
        self,
        at: dict[str, int] | None,
        state: HandState,
        word: str,
        predict: bool,
        event: gr.EventData,
        request: gr.Request,
        settings: HandSettings,
    ) -> tuple[Any, ...]:
        """Put a number into a cell."""
        data = event._data
        cell = ChangedCell(
            matrix=str(data["matrix"]),
            row=int(data["row"]),
            column=int(data["column"]),
            value=parse_cell(str(data["value"])),
        )
        return self.show(at, state.with_cell(cell), word, predict, request, settings)

    def pick(
        self,
        at: dict[str, int] | None,
        state: HandState,
        word: str,
        predict: bool,
        event: gr.EventData,
        request: gr.Request,
        settings: HandSettings,
    ) -> tuple[Any, ...]:
        """Take a guess, and show the row."""
        data = event._data
        guess = (str(data["matrix"]), int(data["row"]), int(data["column"]))
        picked = (*state.picked, guess)
        return self.show(at, replace(state, picked=picked), word, predict, request, settings)

    def reset(
        self,
        at: dict[str, int] | None,
        state: HandState,
        word: str,
        predict: bool,
        request: gr.Request,
        settings: HandSettings,
    ) -> tuple[Any, ...]:
        """Take back all changed cells and guesses."""
        return self.show(at, HandState(), word, predict, request, settings)

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Go to the stage of an example, with its settings: stepper, then the form's controls."""
        key, chosen = EXAMPLES[int(event._data["index"])]
        settings = replace(HandSettings(), **chosen)
        return (parse_stage(key), *vars(settings).values())

    def attention_by_hand(self, *, settings: HandSettings) -> dict[str, Any]:
        """Compute all matrices of six words that attend to each other."""
        matrices = compute_by_hand(settings).matrices
        return {name: np.nan_to_num(m, neginf=-1e30).tolist() for name, m in matrices.items()}

    def _view(
        self,
        stage: Stage,
        hand: HandAttention,
        state: HandState,
        word: int,
        predict: bool,
        request: gr.Request,
        settings: HandSettings,
    ) -> tuple[Any, ...]:
        locale, say = locale_of(request), self._ctx.words.say
        items = self._items(stage, hand, state, word, predict, locale)
        shown = items[-1]
        drawer = Shown(
            tensor=shown.name,
            cells=shown.cells,
            rows=shown.rows,
            columns=shown.columns,
            function=compute_by_hand,
            test=TEST_FILE,
            python=make_hand_snippet(settings, state.changed, _computed(stage)),
        )
        number = STAGES.index(stage) + 1
        return (
            f"{number}. {say(locale, f'attention.hand.stage.{stage.key}')}",
            stage.formula,
            f"```python\n{stage.torch_line}\n```",
            matrices_value(items),
            self._said(stage, hand, state, word, predict, locale),
            *fill_drawer(self._ctx, drawer),
            stage.key,
            state,
        )

    def _items(
        self,
        stage: Stage,
        hand: HandAttention,
        state: HandState,
        word: int,
        predict: bool,
        locale: str,
    ) -> list[MatrixItem]:
        if stage.key == "sharpness":
            return [self._sharpness_item(hand, locale)]
        return [self._item(name, stage, hand, state, word, predict) for name in stage.show]

    def _item(
        self,
        name: str,
        stage: Stage,
        hand: HandAttention,
        state: HandState,
        word: int,
        predict: bool,
    ) -> MatrixItem:
        cells = hand.matrices[name]
        rows, columns = labels_of(name, cells.shape)
        guess = state.guess(name, word) if predict and name == stage.guess else None
        of_words = len(rows) == len(WORDS)
        return MatrixItem(
            name=name,
            title=TITLES[name],
            rows=rows,
            columns=columns,
            cells=cells,
            masked=np.triu(np.ones(cells.shape, bool), 1) if name == "causal" else None,
            shade=1.0 if name in WEIGHTS else None,
            editable=name not in stage.fixed,
            changed=[(c.row, c.column) for c in state.changed if c.matrix == name],
            veiled=word if predict and name == stage.guess and guess is None else -1,
            picked=None if guess is None else (word, guess),
            row=word if of_words else -1,
        )

    def _sharpness_item(self, hand: HandAttention, locale: str) -> MatrixItem:
        say = self._ctx.words.say
        return MatrixItem(
            name="sharpness",
            title=say(locale, "attention.hand.sharpness"),
            rows=[f"d = {width}" for width in WIDTHS],
            columns=[say(locale, f"attention.hand.{name}") for name in ("divided", "undivided")],
            cells=np.array(hand.sharpness, dtype=np.float32),
            shade=1.0,
        )

    def _said(
        self,
        stage: Stage,
        hand: HandAttention,
        state: HandState,
        word: int,
        predict: bool,
        locale: str,
    ) -> str:
        say = self._ctx.words.say
        if not predict or stage.guess is None:
            return say(locale, f"attention.hand.said.{stage.key}")
        guess = state.guess(stage.guess, word)
        if guess is None:
            return say(locale, "attention.hand.guess", word=WORDS[word])
        row = hand.matrices[stage.guess][word]
        largest = int(row.argmax())
        key = "right" if row[guess] == row[largest] else "wrong"
        return say(
            locale,
            f"attention.hand.{key}",
            guess=WORDS[guess],
            weight=f"{row[guess]:.4f}",
            largest=WORDS[largest],
            most=f"{row[largest]:.4f}",
        )


def _stage_at(at: dict[str, int] | None) -> Stage:
    index = int((at or {}).get("index", 0))
    return STAGES[min(max(index, 0), len(STAGES) - 1)]


def _word_at(word: str) -> int:
    return WORDS.index(word) if word in WORDS else FIRST_WORD


def _computed(stage: Stage) -> list[str]:
    return [] if stage.key == "sharpness" else list(stage.show)
