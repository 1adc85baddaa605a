"""The route of the Next token tab: what the filters do to kept logits, while a slider moves.

    GET /glassbox/next/{id}?temperature=0.7&top_k=50     JSON: steps and candidates

A handler reads the text once and keeps its logits; a moving slider only filters them anew, so that
the bars follow it within a frame or two (an event through Gradio's queue takes longer than the
whole answer). Who has the id may read, as with all routes.
"""

import asyncio
import json
import math
from dataclasses import asdict, fields
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from components.errors import make_error_card
from components.text import Words, locale_of
from explorer.errors import ExplorerError
from explorer.next_token import NextLogits, NextToken, SamplingSettings, trace_next_token
from explorer.results import ResultStore

_LIVE = {"Cache-Control": "no-store"}


class NextRoutes:
    """Serves the choice of a next token. Safe to use from many threads.

    Args:
        results: Where the logits are kept.
        words: The sentences of the page, for what cannot be.
    """

    def __init__(self, results: ResultStore, words: Words) -> None:
        self._results, self._words = results, words

    def routes(self) -> list[BaseRoute]:
        """List the routes, for `launch(app_kwargs={"routes": ...})`."""
        return [Route("/glassbox/next/{id}", self._serve)]

    async def _serve(self, request: Request) -> Response:
        given = self._results.get(request.path_params["id"])
        if not isinstance(given, NextLogits):
            return JSONResponse({"error": "gone"}, 404, _LIVE)
        try:
            settings = read_query(dict(request.query_params))
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(None, trace_next_token, given, settings)
        except ExplorerError as error:
            card = make_error_card(self._words, locale_of(gr.Request(request)), error)
            return JSONResponse({"error": card["text"], "code": error.code}, 400, _LIVE)
        except (ValueError, OverflowError):
            return JSONResponse({"error": "a setting is not a number"}, 400, _LIVE)
        content = json.dumps(as_json(found), ensure_ascii=False, separators=(",", ":"))
        return Response(content, 200, _LIVE, "application/json")


def read_query(query: dict[str, str]) -> SamplingSettings:
    """The settings of an address; what is missing stays as it is at first.

    Raises:
        ValueError: A value is no number.
    """
    given: dict[str, Any] = {}
    for setting in fields(SamplingSettings):
        if setting.name in query:
            value = float(query[setting.name])
            given[setting.name] = int(value) if isinstance(setting.default, int) else value
    return SamplingSettings(**given)


def as_json(found: NextToken) -> dict[str, Any]:
    """The choice as the page draws it; a number that JSON lacks becomes null."""
    stages = [{**asdict(stage), "perplexity": stage.perplexity} for stage in found.stages]
    return {
        "stages": [_finite(stage) for stage in stages],
        "candidates": [_finite(asdict(candidate)) for candidate in found.candidates],
        "n_tokens": found.n_tokens,
        "greedy": found.greedy,
    }


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    return {key: _say(value) for key, value in values.items()}


def _say(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return float(f"{value:.7g}") if math.isfinite(value) else None
