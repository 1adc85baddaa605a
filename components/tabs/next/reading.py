"""What the panels of the tab begin with: the logits after the text, or typed by hand."""

from typing import Any

import gradio as gr

from components.context import AppContext
from components.tabs.asking import Ask
from explorer.next_token import NextLogits, NextToken, compute_next_logits
from explorer.typed_logits import parse_logits


def read_logits(ctx: AppContext, ask: Ask, owner: str | None, request: gr.Request) -> NextLogits:
    """Logits of the question's model after its text; those typed by hand come first.

    Raises:
        ConfigError: There is no text, or the typed numbers cannot be used.
        ContextError: The text is too long.
    """
    if ask.logits:
        return parse_logits(ask.logits)
    with ctx.store.lease(ask.source, ctx.owner_of(owner, request)) as loaded:
        return compute_next_logits(loaded, ask.text, chat=ask.chat, turn=ctx.slots.turn)


def summarise(ctx: AppContext, given: NextLogits, found: NextToken, locale: str) -> str:
    """One line: who read how much, and how open the choice is."""
    values: dict[str, Any] = {
        "before": f"{found.stages[0].perplexity:.2f}",
        "after": f"{found.pick.perplexity:.2f}",
    }
    if not given.model_name:
        return ctx.words.say(locale, "next.said_typed", n=found.n_tokens, **values)
    return ctx.words.say(
        locale, "next.said", n=f"{len(given.ids):,}", model=given.model_name, **values
    )
