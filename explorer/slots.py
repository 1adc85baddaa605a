"""Sharing the device between visitors: strictly first come, first served.

A turn is one forward pass or one token, never a whole answer. A stream that wants its next token
asks again and stands at the end of the queue, so two streams alternate:

    A writes a token │ B asks, waits │ A done, asks again, stands behind B │ B writes │ A writes ...

A released slot goes straight to the oldest waiting turn. With a plain lock the stream that has just
released it usually takes it again before the others wake up, and one answer blocks the rest.

A long prompt would still be one long turn; `models.generate` reads it in chunks, one turn each.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from explorer.errors import Stopped

# How often a waiting turn looks whether it is still wanted. People notice about 100 ms.
CHECK_EVERY_S = 0.05


class FairSlots:
    """A number of slots on the device, handed out in the order of asking.

    Args:
        n: Turns that may run at once: 1 on a CPU, where two passes only slow each other down.
        begin: Called at the start of each turn, in its thread; see `explorer.cpu_share`.

    Raises:
        ValueError: `n` is below 1.
    """

    def __init__(self, n: int = 1, *, begin: Callable[[], None] = lambda: None) -> None:
        if n < 1:
            raise ValueError(f"n={n} slots would let nobody run; choose at least 1")
        self._lock = threading.Lock()
        self._free = n
        self._begin = begin
        self._queue: deque[threading.Event] = deque()

    @property
    def waiting(self) -> int:
        """Turns that have asked and not yet begun."""
        with self._lock:
            return len(self._queue)

    @contextmanager
    def turn(self, *, cancelled: Callable[[], bool] | None = None) -> Iterator[None]:
        """Wait for a slot, hold it for one forward pass or one token, and pass it on.

        Do not yield to the page and do not ask for another turn inside one: with one slot the
        second would wait for the first for ever.

        Args:
            cancelled: Asked before the turn begins and while it waits; True gives up the place in
                the queue.

        Raises:
            Stopped: `cancelled()` became true before the turn began.
        """
        self._take(cancelled)
        try:
            self._begin()
            yield
        finally:
            self._pass_on()

    def _take(self, cancelled: Callable[[], bool] | None) -> None:
        if cancelled is not None and cancelled():
            raise Stopped("this turn was stopped before it asked for a slot")
        with self._lock:
            if self._free:  # a slot is free only when nobody waits
                self._free -= 1
                return
            granted = threading.Event()
            self._queue.append(granted)
        try:
            while not granted.wait(None if cancelled is None else CHECK_EVERY_S):
                if cancelled is not None and cancelled():
                    raise Stopped("this turn was stopped while it waited for a slot")
        except BaseException:  # also Ctrl-C: a slot that nobody takes would be lost for ever
            self._give_up(granted)
            raise

    def _give_up(self, granted: threading.Event) -> None:
        with self._lock:
            if not granted.is_set():
                self._queue.remove(granted)
                return
        self._pass_on()  # the slot came in the very moment that it was no longer wanted

    def _pass_on(self) -> None:
        with self._lock:
            if self._queue:
                self._queue.popleft().set()
            else:
                self._free += 1
