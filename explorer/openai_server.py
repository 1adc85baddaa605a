"""A model on an OpenAI-compatible server: vLLM, llama.cpp, Ollama, TGI and others.

    GET  <url>/models              -> {"data": [{"id": name}, ...]}
    POST <url>/chat/completions    -> lines `data: {"choices": [{"delta": {"content": text},
                                      "logprobs": {"content": [...]}, "finish_reason": why}]}`,
                                      the last one `data: [DONE]`

Whoever may name an address lets this machine call it (server-side request forgery). So on a public
host only addresses that the operator set are called (`ServerRule`), redirects are never followed,
and no more of an answer is read than a conversation needs.

Whatever a server does, its caller gets text or an error with a remedy: it may be down, slow, send
something else, or break off. A thread reads, so that Stop is not held up by a silent server.

Source: OpenAI API reference, *Chat* (2025), streaming and log-probabilities.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from explorer.errors import ServerError, Stopped
from explorer.openai_wire import (
    MOST_LINE_BYTES,
    ServerPiece,
    make_broke_off_error,
    make_garbage_error,
    read_json,
    read_names,
    read_pieces,
)

SERVERS_VARIABLE = "GLASSBOX_SERVERS"
KEY_VARIABLE = "GLASSBOX_SERVER_KEY"
CHECK_EVERY_S = 0.05  # how often a reader looks whether the answer is still wanted
MOST_ANSWER_BYTES = 20 * 10**6  # of one answer with its log-probabilities; 10,000 tokens take 12 MB
LONGEST_PROBLEM = 300  # characters of what a server itself says, which a page shows


@dataclass(frozen=True)
class ServerRule:
    """Which servers may be called.

    Args:
        public: Strangers can reach this host: only `allowed` is called.
        allowed: Addresses that the operator set, such as `http://10.0.0.5:8000/v1`.
        key: The key that is sent to these, and to no other.
    """

    public: bool = False
    allowed: tuple[str, ...] = ()
    key: str = field(default="", repr=False)

    def check(self, url: str) -> str:
        """The address as it will be called.

        Args:
            url: What was typed; a missing `http://` is added.

        Raises:
            ServerError: It is no address, or this host may not call it.
        """
        url = _normalise(url)
        if self.public and url not in self.allowed:
            raise ServerError(
                f"{url!r} is not called: this is a public page, and its operator has "
                f"{'set other servers' if self.allowed else 'set no servers'}; whoever runs it "
                f"names them in {SERVERS_VARIABLE}",
                code="server-off",
                url=url,
                variable=SERVERS_VARIABLE,
            )
        return url


def find_server_rule(public: bool, environment: Mapping[str, str] = os.environ) -> ServerRule:
    """The rule that command line and environment make.

    Args:
        public: Whether strangers may be on the page.
        environment: GLASSBOX_SERVERS holds addresses with commas between them, GLASSBOX_SERVER_KEY
            a key for them.

    Raises:
        ServerError: GLASSBOX_SERVERS holds something that is no address.
    """
    named = [part for part in environment.get(SERVERS_VARIABLE, "").split(",") if part.strip()]
    return ServerRule(public, tuple(map(_normalise, named)), environment.get(KEY_VARIABLE, ""))


@dataclass(frozen=True, kw_only=True)
class ChatRequest:
    """What is asked of a server.

    Args:
        model: Name that the server gave.
        messages: {"role": ..., "content": text}, oldest first.
        temperature: 0 takes the most probable token.
        top_p: Share of probability that is kept.
        max_tokens: Longest answer.
        seed: Of the draws, where the server knows seeds; None sends none.
        n_alternatives: Alternatives with each token, 0 to 20; 0 asks for no log-probabilities.
    """

    model: str
    messages: Sequence[Mapping[str, str]]
    temperature: float = 0.7
    top_p: float = 1.0
    max_tokens: int = 256
    seed: int | None = 0
    n_alternatives: int = 10

    def body(self, *, log_probabilities: bool) -> dict[str, object]:
        """The request's JSON."""
        asked: dict[str, object] = {
            "model": self.model,
            "messages": [dict(message) for message in self.messages],
            "temperature": self.temperature,
            "top_p": self.top_p,
            "max_tokens": self.max_tokens,
            "stream": True,
        }
        if self.seed is not None:
            asked["seed"] = self.seed
        if log_probabilities:
            asked |= {"logprobs": True, "top_logprobs": self.n_alternatives}
        return asked


