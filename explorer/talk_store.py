"""The conversations of all visitors, each in a file of its own below its owner's folder.

    <home>/conversations/<hash of the owner>/<name>.json     line 1: title and time; line 2: all

Who has no owner's id finds nothing of his: names are looked for in one folder only. Two pages on
one conversation lose nothing: what is saved is put together with what was saved before.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import DataError
from explorer.talk import Talk
from explorer.talk_file import MOST_FILE_BYTES, read_talk, write_talk
from explorer.training.durable_files import write_durably

TALKS_FOLDER = "conversations"
MOST_TALKS = 200  # of one visitor
MOST_OWNER_BYTES = 200 * 10**6
_NAME = re.compile(r"[0-9a-f]{16}")


@dataclass(frozen=True)
class TalkEntry:
    """A conversation in the list.

    Args:
        id: Its name.
        title: Its first question.
        changed_at: When it was saved last, in seconds since 1970.
    """

    id: str
    title: str
    changed_at: float


class TalkStore:
    """Conversations by owner. Safe to use from any thread.

    Args:
        home: The app's folder; nothing is created before something is saved.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / TALKS_FOLDER
        self._lock = threading.Lock()

    def list(self, owner: str) -> tuple[TalkEntry, ...]:
        """An owner's conversations, the one changed last first."""
        found = [entry for path in self._files(owner) if (entry := _read_entry(path))]
        return tuple(sorted(found, key=lambda entry: -entry.changed_at))

    def load(self, owner: str, name: str) -> Talk:
        """One conversation.

        Raises:
            DataError: There is none of this name that belongs to the owner, or its file is
                damaged.
        """
        path = self._path(owner, name)
        try:
            _, _, content = path.read_text(encoding="utf-8").partition("\n")
        except (OSError, UnicodeDecodeError):
            raise _missing() from None
        return read_talk(content, name)

    def save(self, owner: str, talk: Talk) -> Talk:
        """Keep a conversation.

        Args:
            owner: Whose it is.
            talk: The conversation; one without messages is not kept.

        Returns:
            The same, with the branches that another page saved meanwhile.

        Raises:
            DataError: There are too many, or they take too much room.
        """
        if not talk.nodes:
            return talk
        path = self._path(owner, talk.id)
        with self._lock:
            if path.exists():
                talk = talk.merged(self.load(owner, talk.id))
            talk = talk.lightened()
            head = json.dumps({"title": talk.title, "changed_at": time.time()}, ensure_ascii=False)
            content = f"{head}\n{write_talk(talk)}".encode("utf-8", "replace")
            self._check_room(owner, path, len(content))
            self._write(path, content)
        return talk

    def delete(self, owner: str, name: str) -> None:
        """Delete a conversation.

        Raises:
            DataError: There is none of this name that belongs to the owner.
        """
        try:
            self._path(owner, name).unlink()
        except OSError:
            raise _missing() from None

    def _write(self, path: Path, content: bytes) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_durably(path, content)
        except OSError as error:
            raise DataError(
                f"the conversation could not be saved ({error}); free some space, or set "
                "GLASSBOX_HOME to a folder that this program may write to",
                code="chat-not-saved",
                problem=str(error),
            ) from error

    def _check_room(self, owner: str, path: Path, n_bytes: int) -> None:
        sizes = {other: other.stat().st_size for other in self._files(owner)}
        sizes[path] = n_bytes
        if len(sizes) > MOST_TALKS or n_bytes > MOST_FILE_BYTES:
            raise _full(len(sizes))
        if sum(sizes.values()) > MOST_OWNER_BYTES:
            raise _full(len(sizes))

    def _files(self, owner: str) -> Iterator[Path]:
        folder = self._owner_folder(owner)
        yield from folder.glob("*.json") if folder.is_dir() else ()

    def _path(self, owner: str, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise _missing()
        return self._owner_folder(owner) / f"{name}.json"

    def _owner_folder(self, owner: str) -> Path:
        # hashed: an owner's id opens his conversations, and any text may be sent as one
        return self._folder / hashlib.sha256(owner.encode("utf-8", "replace")).hexdigest()[:32]


def _read_entry(path: Path) -> TalkEntry | None:
    """What the list says of a file; a damaged one is not listed."""
    try:
        with path.open(encoding="utf-8") as file:
            head = json.loads(file.readline())
        return TalkEntry(path.stem, str(head["title"]), float(head["changed_at"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _missing() -> DataError:
    return DataError(
        "this conversation is not there: it was deleted, or it belongs to another browser; choose "
        "another, or begin a new one",
        code="chat-missing",
    )


def _full(count: int) -> DataError:
    return DataError(
        f"there is no more room for conversations ({count} are kept); delete some",
        code="chat-full",
        count=count,
    )
