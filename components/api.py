"""Functions for programs: what a person can do on the page, with plain values in and out.

A handler of the page gets and gives the values of components; a program wants a text in and numbers
out. Errors with a remedy reach it as their message, faults of ours as a short id.
"""

import logging
import secrets
from collections.abc import Callable
from functools import wraps
from typing import Any

import gradio as gr
from gradio.events import api

from explorer.errors import ExplorerError

_LOG = logging.getLogger("glassbox")


def expose(function: Callable[..., Any], api_name: str) -> None:
    """Offer a function under `/api_name`, inside the running `gr.Blocks`.

    Args:
        function: Annotated, with a docstring; both become its description. A parameter annotated
            `gr.Request` is filled by Gradio.
        api_name: Its name.
    """

    @wraps(function)
    def call(*inputs: Any, **named: Any) -> Any:
        try:
            return function(*inputs, **named)
        except ExplorerError as error:
            raise gr.Error(error.message, print_exception=False) from error
        except Exception as error:
            fault_id = secrets.token_hex(3)
            _LOG.error("fault %s", fault_id, exc_info=error)
            raise gr.Error(f"A fault of Glassbox; the log says more under {fault_id}") from error

    api(call, api_name=api_name)