class OpenAIServer:
    """One server.

    Args:
        url: Its address up to `/v1`.
        key: What it wants as a bearer token; empty sends the operator's, or none.
        rule: Which servers may be called.
        connect_s: Longest wait for a connection, in seconds.
        silence_s: Longest wait for the next piece, in seconds; a large model may read for long.
        answer_s: Longest that one answer may take in all, in seconds.

    Raises:
        ServerError: The address may not be called, or the key cannot be sent.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        rule: ServerRule | None = None,
        connect_s: float = 5.0,
        silence_s: float = 60.0,
        answer_s: float = 1800.0,
    ) -> None:
        rule = rule or ServerRule()
        self.url = rule.check(url)
        self._key = key.strip() or (rule.key if self.url in rule.allowed else "")
        if not (self._key.isascii() and self._key.isprintable()):
            raise ServerError(
                "the key holds characters that cannot be sent; copy it again",
                code="server-key-characters",
            )
        self._patience = _Patience(connect_s, silence_s, answer_s)

    def models(self) -> tuple[str, ...]:
        """Names of the models that it offers.

        Raises:
            ServerError: It is down, slow, refuses, or sends something else.
        """
        with closing(self._request("GET", "/models", None, _never)) as answer:
            return read_names(answer.lines(), self.url)

    def stream_chat(
        self, request: ChatRequest, *, stopped: Callable[[], bool] = lambda: False
    ) -> Iterator[ServerPiece]:
        """Answer the last message, piece by piece.

        A server that refuses to give log-probabilities is asked again without; its pieces then
        have no tokens.

        Args:
            request: What is asked.
            stopped: Asked while it waits; True ends it.

        Yields:
            Pieces as they come; the last one has `finish`.

        Raises:
            ServerError: As `models`, or it broke off.
            Stopped: `stopped()` became true.
        """
        log_probabilities = request.n_alternatives > 0
        while True:
            body = request.body(log_probabilities=log_probabilities)
            try:
                answer = self._request("POST", "/chat/completions", body, stopped)
            except ServerError as error:
                if not (log_probabilities and _names_log_probabilities(error)):
                    raise
                log_probabilities = False
                continue
            with closing(answer):
                yield from read_pieces(answer.lines(), self.url)
            return

    def complete_chat(
        self, request: ChatRequest, *, stopped: Callable[[], bool] = lambda: False
    ) -> str:
        """The whole answer's text.

        Raises:
            ServerError: As `stream_chat`.
            Stopped: `stopped()` became true.
        """
        return "".join(piece.text for piece in self.stream_chat(request, stopped=stopped))

    def _request(
        self, method: str, path: str, body: Mapping[str, object] | None, stopped: Callable[[], bool]
    ) -> _Exchange:
        headers = {"Accept": "text/event-stream, application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        exchange = _Exchange(self.url, self._patience, stopped)
        try:
            exchange.begin(method, path, body, headers)
        except BaseException:
            exchange.close()
            raise
        return exchange


@dataclass(frozen=True)
class _Patience:
    """How long to wait, in seconds: for a connection, for the next piece, for a whole answer."""

    connect_s: float
    silence_s: float
    answer_s: float


class _Exchange:
    """One request and its answer; a thread of its own talks, so that waiting can be ended."""

    def __init__(self, url: str, patience: _Patience, stopped: Callable[[], bool]) -> None:
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
        """Send the request and wait for the answer's status."""
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
        """The answer's lines, as they come."""
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


def _normalise(url: str) -> str:
    """One way to write each address."""
    text = url.strip()
    try:
        parts = urlsplit(text if "://" in text else f"http://{text}")
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named = None
    tail = None if not named else parts.query or parts.fragment or parts.username
    if not named or tail or not text.isascii() or any(c.isspace() or ord(c) < 33 for c in text):
        raise ServerError(
            f"{url[:200]!r} is not the address of a server; write it like "
            "http://127.0.0.1:8000/v1, without a name or a key in it",
            code="server-address",
            url=url[:200],
        )
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def _names_log_probabilities(error: ServerError) -> bool:
    """Whether a server complains about the request because log-probabilities are asked for."""
    complains = error.code == "server-refused" and error.facts["status"] in (400, 422)
    return complains and "logprob" in str(error.facts["problem"]).lower()


def _say(problem: object) -> str:
    """Somebody else's words, cut short."""
    if isinstance(problem, Mapping):
        inner = problem.get("error", problem.get("detail", problem))
        problem = inner.get("message", inner) if isinstance(inner, Mapping) else inner
    name = type(problem).__name__ if isinstance(problem, Exception) else "nothing"
    return " ".join(str(problem).split())[:LONGEST_PROBLEM] or name


def _hang_up(sock: socket.socket) -> None:
    """Wake up the thread that reads: closing alone would leave it waiting."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side was faster
        return


def _never() -> bool:
    return False
