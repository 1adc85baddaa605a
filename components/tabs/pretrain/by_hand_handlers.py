"""The stages of a step by hand, as tables of numbers."""

from collections.abc import Callable, Mapping
from typing import Any

import gradio as gr
import numpy as np

from components.context import AppContext
from components.text import locale_of
from explorer.snippets import source_file_of
from explorer.training.by_hand import (
    N_HIDDEN,
    N_INPUTS,
    N_TOKENS,
    TinyNet,
    TinySettings,
    TinyStep,
    parse_matrix,
    parse_target,
    take_tiny_step,
)
from explorer.training.by_hand_snippet import make_by_hand_snippet

STAGES = ("scores", "softmax", "loss", "gradient", "chain", "adamw", "after")
FORMULAS: Mapping[str, str] = {
    "scores": r"$$h = \tanh(W_1 x) \qquad z = W_2 h$$",
    "softmax": r"$$p_i = \frac{e^{z_i}}{\sum_j e^{z_j}}$$",
    "loss": r"$$L = -\ln p_{\text{target}}$$",
    "gradient": r"$$\frac{\partial L}{\partial W_2} = (p - y)\,h^{\top} \qquad "
    r"\frac{\partial L}{\partial w} \approx \frac{L(w + \delta) - L(w - \delta)}{2\delta}$$",
    "chain": r"$$\frac{\partial L}{\partial W_1} = "
    r"\bigl(W_2^{\top}(p - y) \odot (1 - h^2)\bigr)\,x^{\top}$$",
    "adamw": r"$$m = (1-\beta_1)\,g \quad v = (1-\beta_2)\,g^2 \quad "
    r"w \leftarrow w - \eta\lambda w - \eta\,"
    r"\frac{m/(1-\beta_1)}{\sqrt{v/(1-\beta_2)} + \epsilon}$$",
    "after": r"$$L_{\text{after}} = -\ln p'_{\text{target}}$$",
}
# Labels of rows and columns of a stage, and its cells; a column's name is a key of the words, or a
# symbol that needs none.
Table = tuple[list[str], list[str], list[list[float]]]


class ByHandHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def show(
        self,
        stage: dict[str, int] | None,
        x: str,
        w1: str,
        w2: str,
        target: str,
        request: gr.Request,
        settings: TinySettings,
    ) -> tuple[Any, ...]:
        """Compute the whole step, and show one stage of it."""
        net = _read_net(x, w1, w2, target)
        step = take_tiny_step(net, settings)
        index = min(max(int((stage or {}).get("index", 0)), 0), len(STAGES) - 1)
        name, say, locale = STAGES[index], self._ctx.words.say, locale_of(request)
        rows, columns, cells = TABLES[name](step)
        named = [_say_column(self._ctx, locale, column) for column in columns]
        return (
            say(locale, f"pretrain.stage.{name}"),
            FORMULAS[name],
            {"rows": rows, "cols": named, "cells": cells, "digits": 6},
            say(
                locale,
                "pretrain.hand_said",
                before=f"{step.loss:.6f}",
                after=f"{step.loss_after:.6f}",
                difference=f"{step.largest_difference:.1e}",
            ),
            {
                "tensor": "W1, W2",
                "shape": [N_HIDDEN * N_INPUTS + N_TOKENS * N_HIDDEN],
                "dtype": "float64",
                "file": source_file_of(take_tiny_step),
                "test": "tests/explorer/test_by_hand.py",
            },
            None,
            {
                "csv": self._ctx.routes.publish(
                    np.array(cells, dtype=np.float64), row_labels=rows, column_labels=named
                ),
                "png": None,
                "python": make_by_hand_snippet(net, settings),
            },
        )

    def step_by_hand(
        self, x: str, w1: str, w2: str, target: int, *, settings: TinySettings
    ) -> dict[str, Any]:
        """Compute loss, gradients in three ways and one AdamW step of the tiny net."""
        step = take_tiny_step(_read_net(x, w1, w2, str(target)), settings)
        ways = {
            "formula": step.by_formula,
            "autograd": step.by_autograd,
            "differences": step.by_differences,
        }
        return {
            "loss": step.loss,
            "probabilities": step.probabilities.tolist(),
            "gradients": {
                name: {"w1": way.w1.tolist(), "w2": way.w2.tolist()} for name, way in ways.items()
            },
            "after": {"w1": step.after.w1.tolist(), "w2": step.after.w2.tolist()},
            "loss_after": step.loss_after,
        }


