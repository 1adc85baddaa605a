"""The list of a visitor's conversations."""

from __future__ import annotations

from typing import Any

import gradio as gr

from components.context import AppContext

NEW = ""  # value of the entry for a conversation that nothing was said in yet


def list_talks(ctx: AppContext, locale: str, owner: str, chosen: str) -> Any:
    """Give the list with one of them chosen.

    Args:
        ctx: The page's context.
        locale: The reader's language.
        owner: Whose conversations.
        chosen: Name of the one that is open; empty for a new one.
    """
    entries = ctx.talks.list(owner)
    empty = ctx.words.say(locale, "chat.talk_untitled")
    choices = [(entry.title or empty, entry.id) for entry in entries]
    if chosen not in [entry.id for entry in entries]:
        choices = [(ctx.words.say(locale, "chat.talk_new"), chosen), *choices]
    return gr.Dropdown(choices, value=chosen)
