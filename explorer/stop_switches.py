"""Stop buttons: a switch for each answer or job that a visitor has running.

The button is pressed in one request while another one works; they meet here, by an id that only
the visitor's page knows. A worker asks `is_set` between two tokens: stopping is a question of when
it is asked, never of killing anything.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

# A token takes less, a model that is being read looks at its switch more often.
LAST_WORD_S = 5.0


class StopSwitch(threading.Event):
    """Set when the work shall end.

    Attributes:
        superseded: The visitor is already looking at something else: end without a word.
    """

    superseded = False


class StopSwitches:
    """Switches by id. Safe to use from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
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
                self._lock.notify_all()

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

    def end(self, work_id: str, within_s: float = LAST_WORD_S) -> None:
        """As `supersede`, and wait until the work has ended, so that its last word is said.

        Without the wait, what the work was just sending could come after what takes its place, and
        stay on the page.

        Args:
            work_id: Id of the work.
            within_s: Longest time to wait.
        """
        with self._lock:
            switch = self._switches.get(work_id)
            self.supersede(work_id)
            self._lock.wait_for(
                lambda: switch is None or self._switches.get(work_id) is not switch, within_s
            )
