"""The chosen place in a text, and what is followed there."""

from collections.abc import Sequence
from typing import Any

import gradio as gr

from components.tabs.asking import Ask
from components.text import Words
from components.token_units import make_units, unit_of_token
from explorer.lens_targets import Target
from explorer.tokens import TokenUnit


def place_within(ask: Ask, ids: Sequence[int]) -> int:
    """The asked position; beyond a text that became shorter it is the end."""
    return min(max(ask.position, -len(ids)), len(ids) - 1)


def say_target(words: Words, locale: str, target: Target) -> str:
    """What is followed: the model's own answer, a word, or the first token of one."""
    key = "own" if not target.chosen else "first" if target.n_tokens > 1 else "word"
    return words.say(locale, f"layers.target_{key}", token=target.label, n=target.n_tokens)


def update_chips(
    units: Sequence[TokenUnit], position: int, weights: Sequence[float] | None = None
) -> Any:
    """Chips of a text with the chosen token marked, and a weight for each unit where given."""
    value = {"units": make_units(units), "more": 0, "total": sum(len(u.ids) for u in units)}
    more = {} if weights is None else {"weights": list(weights)}
    return gr.update(value=value, selected=unit_of_token(units, position), **more)
