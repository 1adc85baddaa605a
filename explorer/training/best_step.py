"""Which step was the best so far, and how long nothing has become better.

Prechelt 1998 ("Early Stopping - But When?"), section 2: the held-out loss falls, then rises again
where the training text is learned by heart; the weights at its lowest point are those to keep. What
a run began from is no outcome of it, so its start does not count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from explorer.training.events import Evaluated, Event


@dataclass
class BestStep:
    """The lowest held-out loss.

    Args:
        step: Where it was; None before the first evaluation after a step.
        loss: How low it was, in nats.
        n_worse: Evaluations since then.
    """

    step: int | None = None
    loss: float = math.inf
    n_worse: int = 0

    def take(self, event: Evaluated) -> bool:
        """Take an evaluation in; whether it is the best so far."""
        if event.step == 0:
            return False
        if event.validation_loss < self.loss:
            self.step, self.loss, self.n_worse = event.step, event.validation_loss, 0
            return True
        self.n_worse += 1
        return False


def find_best(events: Iterable[Event]) -> BestStep:
    """What `take` comes to after all evaluations of a run so far."""
    best = BestStep()
    for event in events:
        if isinstance(event, Evaluated):
            best.take(event)
    return best
