"""A model that is too big for this machine: on an OpenAI-compatible server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from components.errors import wire
from components.kit.line import build_line
from components.tabs.chat.answering import ServerChoice
from components.text import locale_of
from explorer.openai_server import OpenAIServer


@dataclass(frozen=True, eq=False)
class ServerPanel:
    """Components of the panel.

    Args:
        url: Address of the server.
        key: What it wants as a key.
        find: Lists its models.
        model: The chosen one.
        use: Whether it answers in place of the open model.
        line: Says who answers.
        chosen: State: a `ServerChoice`, or None for the open model.
    """

    url: gr.Textbox | gr.Dropdown
    key: gr.Textbox
    find: gr.Button
    model: gr.Dropdown
    use: gr.Checkbox
    line: gr.HTML
    chosen: gr.State


def build(ctx: AppContext) -> ServerPanel:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    t, rule = ctx.words.t, ctx.servers
    open_to_all = rule.public and not rule.allowed
    with gr.Accordion(t("chat.server_title"), open=False, elem_id="chat-server"):
        gr.HTML(t("chat.server_off" if open_to_all else "chat.server_help"), elem_classes=["help"])
        with gr.Column(visible=not open_to_all):
            url: gr.Textbox | gr.Dropdown
            about: dict[str, Any] = {"label": t("chat.server_url"), "elem_id": "chat-server-url"}
            if rule.public:
                url = gr.Dropdown(list(rule.allowed), **about)
            else:
                url = gr.Textbox(max_lines=1, placeholder="http://127.0.0.1:8000/v1", **about)
            key = gr.Textbox(
                type="password",
                max_lines=1,
                label=t("chat.server_key"),
                info=t("chat.server_key_info"),
                elem_id="chat-server-key",
            )
            find = gr.Button(t("chat.server_find"), elem_id="chat-server-find")
            model = gr.Dropdown(
                [],
                allow_custom_value=True,
                label=t("chat.server_model"),
                elem_id="chat-server-model",
            )
            use = gr.Checkbox(False, label=t("chat.server_use"), elem_id="chat-server-use")
    line = build_line(ctx.words, elem_id="chat-server-line", look="help")
    return ServerPanel(url, key, find, model, use, line, gr.State(None))


def wire_panel(ctx: AppContext, panel: ServerPanel, card: Any) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        panel: What `build` gave.
        card: Card slot of the tab.
    """
    on = ServerHandlers(ctx)
    options: dict[str, Any] = {"card": card, "words": ctx.words}
    asked = [panel.url, panel.key]
    found = [panel.model, panel.use, panel.chosen, panel.line]
    wire(panel.find.click, on.find, asked, found, api_name="chat_server_models", **options)
    who = [panel.use, panel.url, panel.key, panel.model]
    chosen = [panel.chosen, panel.line]
    wire(panel.use.input, on.choose, who, chosen, api_name="chat_server_use", **options)
    wire(panel.model.input, on.choose, who, chosen, **options)
    for control in (panel.url, panel.key):
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
        server = self._server(url, key)
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
        choice = ServerChoice(self._server(url, key), model or "")
        line = self._say(request, "server_line", model=choice.model, url=choice.server.url)
        return choice, line

    def forget(self) -> tuple[bool, None, str]:
        """Another address or key: the open model answers until a server is chosen again."""
        return False, None, ""

    def _server(self, url: str | None, key: str) -> OpenAIServer:
        return OpenAIServer(url or "", key=key or "", rule=self._ctx.servers)

    def _say(self, request: gr.Request, key: str, **facts: object) -> str:
        return self._ctx.words.say(locale_of(request), f"chat.{key}", **facts)
