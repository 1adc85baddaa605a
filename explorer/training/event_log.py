"""`events.jsonl`: one event a line, only ever added to.

A process that was killed may leave half a line at the end; a reader waits for its end, and the next
writer closes it, after which it is a line that no reader understands and passes over.
"""

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Self

from explorer.training.events import Event, Started, event_from_json, event_to_json
from models.errors import JobError


class EventLog:
    """Writes events; one process at a time, the one that holds the run's lock.

    Args:
        path: The file; made if it is not there.

    Raises:
        OSError: It cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("ab")
        self._end_torn_line(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, event: Event, *, durable: bool = False) -> None:
        """Add one event; readers see it at once.

        Args:
            event: What happened.
            durable: Wait until it has reached the disk.

        Raises:
            OSError: The disk is full or gone.
        """
        line = json.dumps(event_to_json(event), ensure_ascii=False, allow_nan=False) + "\n"
        self._file.write(line.encode())
        self._file.flush()
        if durable:
            os.fsync(self._file.fileno())

    def _end_torn_line(self, path: Path) -> None:
        size = path.stat().st_size
        if size:
            with path.open("rb") as file:
                file.seek(size - 1)
                torn = file.read(1) != b"\n"
            if torn:
                self._file.write(b"\n")
                self._file.flush()


class EventTail:
    """Reads events as they come, each byte once.

    Args:
        path: The file; it may not be there yet.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._rest = b""

    def is_shorter(self) -> bool:
        """Whether the file has lost what was read already: then it has to be read anew."""
        try:
            return self._path.stat().st_size < self._offset
        except OSError:
            return self._offset > 0

    def read_new(self) -> list[Event]:
        """The events since the last call; lines that are no event of ours are passed over.

        Raises:
            JobError: The file is there and cannot be read.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                content = file.read()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise JobError(
                f"{self._path.name} of run {self._path.parent.name} cannot be read ({error}); put "
                "the file back as it was, or start a new run",
                code="run-file",
                run=self._path.parent.name,
                file=self._path.name,
                problem=str(error),
            ) from None
        self._offset += len(content)
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [event for line in lines if (event := _parse(line)) is not None]


def read_events(path: Path) -> list[Event]:
    """All events that count: what was lost in a crash, and computed again, is left out."""
    return drop_lost(EventTail(path).read_new())


def drop_lost(events: Iterable[Event]) -> list[Event]:
    """Leave out what came after the checkpoint that a later process went on from."""
    kept: list[Event] = []
    for event in events:
        if isinstance(event, Started):
            kept = [earlier for earlier in kept if earlier.step <= event.step]
        kept.append(event)
    return kept


def _parse(line: bytes) -> Event | None:
    try:
        values = json.loads(line)
        return event_from_json(values) if isinstance(values, dict) else None
    except (ValueError, RecursionError):  # torn by a crash, or written by hand
        return None
