"""One load that several visitors wait for.

    visitor A ── join ─┐                         ┌─> A: progress ... ready
                       ├─> one thread that loads ┤
    visitor B ── join ─┘                         └─> B: progress ... ready

The load belongs to nobody: a visitor who closes his page does not end it for the others, and finds
it further along when he comes back. It is stopped when everybody who joined has cancelled.
"""

import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from explorer.errors import ExplorerError, Stopped
from explorer.model_shelf import ShelvedModel
from explorer.slots import CHECK_EVERY_S
from explorer.store_records import LoadStep

if TYPE_CHECKING:
    from models.sources import ResolvedSource


class SharedLoad:
    """State of one load, guarded by the condition that the store uses for everything.

    Args:
        changed: Held around every change, notified after it.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._step = LoadStep("resolving")
        self._n_steps = 0
        self._stopping = False
        self.owners: set[str] = set()
        self.openers: set[str] = set()  # owners who want the weights, not only the tokenizer
        self.leases = 0  # streams that wait for the model, to use it at once
        self.resolved: ResolvedSource | None = None
        self.model: ShelvedModel | None = None
        self.finished = False
        self._error: BaseException | None = None

    def join(self, owner: str, *, weights: bool) -> None:
        """Wait for this load too. Called with the condition held, before it has finished."""
        self.owners.add(owner)
        if weights:
            self.openers.add(owner)

    def leave(self, owner: str) -> None:
        """Wait no longer. Called with the condition held."""
        self.owners.discard(owner)
        self.openers.discard(owner)
        self._changed.notify_all()

    def report(self, step: LoadStep) -> None:
        """Tell everybody who waits what has been done; called by the thread that loads."""
        with self._changed:
            if not self.finished:  # a download's own threads may speak once more after its end
                self._step = step
                self._n_steps += 1
                self._changed.notify_all()

    def is_cancelled(self) -> bool:
        """Whether everybody has left; stays true until `try_again`, even if somebody joins."""
        with self._changed:
            self._stopping = self._stopping or not self.owners
            return self._stopping

    def try_again(self) -> bool:
        """After the load has ended early: whether somebody joined after it had been stopped."""
        with self._changed:
            again = self._stopping and bool(self.owners)
            self._stopping = False
            return again

    def finish(
        self, *, model: ShelvedModel | None = None, error: BaseException | None = None
    ) -> None:
        """End the load, for all who wait. Called with the condition held."""
        self.model = model
        self.finished = True
        self._error = None if error is None else _own_copy(error)
        if model is not None:
            self._step = LoadStep(
                "ready", model.summary.n_bytes, model.summary.n_bytes, summary=model.summary
            )
        self._n_steps += 1
        self._changed.notify_all()

    def follow(
        self,
        owner: str,
        *,
        until: Callable[[], bool],
        cancelled: Callable[[], bool] | None = None,
    ) -> Iterator[LoadStep]:
        """The steps from now on, until the load has finished or `until()` is true.

        A slow reader skips steps and always gets the newest one.

        Args:
            owner: One who has joined.
            until: Asked with the condition held, after every change.
            cancelled: Asked while waiting; true stops waiting, not the load.

        Raises:
            Stopped: This owner has left, or `cancelled()` became true.
            BaseException: Whatever ended the load, for everybody who waits for it.
        """
        seen = -1
        while True:
            with self._changed:
                while self._n_steps == seen and owner in self.owners and not until():
                    if cancelled is not None and cancelled():
                        raise Stopped("waiting for the model was stopped")
                    self._changed.wait(None if cancelled is None else CHECK_EVERY_S)
                if owner not in self.owners:
                    raise Stopped("opening the model was cancelled")
                reached = until()
                if self._error is not None and not reached:
                    raise _own_copy(self._error)
                step, seen = self._step, self._n_steps
                done = self.finished or reached
            yield step
            if done:
                return


def _own_copy(error: BaseException) -> BaseException:
    """The error as it is kept, and as each one who waits gets it.

    An expected error is copied without its traceback, whose frames would keep a half-read model
    alive as long as a page holds the error. A fault of ours keeps it, for the log.
    """
    return error.anew() if isinstance(error, ExplorerError) else error
