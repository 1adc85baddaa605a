"""What an OpenAI-compatible server sends, read with care.

    data: {"choices": [{"delta": {"content": " Paris"}, "logprobs": {"content": [
              {"token": " Paris", "logprob": -0.1, "bytes": [32, 80, ...],
               "top_logprobs": [{"token": " Paris", "logprob": -0.1}, ...]}]}}]}
    data: [DONE]

Servers differ. Some send no `bytes`, some no log-probabilities, some the whole answer at once;
thoughts come between `<think>` tags or in a field of their own (`reasoning_content` or
`reasoning`), which is put between such tags here. What cannot be understood is an error that
quotes it, never a gap.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from explorer.errors import ServerError
from models.tokenizers.tokenizer import replace_lone_surrogates

MOST_LINE_BYTES = 1_000_000  # of one piece; 20 alternatives take 2 kB
MOST_MODELS = 1_000  # names that are kept
_QUOTED = 120  # characters of what was not understood, which the error shows
_THOUGHTS = ("reasoning_content", "reasoning")


@dataclass(frozen=True)
class ServerToken:
    """One token, where the server tells.

    Args:
        text: What it says; U+FFFD for half a character.
        log_probability: Natural logarithm of its probability.
        alternatives: (text, log-probability) of the most probable tokens, best first.
    """

    text: str
    log_probability: float
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class ServerPiece:
    """What came at once.

    Args:
        text: More of the answer.
        tokens: The same as tokens; empty where the server gives no log-probabilities.
        finish: None while it goes on; `stop`, `length`, or the server's own word.
    """

    text: str
    tokens: tuple[ServerToken, ...]
    finish: str | None


def read_names(lines: Iterator[bytes], url: str) -> tuple[str, ...]:
    """Names of the models in the answer to GET /models.

    Raises:
        ServerError: It is something else.
    """
    body = b"".join(lines)
    found = read_json(body)
    listed = found.get("data") if isinstance(found, Mapping) else None
    if not isinstance(listed, list):
        raise make_garbage_error(url, body)
    names = [entry.get("id") for entry in listed if isinstance(entry, Mapping)]
    known = [replace_lone_surrogates(name) for name in names if isinstance(name, str) and name]
    return tuple(known[:MOST_MODELS])


def read_pieces(lines: Iterator[bytes], url: str) -> Iterator[ServerPiece]:
    """The pieces in the answer to POST /chat/completions.

    Args:
        lines: Of the answer.
        url: For errors.

    Yields:
        Pieces; the last one has `finish`.

    Raises:
        ServerError: A line is something else, or the answer breaks off.
    """
    thoughts, halves = _Thoughts(), _Halves()
    finish = None
    for line in _contents(lines, url):
        if line == b"[DONE]":
            break
        piece = _read_piece(line, url, thoughts)
        finish = piece.finish or finish
        text = halves.join(piece.text)
        if text or piece.tokens:
            yield ServerPiece(text, piece.tokens, None)
    else:
        if finish is None:
            raise make_broke_off_error(url)
    yield ServerPiece(halves.end() + thoughts.end(), (), finish or "stop")


def read_json(body: bytes) -> object | None:
    """JSON, or None for what is none."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def make_garbage_error(url: str, found: bytes) -> ServerError:
    """The error for an answer of another kind."""
    shown = found[:_QUOTED].decode("utf-8", "replace")
    return ServerError(
        f"{url} answers, but not as an OpenAI-compatible server does: {shown!r}; check the address "
        "(it usually ends in /v1)",
        code="server-garbage",
        url=url,
        problem=shown,
    )


def make_broke_off_error(url: str) -> ServerError:
    """The error for an answer without an end."""
    return ServerError(
        f"{url} broke off in the middle of its answer; look into its log, then try again",
        code="server-broke-off",
        url=url,
    )


