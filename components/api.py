"""Functions for programs: what a person can do on the page, with plain values in and out.

A handler of the page gets and gives the values of components; a program wants a text in and numbers
out. Errors with a remedy reach it as their message, faults of ours as a short id.
"""

import inspect
import logging
import secrets
import typing
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import gradio as gr
from gradio.events import api

from explorer.errors import ExplorerError

KINDS: Mapping[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}

_LOG = logging.getLogger("glassbox")


def expose(function: Callable[..., Any], api_name: str) -> None:
    """Offer a function under `/api_name`, inside the running `gr.Blocks`.

    Args:
        function: Annotated, with a docstring; both become its description. A parameter annotated
            `gr.Request` is filled by Gradio.
        api_name: Its name.
    """
    kinds = _plain_kinds(function)

    @wraps(function)
    def call(*inputs: Any, **named: Any) -> Any:
        given = {**dict(zip(kinds, inputs, strict=False)), **named}
        for name, kind in kinds.items():
            if name in given and not _is_a(given[name], kind):
                problem = f"{name}={str(given[name])[:80]!r} is not {KINDS[kind]}; give one"
                raise gr.Error(problem, print_exception=False)
        try:
            return function(*inputs, **named)
        except ExplorerError as error:
            raise gr.Error(error.message, print_exception=False) from error
        except Exception as error:
            fault_id = secrets.token_hex(3)
            _LOG.error("fault %s", fault_id, exc_info=error)
            raise gr.Error(f"A fault of Glassbox; the log says more under {fault_id}") from error

    api(call, api_name=api_name)


def _plain_kinds(function: Callable[..., Any]) -> dict[str, Any]:
    """Parameters in order; those that are no text, number or switch count as of any kind."""
    hints = typing.get_type_hints(function)
    names = inspect.signature(function).parameters
    plain = (str, int, float, bool)
    return {name: hints.get(name) if hints.get(name) in plain else object for name in names}


def _is_a(value: object, kind: Any) -> bool:
    if kind in (int, float) and isinstance(value, bool):
        return False  # True is an int for Python, not for a person
    return isinstance(value, (int, float) if kind is float else kind)
