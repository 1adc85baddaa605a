"""A model that is too big for this machine: on an OpenAI-compatible server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.kit.line import build_line
from components.server_fields import (
    ServerFields,
    build_server_fields,
    is_server_possible,
    open_server,
)
from components.tabs.chat.asking import ServerChoice
from components.text import locale_of


@dataclass(frozen=True, eq=False)
class ServerPanel:
    """Components of the panel.

    Args:
        fields: Address, key and model.
        use: Whether it answers in place of the open model.
        line: Says who answers.
        chosen: State: a `ServerChoice`, or None for the open model.
    """

    fields: ServerFields
    use: gr.Checkbox
    line: gr.HTML
    chosen: gr.State


def build(ctx: AppContext) -> ServerPanel:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    t, is_possible = ctx.words.t, is_server_possible(ctx)
    with gr.Accordion(t("chat.server_title"), open=False, elem_id="chat-server"):
        gr.HTML(t("chat.server_help" if is_possible else "chat.server_off"), elem_classes=["help"])
        with gr.Column(visible=is_possible):
            fields = build_server_fields(ctx, "chat")
            use = gr.Checkbox(False, label=t("chat.server_use"), elem_id="chat-server-use")
    line = build_line(ctx.words, elem_id="chat-server-line", look="help")
    return ServerPanel(fields, use, line, gr.State(None))


def wire_panel(ctx: AppContext, panel: ServerPanel, card: Any) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        panel: What `build` gave.
        card: Card slot of the tab.
    """
    on = ServerHandlers(ctx)
    options: dict[str, Any] = {"card": card, "words": ctx.words}
    fields = panel.fields
    asked = [fields.url, fields.key]
    found = [fields.model, panel.use, panel.chosen, panel.line]
    wire(fields.find.click, on.find, asked, found, api_name="chat_server_models", **options)
    who = [panel.use, *asked, fields.model]
    chosen = [panel.chosen, panel.line]
    wire(panel.use.input, on.choose, who, chosen, api_name="chat_server_use", **options)
    wire(fields.model.input, on.choose, who, chosen, **options)
    for control in asked:
        wire(control.input, on.forget, [], [panel.use, *chosen], **options)


class ServerHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def find(self, url: str | None, key: str, request: gr.Request) -> tuple[Any, ...]:
        """List the models of a server, and let its first one answer."""
        server = open_server(self._ctx, url, key)
        names = server.models()
        if not names:
            return gr.Dropdown([], value=None), False, None, self._say(request, "server_empty")
        choice = ServerChoice(server, names[0])
        line = self._say(request, "server_line", model=names[0], url=server.url)
        return gr.Dropdown(list(names), value=names[0]), True, choice, line

    def choose(
        self, use: bool, url: str | None, key: str, model: str | None, request: gr.Request
    ) -> tuple[ServerChoice | None, str]:
        """Let a server answer, or the open model again."""
        if not use:
            return None, ""
        choice = ServerChoice(open_server(self._ctx, url, key), model or "")
        line = self._say(request, "server_line", model=choice.model, url=choice.server.url)
        return choice, line

    def forget(self) -> tuple[bool, None, str]:
        """Another address or key: the open model answers until a server is chosen again."""
        return False, None, ""

    def _say(self, request: gr.Request, key: str, **facts: object) -> str:
        return self._ctx.words.say(locale_of(request), f"chat.{key}", **facts)