def _contents(lines: Iterator[bytes], url: str) -> Iterator[bytes]:
    """What stands behind `data:`; an answer that came whole counts as one."""
    for line in lines:
        line = line.strip()
        if line.startswith(b"data:"):
            yield line[5:].strip()
        elif line.startswith((b"{", b"[")):  # the server does not stream: one JSON in all
            yield from (line + b"".join(lines), b"[DONE]")
            return
        elif line and not line.startswith((b":", b"event:", b"id:", b"retry:")):
            raise make_garbage_error(url, line)


def _read_piece(line: bytes, url: str, thoughts: _Thoughts) -> ServerPiece:
    found = read_json(line)
    if not isinstance(found, Mapping):
        raise make_garbage_error(url, line)
    if "error" in found:
        raise _make_own_error(url, found["error"])
    choices = found.get("choices")
    if not isinstance(choices, list) or not all(isinstance(c, Mapping) for c in choices):
        raise make_garbage_error(url, line)
    if not choices:  # the last piece of some servers holds the usage alone
        return ServerPiece("", (), None)
    choice = choices[0]
    said = choice.get("delta") or choice.get("message") or {}
    if not isinstance(said, Mapping):
        raise make_garbage_error(url, line)
    thought = next((said[name] for name in _THOUGHTS if said.get(name)), "")
    text = said.get("content") or ""
    if not isinstance(text, str) or not isinstance(thought, str):
        raise make_garbage_error(url, line)
    finish = choice.get("finish_reason")
    tokens = _read_tokens(choice.get("logprobs"))
    return ServerPiece(
        thoughts.wrap(thought, text), tokens, None if finish is None else str(finish)
    )


def _make_own_error(url: str, problem: object) -> ServerError:
    said = problem.get("message", problem) if isinstance(problem, Mapping) else problem
    quoted = replace_lone_surrogates(str(said)[:_QUOTED])
    return ServerError(
        f"{url} stopped with an error of its own: {quoted}; look into its log",
        code="server-failed",
        url=url,
        problem=quoted,
    )


class _Thoughts:
    """Puts thoughts that come in a field of their own between tags."""

    def __init__(self) -> None:
        self._inside = False

    def wrap(self, thought: str, text: str) -> str:
        before = ""
        if thought:
            before = thought if self._inside else f"<think>{thought}"
            self._inside = True
        if text and self._inside:
            before += "</think>"
            self._inside = False
        return before + text

    def end(self) -> str:
        was, self._inside = self._inside, False
        return "</think>" if was else ""


class _Halves:
    r"""Puts the halves of a character together that come in two pieces: "\ud83d", then "\ude00"."""

    def __init__(self) -> None:
        self._held = ""

    def join(self, text: str) -> str:
        text = self._held + text
        self._held = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        return replace_lone_surrogates(text.removesuffix(self._held))

    def end(self) -> str:
        return replace_lone_surrogates(self._held)


def _read_tokens(found: object) -> tuple[ServerToken, ...]:
    """Tokens with log-probabilities; entries that hold none are left out."""
    listed = found.get("content") if isinstance(found, Mapping) else None
    tokens = []
    for entry in listed if isinstance(listed, list) else ():
        known = _read_choice(entry)
        if known is None:
            continue
        others = entry.get("top_logprobs")
        read = map(_read_choice, others if isinstance(others, list) else ())
        ranked = sorted((other for other in read if other), key=lambda other: -other[1])
        tokens.append(ServerToken(*known, tuple(ranked)))
    return tuple(tokens)


def _read_choice(entry: object) -> tuple[str, float] | None:
    if not isinstance(entry, Mapping):
        return None
    chance, text = entry.get("logprob"), entry.get("token")
    if not isinstance(chance, int | float) or not math.isfinite(chance):
        return None
    raw = entry.get("bytes")
    if isinstance(raw, list) and all(isinstance(b, int) and 0 <= b < 256 for b in raw) and raw:
        return bytes(raw).decode("utf-8", "replace"), min(float(chance), 0.0)
    if not isinstance(text, str):
        return None
    return replace_lone_surrogates(text), min(float(chance), 0.0)