def _read_net(x: str, w1: str, w2: str, target: str | None) -> TinyNet:
    return TinyNet(
        x=parse_matrix("x", x, (N_INPUTS,)),
        w1=parse_matrix("W1", w1, (N_HIDDEN, N_INPUTS)),
        w2=parse_matrix("W2", w2, (N_TOKENS, N_HIDDEN)),
        target=parse_target(target),
    )


def _say_column(ctx: AppContext, locale: str, column: str) -> str:
    key = f"pretrain.hand_column.{column}"
    return ctx.words.say(locale, key) if ctx.words.has(key) else column


# ------------------------------------------------------------------------------------ the tables
def _scores(step: TinyStep) -> Table:
    rows = [str(i) for i in range(N_TOKENS)]
    columns = np.stack([step.net.w1 @ step.net.x, step.hidden, step.scores], axis=1)
    return rows, ["W1 x", "h", "z"], columns.tolist()


def _softmax(step: TinyStep) -> Table:
    powers = np.exp(step.scores).tolist()
    columns = (step.scores.tolist(), powers, step.probabilities.tolist())
    rows = [str(i) for i in range(N_TOKENS)]
    return rows, ["z", "exp(z)", "p"], [list(row) for row in zip(*columns, strict=True)]


def _loss(step: TinyStep) -> Table:
    target = step.net.target
    return [str(target)], ["p", "loss"], [[float(step.probabilities[target]), step.loss]]


def _compare(step: TinyStep, name: str) -> Table:
    """A weight a row: its slope in three ways."""
    ways = [getattr(way, name) for way in (step.by_formula, step.by_autograd, step.by_differences)]
    rows = [_name_weight(name, place) for place in np.ndindex(ways[0].shape)]
    cells = [[float(way[place]) for way in ways] for place in np.ndindex(ways[0].shape)]
    return rows, ["formula", "autograd", "differences"], cells


def _adamw(step: TinyStep) -> Table:
    rows, cells = [], []
    for name in ("w1", "w2"):
        parts = (step.net, step.by_formula, step.first_moments, step.second_moments, step.after)
        for place in np.ndindex(getattr(step.net, name).shape):
            before, g, m, v, after = (float(getattr(part, name)[place]) for part in parts)
            rows.append(_name_weight(name, place))
            cells.append([before, g, m, v, after - before, after])
    return rows, ["before", "g", "m", "v", "change", "after"], cells


def _after(step: TinyStep) -> Table:
    again = take_tiny_step(step.after, TinySettings())
    rows = [str(i) for i in range(N_TOKENS)]
    both = zip(step.probabilities.tolist(), again.probabilities.tolist(), strict=True)
    return rows, ["before", "after"], [list(row) for row in both]


def _name_weight(name: str, place: tuple[int, ...]) -> str:
    return f"{name.upper()}[{place[0]}, {place[1]}]"


def _gradient(step: TinyStep) -> Table:
    return _compare(step, "w2")


def _chain(step: TinyStep) -> Table:
    return _compare(step, "w1")


TABLES: Mapping[str, Callable[[TinyStep], Table]] = {
    "scores": _scores,
    "softmax": _softmax,
    "loss": _loss,
    "gradient": _gradient,
    "chain": _chain,
    "adamw": _adamw,
    "after": _after,
}
