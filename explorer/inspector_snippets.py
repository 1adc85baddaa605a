"""Python that gives the same numbers as the panels of the Next token and Layers tabs."""

from dataclasses import fields
from typing import Any

from explorer.snippets import make_snippet, say_load, say_text


def say_settings(settings: Any) -> str:
    """A settings object as Python, with what differs from its defaults."""
    changed = [
        f"{f.name}={getattr(settings, f.name)!r}"
        for f in fields(settings)
        if getattr(settings, f.name) != f.default
    ]
    return f"{type(settings).__name__}({', '.join(changed)})"


def _say_given(source: str, text: str, chat: bool, logits: str) -> tuple[tuple[Any, ...], str]:
    """What gives the logits: a model and a text, or numbers typed by hand."""
    from explorer.next_token import compute_next_logits, parse_logits

    if logits:
        return (parse_logits,), f"given = {parse_logits.__name__}({say_text(logits)})"
    name = compute_next_logits.__name__
    return (
        (compute_next_logits,),
        f"given = {name}({say_load(source)}, {say_text(text)}, chat={chat})",
    )


def make_next_snippet(source: str, text: str, chat: bool, logits: str, settings: Any) -> str:
    """Python that takes the same steps to the next token."""
    from explorer.next_token import trace_next_token

    used, given = _say_given(source, text, chat, logits)
    load = () if logits else ("from models import load_model",)
    return make_snippet(
        (*used, trace_next_token, type(settings)),
        *load,
        "",
        given,
        f"found = {trace_next_token.__name__}(given, {say_settings(settings)})",
        "for token in found.candidates:",
        "    print(repr(token.label), token.probability, token.final)",
    )


def make_draws_snippet(
    source: str, text: str, chat: bool, logits: str, settings: Any, n_draws: int
) -> str:
    """Python that makes the same draws."""
    from explorer.draws import draw_many

    used, given = _say_given(source, text, chat, logits)
    load = () if logits else ("from models import load_model",)
    return make_snippet(
        (*used, draw_many, type(settings)),
        *load,
        "",
        given,
        f"draws = {draw_many.__name__}(given, {say_settings(settings)}, n_draws={n_draws})",
        "for token in draws.tokens:",
        "    print(repr(token.label), token.count, token.expected)",
    )
