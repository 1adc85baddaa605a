"""Stop buttons: a switch for each answer or job that a visitor has running.

The button is pressed in one request while another one works; they meet here, by an id that only
the visitor's page knows. A worker asks `is_set` between two tokens: stopping is a question of when
it is asked, never of killing anything.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class StopSwitch(threading.Event):
    """Set when the work shall end.

    Attributes:
        superseded: The visitor is already looking at something else: end without a word.
    """

    superseded = False


class StopSwitches:
    """Switches by id. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._switches: dict[str, StopSwitch] = {}

    @contextmanager
    def armed(self, work_id: str) -> Iterator[StopSwitch]:
        """A fresh switch for one piece of work; an earlier one of the same id is superseded.

        Args:
            work_id: Unguessable id of the visitor's work.
        """
        switch = StopSwitch()
        self.supersede(work_id)
        with self._lock:
            self._switches[work_id] = switch
        try:
            yield switch
        finally:
            with self._lock:
                if self._switches.get(work_id) is switch:
                    del self._switches[work_id]

    def is_running(self, work_id: str) -> bool:
        """Whether something of that id is running."""
        with self._lock:
            return work_id in self._switches

    def stop(self, work_id: str) -> bool:
        """Throw the switch; False when nothing of that id is running."""
        with self._lock:
            switch = self._switches.get(work_id)
        if switch is None:
            return False
        switch.set()
        return True

    def supersede(self, work_id: str) -> None:
        """End the work of that id, if there is any, without a word to the visitor."""
        with self._lock:
            switch = self._switches.get(work_id)
        if switch is not None:
            switch.superseded = True
            switch.set()
