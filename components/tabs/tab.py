"""What a tab is, and the head that all tabs share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.kit.cards import build_card


@dataclass(frozen=True)
class Tab:
    """One tab of the page.

    Args:
        id: Its name in addresses and in the names of its files.
        title_key: Key of its title in the words.
        build: Builds its contents into the running `gr.Blocks` and connects their events.
    """

    id: str
    title_key: str
    build: Callable[[AppContext], None]


@dataclass(frozen=True, eq=False)
class TabHead:
    """What the head of a tab gives to the tab.

    Args:
        actions: Row at the right of the title; a tab may build further buttons `with` it.
        share: The button that copies the address of the view.
        card: The card slot of the tab.
    """

    actions: gr.Row
    share: gr.Button
    card: Any


def build_tab_head(ctx: AppContext, tab_id: str) -> TabHead:
    """Build title, lead line, "Share view" and the card slot.

    The words `<tab_id>.title` and `<tab_id>.lead` must exist.

    Args:
        ctx: The page's context.
        tab_id: Id of the tab.

    Returns:
        The parts that a tab goes on with.
    """
    t = ctx.words.t
    with gr.Row(elem_classes=["tab-head"]):
        with gr.Column(elem_classes=["tab-title"], min_width=0):
            gr.Markdown(f"# {t(f'{tab_id}.title')}")
            gr.Markdown(t(f"{tab_id}.lead"), elem_classes=["lead"])
        with gr.Row(elem_classes=["tab-actions"]) as actions:
            share = gr.Button(t("shell.share"), elem_id=f"{tab_id}-share", min_width=0)
    ctx.address.add_share_button(tab_id, share)
    return TabHead(actions, share, build_card(ctx.words, elem_id=f"{tab_id}-card"))
