"""One HTTP exchange with a server that may be down, slow or silent.

A thread of its own talks and puts what comes into a queue; whoever waits looks there, and looks as
often whether the answer is still wanted. So Stop is not held up by a silent server, and ending the
exchange hangs up. Redirects are never followed: they could lead anywhere.
"""

from __future__ import annotations

import http.client
import json
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from explorer.errors import ServerError, Stopped
from explorer.openai_wire import (
    MOST_LINE_BYTES,
    make_broke_off_error,
    make_garbage_error,
    read_json,
)
from models.tokenizers.tokenizer import replace_lone_surrogates

CHECK_EVERY_S = 0.05  # how often a reader looks whether the answer is still wanted
MOST_ANSWER_BYTES = 20 * 10**6  # of one answer with its log-probabilities; 10,000 tokens take 12 MB
LONGEST_PROBLEM = 300  # characters of what a server itself says, which a page shows


@dataclass(frozen=True)
class Patience:
    """How long to wait, in seconds.

    Args:
        connect_s: For a connection.
        silence_s: For the next piece.
        answer_s: For a whole answer.
    """

    connect_s: float
    silence_s: float
    answer_s: float


class Exchange:
    """One request and its answer.

    Args:
        url: Of the server.
        patience: How long to wait.
        stopped: Asked while it waits; True ends it.
    """

    def __init__(self, url: str, patience: Patience, stopped: Callable[[], bool]) -> None:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self._url, self._path = url, parts.path
        self._connection = kind(parts.hostname or "", parts.port, timeout=patience.connect_s)
        self._sock: socket.socket | None = None  # kept: `http.client` lets go of it early
        self._answers = False
        self._patience, self._stopped = patience, stopped
        self._ends_at = time.monotonic() + patience.answer_s
        self._found: queue.Queue[object] = queue.Queue(maxsize=1_000)
        self._closed = threading.Event()

    def begin(
        self, method: str, path: str, body: Mapping[str, object] | None, headers: dict[str, str]
    ) -> None:
        """Send the request and wait for the answer's status.

        Args:
            method: GET or POST.
            path: Behind the server's address.
            body: JSON to send, or None.
            headers: To send along.

        Raises:
            ServerError: It is down, slow or refuses.
            Stopped: `stopped()` became true.
        """
        content = None if body is None else json.dumps(body).encode()
        if content is not None:
            headers = {**headers, "Content-Type": "application/json"}
        work = threading.Thread(
            target=self._talk, args=(method, self._path + path, content, headers), daemon=True
        )
        work.start()
        status = self._next()
        assert isinstance(status, int), "the status comes first"
        if status != 200:
            raise self._refused(status)

    def lines(self) -> Iterator[bytes]:
        """The answer's lines, as they come.

        Raises:
            ServerError: It is slow or breaks off.
            Stopped: `stopped()` became true.
        """
        while (line := self._next()) is not None:
            assert isinstance(line, bytes)
            yield line

    def close(self) -> None:
        """End it, whatever is still to come."""
        self._closed.set()
        if self._sock is not None:
            _hang_up(self._sock)

    def _talk(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]
    ) -> None:
        """In the thread: everything that may block."""
        try:
            self._connection.connect()
            self._sock = self._connection.sock
            self._sock.settimeout(self._patience.silence_s)
            self._connection.request(method, path, content, dict(headers))
            answer = self._connection.getresponse()
            self._answers = True
            self._put(answer.status)
            self._read(answer)
        except Exception as problem:  # passed on to whoever waits, who would wait for ever else
            self._put(problem)
        finally:
            self._connection.close()

    def _read(self, answer: http.client.HTTPResponse) -> None:
        n_bytes = 0
        while (line := answer.readline(MOST_LINE_BYTES)) and n_bytes < MOST_ANSWER_BYTES:
            n_bytes += len(line)
            self._put(line)
            if self._closed.is_set():
                break
        self._put(None)
        answer.close()

    def _put(self, found: object) -> None:
        while not self._closed.is_set():
            try:
                self._found.put(found, timeout=CHECK_EVERY_S)
                return
            except queue.Full:
                continue

    def _next(self) -> object:
        """What came next; the thread's problem is raised here."""
        while True:
            if self._stopped():
                raise Stopped("stopped while a server was answering")
            if time.monotonic() > self._ends_at:
                raise self._slow(self._patience.answer_s)
            try:
                found = self._found.get(timeout=CHECK_EVERY_S)
            except queue.Empty:
                continue
            if isinstance(found, Exception):
                raise self._explain(found) from found
            return found

    def _explain(self, problem: Exception) -> ServerError:
        said = _say(problem)
        if self._sock is not None and isinstance(problem, TimeoutError):
            return self._slow(self._patience.silence_s)
        if self._answers:
            return make_broke_off_error(self._url)
        if isinstance(problem, http.client.HTTPException):
            return make_garbage_error(self._url, said.encode())
        return ServerError(
            f"{self._url} cannot be reached ({said}); start the server, and check the address and "
            f"its port",
            code="server-down",
            url=self._url,
            problem=said,
        )

    def _slow(self, waited_s: float) -> ServerError:
        return ServerError(
            f"{self._url} was not done after {waited_s:g} seconds; it may still be loading the "
            f"model: try again in a while, or with a shorter conversation",
            code="server-slow",
            url=self._url,
            seconds=f"{waited_s:g}",
        )

    def _refused(self, status: int) -> ServerError:
        body = b"".join(line for line, _ in zip(self.lines(), range(50), strict=False))
        said = _say(read_json(body) or body.decode("utf-8", "replace"))
        if status in (401, 403):
            return ServerError(
                f"{self._url} wants a key, or refuses this one ({said}); give the right key",
                code="server-key",
                url=self._url,
                problem=said,
            )
        return ServerError(
            f"{self._url} refuses with status {status}: {said}; check the address (it usually ends "
            f"in /v1), the model's name and the settings",
            code="server-refused",
            url=self._url,
            status=status,
            problem=said,
        )


def _say(problem: object) -> str:
    """Somebody else's words, cut short."""
    if isinstance(problem, Mapping):
        inner = problem.get("error", problem.get("detail", problem))
        problem = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    name = type(problem).__name__ if isinstance(problem, Exception) else "nothing"
    return replace_lone_surrogates(" ".join(str(problem).split())[:LONGEST_PROBLEM]) or name


def _hang_up(sock: socket.socket) -> None:
    """Wake up the thread that reads: closing alone would leave it waiting."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side was faster
        return
