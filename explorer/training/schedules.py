"""The learning rate of each step: a warm-up, then one of four courses.

    constant   ────────────        linear  ╲          cosine  ‾╲          wsd  ──────╲
             ╱                           ╱  ╲               ╱   ╲_           ╱        ╲

With W warm-up steps and N steps in all, step t (from 0) has this share of the highest rate, where
f is `final_share`:

    t < W      (t + 1) / W                             no step is spent at a rate of 0
    linear     1 - (1 - f) p                           p = (t - W) / (N - W)
    cosine     f + (1 - f) (1 + cos(π p)) / 2          SGDR, arXiv 1608.03983, eq. 5
    wsd        1, then linear over the last steps      MiniCPM, arXiv 2404.06395, section 4

p would reach 1 at step N, which is not taken: with a final share of 0 the last step still learns.
No torch here: the page draws the course before anything is loaded.
"""

import math

from explorer.training.run_config import OptimiserConfig, ScheduleConfig


def compute_learning_rate(
    optimiser: OptimiserConfig, schedule: ScheduleConfig, step: int, n_steps: int
) -> float:
    """The rate of one update.

    Args:
        optimiser: Says the highest rate.
        schedule: Says how it rises and falls.
        step: Updates made before this one; 0 is the first.
        n_steps: Updates in all. A warm-up longer than that never reaches the highest rate.
    """
    assert 0 <= step < n_steps
    if step < schedule.warmup_steps:
        return optimiser.learning_rate * (step + 1) / schedule.warmup_steps
    return optimiser.learning_rate * _share_after_warmup(schedule, step, n_steps)


def _share_after_warmup(schedule: ScheduleConfig, step: int, n_steps: int) -> float:
    final, start = schedule.final_share, schedule.warmup_steps
    if schedule.kind == "constant":
        return 1.0
    if schedule.kind == "wsd":
        start = max(start, n_steps - round(schedule.decay_share * n_steps))
    if step < start:
        return 1.0
    progress = (step - start) / (n_steps - start)
    if schedule.kind == "cosine":
        return final + (1 - final) * (1 + math.cos(math.pi * progress)) / 2
    return 1 - (1 - final) * progress
