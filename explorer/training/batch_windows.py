"""Which windows of the text a step reads: the order of an epoch, drawn again.

Windows are numbered as in `explorer/datasets/windows.py`; a step takes the next batches of the
epoch's order. The same seed draws the same order, so nothing has to be written down in training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.datasets.windows import TokenWindows
from models.errors import ConfigError

if TYPE_CHECKING:
    from explorer.training.run_config import RunConfig
    from explorer.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True)
class BatchWindow:
    """One window of a batch.

    Args:
        number: Of the window, from 0.
        first_token: Place of its first token in the training part.
        text: What the model reads.
        target: The token after its end, as text.
    """

    number: int
    first_token: int
    text: str
    target: str


@dataclass(frozen=True, kw_only=True)
class StepWindows:
    """What one optimiser step reads.

    Args:
        step: The step, from 1.
        epoch: Passes over the training part when it begins.
        n_windows: Windows of the training part.
        windows: Those of the step, in the order of its forward passes.
    """

    step: int
    epoch: float
    n_windows: int
    windows: tuple[BatchWindow, ...]


@dataclass(frozen=True)
class _Numbered:
    """Stands for the examples where only their number counts."""

    n_examples: int


def read_step_windows(run: RunFolder, config: RunConfig, step: int) -> StepWindows:
    """Draw again what a step read, or will read.

    Args:
        run: Files of the run.
        config: Its configuration.
        step: Of the run, 1 to its last.

    Raises:
        ConfigError: There is no such step.
    """
    from explorer.training.batch_feed import BatchFeed
    from models.tokenizers.files import load_tokenizer

    if not 1 <= step <= config.n_steps:
        raise ConfigError(
            f"there is no step {step}; choose 1 to {config.n_steps}",
            code="run-no-step",
            step=step,
            last=config.n_steps,
        )
    data = config.data
    ids = np.load(run.tokens_file("training"), mmap_mode="r", allow_pickle=False)
    windows = TokenWindows(ids, data.context, data.stride)
    feed = BatchFeed(
        _Numbered(windows.n_windows),  # type: ignore[arg-type]
        data.batch_size,
        shuffle=data.shuffle,
        seed=config.seed,
    )
    for _ in range((step - 1) * data.accumulate):
        feed.next_numbers()
    epoch = feed.epoch
    numbers = [n for _ in range(data.accumulate) for n in feed.next_numbers()]
    inputs, targets = windows.batch(numbers)
    tokenizer = load_tokenizer(run.tokenizer_folder)
    found = tuple(
        BatchWindow(
            number=number,
            first_token=number * windows.step,
            text=tokenizer.decode(row.tolist()),
            target=tokenizer.decode([int(following[-1])]),
        )
        for number, row, following in zip(numbers, inputs, targets, strict=True)
    )
    return StepWindows(step=step, epoch=epoch, n_windows=windows.n_windows, windows=found)
