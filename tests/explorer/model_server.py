"""A small HTTP server that plays an OpenAI-compatible one, well or badly."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def make_delta(text: str, *, log_probability: float | None = None, **more: Any) -> bytes:
    """One line of a stream, as vLLM writes it."""
    choice: dict[str, Any] = {"index": 0, "delta": {"content": text, **more}, "finish_reason": None}
    if log_probability is not None:
        entry = {"token": text, "logprob": log_probability, "bytes": list(text.encode())}
        other = {"token": "other", "logprob": log_probability - 1.0, "bytes": None}
        choice["logprobs"] = {"content": [{**entry, "top_logprobs": [other, entry]}]}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


END = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
MODELS = json.dumps({"data": [{"id": "big"}, {"id": "bigger"}]}).encode()


class ModelServer:
    """What it does next, and what it was asked.

    Attributes:
        status: Of the answers to questions.
        pieces: Bytes of an answer; a number among them is a pause in seconds.
        models: Bytes of the answer to GET /models.
        asked: The JSON of each question.
        keys: The key that came with each request.
    """

    def __init__(self) -> None:
        self.begin()
        self.url = ""

    def begin(self) -> None:
        self.status = 200
        self.headers: dict[str, str] = {}
        self.pieces: list[bytes | float] = [make_delta("Paris", log_probability=-0.25), END]
        self.models = MODELS
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.refuses_log_probabilities = False
        self.closed = threading.Event()


class _Handler(BaseHTTPRequestHandler):
    plays: ModelServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.plays.keys.append(self.headers.get("Authorization"))
        self._begin(200 if self.path == "/v1/models" else 404)
        self.wfile.write(self.plays.models)

    def do_POST(self) -> None:
        plays = self.plays
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        plays.asked.append(asked)
        plays.keys.append(self.headers.get("Authorization"))
        if plays.refuses_log_probabilities and "logprobs" in asked:
            self._begin(400)
            self.wfile.write(b'{"error": {"message": "unknown field: logprobs"}}')
            return
        self._begin(plays.status)
        try:
            for piece in plays.pieces:
                if isinstance(piece, bytes):
                    self.wfile.write(piece)
                    self.wfile.flush()
                else:
                    time.sleep(piece)
        except OSError:
            plays.closed.set()

    def _begin(self, status: int) -> None:
        self.send_response(status)
        for name, text in self.plays.headers.items():
            self.send_header(name, text)
        self.end_headers()


@contextmanager
def serve_models() -> Iterator[ModelServer]:
    """Serve on a free port."""
    plays = ModelServer()
    handler = type("Handler", (_Handler,), {"plays": plays})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    plays.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield plays
    finally:
        server.shutdown()
        server.server_close()
