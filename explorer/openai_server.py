"""A model on an OpenAI-compatible server: vLLM, llama.cpp, Ollama, TGI and others.

    GET  <url>/models              -> {"data": [{"id": name}, ...]}
    POST <url>/chat/completions    -> lines `data: {"choices": [{"delta": {"content": text},
                                      "logprobs": {"content": [...]}, "finish_reason": why}]}`,
                                      the last one `data: [DONE]`

Whoever may name an address lets this machine call it (server-side request forgery). So on a public
host only addresses that the operator set are called (`ServerRule`), redirects are never followed,
and no more of an answer is read than a conversation needs.

Whatever a server does, its caller gets text or an error with a remedy: it may be down, slow, send
something else, or break off (openai_exchange.py, openai_wire.py).

Source: OpenAI API reference, *Chat* (2025), streaming and log-probabilities.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from explorer.errors import ServerError
from explorer.openai_exchange import Exchange, Patience
from explorer.openai_wire import ServerPiece, read_names, read_pieces

SERVERS_VARIABLE = "GLASSBOX_SERVERS"
KEY_VARIABLE = "GLASSBOX_SERVER_KEY"


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
        self._patience = Patience(connect_s, silence_s, answer_s)

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
    ) -> Exchange:
        headers = {"Accept": "text/event-stream, application/json"}
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        exchange = Exchange(self.url, self._patience, stopped)
        try:
            exchange.begin(method, path, body, headers)
        except BaseException:
            exchange.close()
            raise
        return exchange


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


def _never() -> bool:
    return False
