"""Controls that name a model on an OpenAI-compatible server: address, key, its models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.context import AppContext
from explorer.openai_server import OpenAIServer


@dataclass(frozen=True, eq=False)
class ServerFields:
    """The controls.

    Args:
        url: Address of the server.
        key: What it wants as a key.
        find: Lists its models.
        model: The chosen one.
    """

    url: gr.Textbox | gr.Dropdown
    key: gr.Textbox
    find: gr.Button
    model: gr.Dropdown


def is_server_possible(ctx: AppContext) -> bool:
    """Whether any server may be called from this page."""
    return not ctx.servers.public or bool(ctx.servers.allowed)


def build_server_fields(ctx: AppContext, prefix: str) -> ServerFields:
    """Build the controls.

    Args:
        ctx: The page's context.
        prefix: Ids on the page begin with it.
    """
    t, rule = ctx.words.t, ctx.servers
    url: gr.Textbox | gr.Dropdown
    about: dict[str, Any] = {"label": t("chat.server_url"), "elem_id": f"{prefix}-server-url"}
    if rule.public:
        url = gr.Dropdown(list(rule.allowed), **about)
    else:
        url = gr.Textbox(max_lines=1, placeholder="http://127.0.0.1:8000/v1", **about)
    key = gr.Textbox(
        type="password",
        max_lines=1,
        label=t("chat.server_key"),
        info=t("chat.server_key_info"),
        elem_id=f"{prefix}-server-key",
    )
    find = gr.Button(t("chat.server_find"), elem_id=f"{prefix}-server-find", min_width=0)
    model = gr.Dropdown(
        [],
        allow_custom_value=True,
        label=t("chat.server_model"),
        elem_id=f"{prefix}-server-model",
    )
    return ServerFields(url, key, find, model)


def open_server(ctx: AppContext, url: str | None, key: str | None) -> OpenAIServer:
    """The server that the controls name.

    Args:
        ctx: The page's context.
        url: Value of the address.
        key: Value of the key.

    Raises:
        ServerError: It is no address, or may not be called.
    """
    return OpenAIServer(url or "", key=key or "", rule=ctx.servers)
