"""A conversation as JSON: on the disk, and in a file that a visitor takes along.

    {"format": "glassbox-conversation", "version": 1, "leaf": name,
     "messages": [{"id", "parent", "role", "text",
                   "model", "system", "settings": {...}, "finish", "starts_inside", "n_start",
                   "tokens": [{"id", "p", "rank", "entropy", "n_kept", "chosen", "text",
                               "alternatives": [[label, id, p], ...], "kept": [[label, p], ...]}]}]}

Model, system prompt, settings, seed and tokens of each answer are there, so that it can be written
again (`replay.py`). Such a file may have been edited by hand, or made by somebody else: everything
is checked, and what does not fit is named with its place.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_type_hints

from explorer.conversation import AnswerSettings, AnswerToken
from explorer.errors import DataError
from explorer.server_answer import UNKNOWN_ID
from explorer.talk import ROOT, Answer, Message, Talk, make_talk

FORMAT, VERSION = "glassbox-conversation", 1
MOST_FILE_BYTES = 30 * 10**6
MOST_MESSAGES = 5_000
LONGEST_TEXT = 2_000_000
_NAME = re.compile(r"[0-9A-Za-z_-]{1,64}")
_FINISHES = (None, "stop", "length", "context", "stopped")


def write_talk(talk: Talk) -> str:
    """The JSON of a conversation, with all branches.

    Args:
        talk: The conversation.
    """
    whole = {
        "format": FORMAT,
        "version": VERSION,
        "leaf": talk.leaf,
        "messages": [_say_message(node) for node in talk.nodes.values()],
    }
    return json.dumps(whole, ensure_ascii=False, allow_nan=False)


def _say_message(node: Message) -> dict[str, Any]:
    said = {"id": node.id, "parent": node.parent, "role": node.role, "text": node.text}
    answer = node.answer
    if answer is None:
        return said
    return {
        **said,
        "model": answer.source,
        "system": answer.system,
        "settings": asdict(answer.settings),
        "finish": answer.finish,
        "starts_inside": answer.starts_inside,
        "n_start": answer.n_start,
        "tokens": [_say_token(token) for token in answer.tokens],
    }


def _say_token(token: AnswerToken) -> dict[str, Any]:
    # six digits: what the page shows, and a third of the bytes
    ids = token.alternative_ids or (UNKNOWN_ID,) * len(token.alternatives)
    others = zip(token.alternatives, ids, strict=True)
    return {
        "id": token.id,
        "p": _short(token.probability),
        "rank": token.rank,
        "entropy": None if token.entropy_nats is None else _short(token.entropy_nats),
        "n_kept": token.n_kept,
        "chosen": token.chosen,
        "text": token.text,
        "alternatives": [[label, id_, _short(share)] for (label, share), id_ in others],
        "kept": [[label, _short(share)] for label, share in token.kept],
    }


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def read_talk(text: str | bytes, name: str = "") -> Talk:
    """A conversation from its JSON.

    Args:
        text: The file's content.
        name: Of the conversation; empty gives it a new one.

    Raises:
        DataError: It is no such file, or something in it does not fit.
    """
    if len(text) > MOST_FILE_BYTES:
        raise _refused(f"it has {len(text):,} bytes, and {MOST_FILE_BYTES:,} are read at most")
    try:
        whole = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(f"it is no JSON ({error})") from None
    if not isinstance(whole, Mapping) or whole.get("format") != FORMAT:
        raise _refused(f'"format" is not "{FORMAT}"')
    if whole.get("version") != VERSION:
        raise _refused(f'"version" is {whole.get("version")!r}, and {VERSION} is known')
    listed = whole.get("messages")
    if not isinstance(listed, list) or len(listed) > MOST_MESSAGES:
        raise _refused(f'"messages" is no list of at most {MOST_MESSAGES:,}')
    nodes: dict[str, Message] = {}
    for number, entry in enumerate(listed):
        message = _Entry(entry, f"messages[{number}]").message(nodes)
        nodes[message.id] = message
    leaf = whole.get("leaf")
    if leaf != ROOT and (not isinstance(leaf, str) or leaf not in nodes):
        raise _refused(f'"leaf" is {leaf!r}, which is no message')
    return make_talk(list(nodes.values()), leaf, name)


def _refused(problem: str) -> DataError:
    return DataError(
        f"this file is no conversation that can be opened: {problem}; export it anew, or mend it",
        code="chat-file",
        problem=problem,
    )


class _Entry:
    """One object of the file, read field by field; `where` tells its place."""

    def __init__(self, values: Any, where: str) -> None:
        if not isinstance(values, Mapping):
            raise _refused(f"{where} is no object")
        self._values, self._where = values, where

    def message(self, before: Mapping[str, Message]) -> Message:
        name, parent = self.text("id"), self.text("parent", "")
        if not _NAME.fullmatch(name) or name in before:
            raise self._wrong("id", "is no new name of letters and digits")
        if parent != ROOT and parent not in before:
            raise self._wrong("parent", "names no message before it")
        role = self.text("role")
        follows = before[parent].role if parent != ROOT else "assistant"
        if role not in ("user", "assistant") or role == follows == "assistant":
            raise self._wrong("role", f"cannot follow one of {follows}")
        said = self.text("text")
        answer = self._answer() if role == "assistant" and "model" in self._values else None
        return Message(name, parent, "user" if role == "user" else "assistant", said, answer)

    def text(self, name: str, default: str | None = None) -> str:
        found = self._values.get(name, default)
        if not isinstance(found, str) or len(found) > LONGEST_TEXT:
            raise self._wrong(name, f"is no text of at most {LONGEST_TEXT:,} characters")
        return found

    def number(self, name: str, least: float, most: float, default: Any = None) -> float:
        found = self._values.get(name, default)
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or not math.isfinite(found) or not least <= found <= most:
            raise self._wrong(name, f"is no number from {least:g} to {most:g}")
        return float(found)

    def whole(self, name: str, least: int, most: int, default: Any = None) -> int:
        found = self.number(name, least, most, default)
        if not found.is_integer():
            raise self._wrong(name, "is no whole number")
        return int(found)

    def switch(self, name: str) -> bool:
        found = self._values.get(name, False)
        if not isinstance(found, bool):
            raise self._wrong(name, "is neither true nor false")
        return found

    def _answer(self) -> Answer:
        listed = self._values.get("tokens", [])
        if not isinstance(listed, list):
            raise self._wrong("tokens", "is no list")
        where = f"{self._where}.tokens"
        tokens = tuple(_Entry(t, f"{where}[{i}]").token() for i, t in enumerate(listed))
        finish = self._values.get("finish")
        if finish not in _FINISHES:
            raise self._wrong("finish", f"is none of {', '.join(map(str, _FINISHES))}")
        return Answer(
            source=self.text("model"),
            settings=_Entry(self._values.get("settings"), f"{self._where}.settings").settings(),
            system=self.text("system", ""),
            tokens=tokens,
            n_start=self.whole("n_start", 0, len(tokens), 0),
            finish=finish,
            starts_inside=self.switch("starts_inside"),
        )

    def settings(self) -> AnswerSettings:
        """Every field within its range: moved into it, the answer would be another one."""
        kinds = get_type_hints(AnswerSettings)
        found: dict[str, Any] = {}
        for field in fields(AnswerSettings):
            if field.name not in self._values:
                continue
            if kinds[field.name] is bool:
                found[field.name] = self.switch(field.name)
                continue
            read = self.whole if kinds[field.name] is int else self.number
            found[field.name] = read(field.name, field.metadata["least"], field.metadata["most"])
        return AnswerSettings(**found)

    def token(self) -> AnswerToken:
        labels, ids, shares = [], [], []
        for label, id_, share in self._rows("alternatives", 3):
            labels.append(str(label))
            ids.append(self._id(id_))
            shares.append(self._share(share))
        unknown = (None, "")
        return AnswerToken(
            id=self.whole("id", -1, 2**31 - 1),
            probability=self.number("p", 0.0, 1.0),
            rank=self.whole("rank", 1, 2**31 - 1),
            alternatives=tuple(zip(labels, shares, strict=True)),
            alternative_ids=() if UNKNOWN_ID in ids else tuple(ids),
            entropy_nats=None
            if self._values.get("entropy") in unknown
            else self.number("entropy", 0.0, 100.0),
            kept=tuple((str(label), self._share(share)) for label, share in self._rows("kept", 2)),
            n_kept=None
            if self._values.get("n_kept") in unknown
            else self.whole("n_kept", 1, 2**31 - 1),
            chosen=self.switch("chosen"),
            text=self.text("text", ""),
        )

    def _rows(self, name: str, width: int) -> list[list[Any]]:
        rows = self._values.get(name, [])
        if not isinstance(rows, list) or len(rows) > 20:
            raise self._wrong(name, "is no list of at most 20")
        if not all(isinstance(row, list) and len(row) == width for row in rows):
            raise self._wrong(name, f"holds something that is no list of {width}")
        return rows

    def _id(self, found: Any) -> int:
        return _Entry({"id": found}, f"{self._where}.alternatives").whole("id", -1, 2**31 - 1)

    def _share(self, found: Any) -> float:
        return _Entry({"p": found}, f"{self._where}.alternatives").number("p", 0.0, 1.0)

    def _wrong(self, name: str, problem: str) -> DataError:
        found = f"{self._values.get(name)!r}"[:80]
        return _refused(f'"{name}" of {self._where} {problem}: {found}')
