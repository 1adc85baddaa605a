"""Routes of runs beside Gradio: what a page that watches one asks for, twice a second.

    GET /glassbox/run/{id}?since=N&starts=K     JSON: state, numbers, what is new after N steps
    GET /glassbox/run/{id}/metrics.csv          all numbers so far
    GET /glassbox/run/{id}/tensorboard.zip      the same as a TensorBoard event file
    GET /glassbox/run/{id}/step-{N}.zip         a checkpoint, which opens like any other model
    GET /glassbox/run/{id}/step-{N}/adapter.zip the adapter of a checkpoint alone, for PEFT

An event through Gradio's queue costs the server 20 ms, and a class that watches one run would slow
it down; here all who ask the same question within a moment get the same bytes. A page asks from a
round number of steps on, so that a class asks the same question.

Who has the id may watch: it cannot be guessed, and it is the link that a run is shared by.
"""

import asyncio
import json
import time
from collections import OrderedDict
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Route

from explorer.errors import ExplorerError
from explorer.runs import Runs

FRESH_S = 0.25  # pages ask every 0.4 s
MOST_ANSWERS = 64
_LIVE = {"Cache-Control": "no-store"}


class RunRoutes:
    """Serves runs to whoever has their id. Safe to use from many threads.

    Args:
        runs: The runs.
    """

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self._answers: OrderedDict[tuple[str, int, int], tuple[float, bytes]] = OrderedDict()
        self._lock = Lock()

    def routes(self) -> list[BaseRoute]:
        """List the routes, for `launch(app_kwargs={"routes": ...})`."""
        return [
            Route("/glassbox/run/{id}/metrics.csv", self._serve_metrics),
            Route("/glassbox/run/{id}/tensorboard.zip", self._serve_tensorboard),
            Route("/glassbox/run/{id}/step-{step:int}.zip", self._serve_checkpoint),
            Route("/glassbox/run/{id}/step-{step:int}/adapter.zip", self._serve_adapter),
            Route("/glassbox/run/{id}", self._serve_progress),
        ]

    def answer(self, run_id: str, since: int, n_starts: int) -> bytes:
        """JSON of what is new, at most `FRESH_S` old.

        Args:
            run_id: The run.
            since: Steps that the page has.
            n_starts: Beginnings of the run that the page knows.

        Raises:
            JobError: The run is not there.
        """
        key = (run_id, since, n_starts)
        with self._lock:
            found = self._answers.get(key)
        if found is not None and time.monotonic() - found[0] < FRESH_S:
            return found[1]
        progress = self._runs.progress(run_id, since, n_starts)
        content = json.dumps(progress, ensure_ascii=False, separators=(",", ":")).encode()
        with self._lock:
            self._answers[key] = (time.monotonic(), content)
            self._answers.move_to_end(key)
            while len(self._answers) > MOST_ANSWERS:
                self._answers.popitem(last=False)
        return content

    async def _serve_progress(self, request: Request) -> Response:
        try:
            numbers = [int(request.query_params.get(name, "0")) for name in ("since", "starts")]
        except ValueError:
            return JSONResponse({"error": "since and starts are whole numbers"}, 400, _LIVE)
        content = await _in_thread(self.answer, request.path_params["id"], *numbers)
        if isinstance(content, Response):
            return content
        return Response(content, 200, _LIVE, "application/json")

    async def _serve_metrics(self, request: Request) -> Response:
        text = await _in_thread(self._runs.exports.metrics_csv, request.path_params["id"])
        if isinstance(text, Response):
            return text
        headers = {**_LIVE, "Content-Disposition": 'attachment; filename="metrics.csv"'}
        return Response(text, 200, headers, "text/csv; charset=utf-8")

    async def _serve_checkpoint(self, request: Request) -> Response:
        run_id, step = request.path_params["id"], request.path_params["step"]
        path = await _in_thread(self._runs.exports.checkpoint, run_id, step)
        return _send_archive(path)

    async def _serve_adapter(self, request: Request) -> Response:
        run_id, step = request.path_params["id"], request.path_params["step"]
        return _send_archive(await _in_thread(self._runs.exports.adapter, run_id, step))

    async def _serve_tensorboard(self, request: Request) -> Response:
        return _send_archive(
            await _in_thread(self._runs.exports.tensorboard, request.path_params["id"])
        )


def _send_archive(path: Path | Response) -> Response:
    """Send a file once, or what was wrong with it."""
    if isinstance(path, Response):
        return path
    tidy = BackgroundTask(_remove_archive, path)
    return FileResponse(path, 200, _LIVE, "application/zip", tidy, filename=path.name)


def _remove_archive(path: Path) -> None:
    """The file was made for one download, in a folder of its own."""
    path.unlink(missing_ok=True)
    path.parent.rmdir()


async def _in_thread(work: Any, *inputs: Any) -> Any:
    """What it returns, or an answer that says what is wrong; other requests go on meanwhile."""
    try:
        return await asyncio.get_running_loop().run_in_executor(None, partial(work, *inputs))
    except ExplorerError as error:
        return JSONResponse({"error": error.message, "code": error.code}, 404, _LIVE)
