"""Sentence templates: text with choices and slots.

    "[One day|One {time}] {A} went {p.to}."

`[a|b|c]` stands for one of its parts, drawn anew each time; parts may hold choices themselves and
may be empty. `{name}` stands for a word of the scene. A template is parsed once and kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

from explorer.starter.dice import Dice

_MARKS = re.compile(r"(\[|\||\]|\{[^{}]*\})")


@dataclass(frozen=True)
class Slot:
    """A place for a word of the scene."""

    name: str


@dataclass(frozen=True)
class Choice:
    """A place where one of several parts stands."""

    options: tuple[Parts, ...]


Parts = tuple["str | Slot | Choice", ...]


@functools.cache
def parse_template(template: str) -> Parts:
    """The parts of a template in order.

    Raises:
        ValueError: A bracket without its partner.
    """
    pieces = [piece for piece in _MARKS.split(template) if piece]
    options, end = _parse_options(pieces, 0)
    if end != len(pieces) or len(options) != 1:
        raise ValueError(f"{template!r} has an unmatched bracket; write choices as [a|b]")
    return options[0]


def _parse_options(pieces: list[str], start: int) -> tuple[list[Parts], int]:
    """The options up to the bracket that closes them, and where it stands."""
    options: list[Parts] = []
    parts: list[str | Slot | Choice] = []
    at = start
    while at < len(pieces) and pieces[at] != "]":
        piece = pieces[at]
        if piece == "[":
            inner, at = _parse_options(pieces, at + 1)
            if at == len(pieces):
                raise ValueError("a [ is never closed; write choices as [a|b]")
            parts.append(Choice(tuple(inner)))
        elif piece == "|":
            options.append(tuple(parts))
            parts = []
        else:
            parts.append(Slot(piece[1:-1]) if piece[0] == "{" else piece)
        at += 1
    return [*options, tuple(parts)], at


def slots_of(template: str) -> frozenset[str]:
    """Names of all slots that a template may use."""
    return frozenset(name[1:-1] for name in re.findall(r"\{[^{}]*\}", template))


def render(template: str, words: Mapping[str, str], dice: Dice) -> str:
    """The template with its choices drawn and its slots filled.

    Args:
        template: The text with `[a|b]` and `{slot}`.
        words: Slot name -> word.
        dice: Draws the choices.

    Raises:
        KeyError: A slot that `words` does not have.
    """
    pieces: list[str] = []
    _render_parts(parse_template(template), words, dice, pieces)
    return "".join(pieces)


def _render_parts(parts: Parts, words: Mapping[str, str], dice: Dice, pieces: list[str]) -> None:
    for part in parts:
        if isinstance(part, str):
            pieces.append(part)
        elif isinstance(part, Slot):
            pieces.append(words[part.name])
        else:
            _render_parts(dice.pick(part.options), words, dice, pieces)
