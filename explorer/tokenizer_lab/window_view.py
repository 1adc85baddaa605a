"""How a text becomes pairs of input and target, and in which batches they are read.

    windows   starts 0, stride, 2 stride ...     targets are inputs moved on by one
    overlap   a token is an input `context / stride` times where windows overlap

Windows are `explorer/datasets/windows.py`; their order is that of PyTorch's `DataLoader` after
`torch.manual_seed(seed)`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from explorer.datasets.windows import TokenWindows, batches_of, draw_epoch_order
from explorer.errors import ConfigError
from explorer.tokens import label_of

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer

MOST_TOKENS = 200_000  # of the text
SHOWN_TOKENS, SHOWN_BATCHES, SHOWN_ROWS = 48, 4, 16
MOST_NUMBER = 10_000


@dataclass(frozen=True, kw_only=True)
class WindowSetup:
    """What the form of the windows says.

    Args:
        context: Tokens of a window (`max_length`).
        stride: Tokens from the start of a window to the start of the next.
        batch_size: Windows of a batch.
        shuffle: Whether their order is drawn.
        drop_last: Whether a last batch that is not full is left out.
        seed: Of the draw.
    """

    context: int = field(default=4, metadata={"step": 1})
    stride: int = field(default=1, metadata={"step": 1})
    batch_size: int = field(default=1, metadata={"step": 1})
    shuffle: bool = False
    drop_last: bool = True
    seed: int = field(default=123, metadata={"step": 1})


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """One batch.

    Args:
        windows: Numbers of its windows.
        inputs: (B, context).
        targets: (B, context).
    """

    windows: tuple[int, ...]
    inputs: np.ndarray
    targets: np.ndarray


@dataclass(frozen=True, kw_only=True, eq=False)
class WindowView:
    """The windows of a text.

    Args:
        ids: All tokens.
        labels: The first `SHOWN_TOKENS` of them, readable.
        context: As asked.
        stride: As asked.
        n_windows: Windows of the text.
        n_batches: Batches of an epoch.
        n_left_out: Windows of a last batch that is dropped.
        n_unused: Tokens at the end that are in no window, neither as input nor as target.
        overlap: Tokens that a window shares with the next, as inputs.
        reads: How often each of the first `SHOWN_TOKENS` is an input.
        batch_of: For each of the first `SHOWN_ROWS` windows the number of its batch, from 0; None
            where it is left out.
        batches: The first and the last batches, at most `SHOWN_BATCHES` in all.
        batch_numbers: Their numbers, from 0.
    """

    ids: np.ndarray
    labels: tuple[str, ...]
    context: int
    stride: int
    n_windows: int
    n_batches: int
    n_left_out: int
    n_unused: int
    overlap: int
    reads: tuple[int, ...]
    batch_of: tuple[int | None, ...]
    batches: tuple[Batch, ...]
    batch_numbers: tuple[int, ...]


def compute_window_view(tokenizer: Tokenizer, text: str, setup: WindowSetup) -> WindowView:
    """Cut a text into windows and batches.

    Args:
        tokenizer: Cuts it into tokens.
        text: Any string.
        setup: How.

    Raises:
        ConfigError: A number cannot be used, or the text is too short or too long.
    """
    ids = np.array(tokenizer.encode(text), dtype=np.int64)
    labels = tuple(label_of(tokenizer, int(i)) for i in ids[:SHOWN_TOKENS])
    return view_windows(ids, labels, setup)


def view_windows(ids: np.ndarray, labels: tuple[str, ...], setup: WindowSetup) -> WindowView:
    """As `compute_window_view`, for a row of ids.

    Args:
        ids: All tokens, one dimension.
        labels: Of the first ones.
        setup: How.

    Raises:
        ConfigError: As for `compute_window_view`.
    """
    import torch

    _check(len(ids), setup)
    windows = TokenWindows(ids, setup.context, setup.stride)
    generator = torch.Generator().manual_seed(setup.seed)
    order = draw_epoch_order(windows.n_windows, generator, shuffle=setup.shuffle)
    batches = list(batches_of(order, setup.batch_size, drop_last=setup.drop_last))
    chosen = _choose(len(batches))
    last = (windows.n_windows - 1) * setup.stride + setup.context
    starts = np.arange(windows.n_windows) * setup.stride
    return WindowView(
        ids=ids,
        labels=labels,
        context=setup.context,
        stride=setup.stride,
        n_windows=windows.n_windows,
        n_batches=len(batches),
        n_left_out=windows.n_windows - sum(map(len, batches)),
        n_unused=len(ids) - 1 - last,
        overlap=max(0, setup.context - setup.stride),
        reads=tuple(_count_reads(starts, setup.context, len(labels))),
        batch_of=_batches_of_first(batches, min(SHOWN_ROWS, windows.n_windows)),
        batches=tuple(_read(windows, batches[i]) for i in chosen),
        batch_numbers=chosen,
    )


def _check(n_tokens: int, setup: WindowSetup) -> None:
    for name in ("context", "stride", "batch_size", "seed"):
        value, least = getattr(setup, name), 0 if name == "seed" else 1
        most = 2**63 - 1 if name == "seed" else MOST_NUMBER
        if not isinstance(value, int) or not least <= value <= most:
            problem = f"{name}={value!r} must be a whole number from {least} to {most:,}"
            raise ConfigError(problem, code="run-setting", problem=problem)
    if n_tokens > MOST_TOKENS:
        problem = f"the text has {n_tokens:,} tokens; at most {MOST_TOKENS:,} are shown as windows"
        raise ConfigError(problem, code="run-setting", problem=problem)


def _choose(n: int) -> tuple[int, ...]:
    """The first batches and the last two."""
    if n <= SHOWN_BATCHES:
        return tuple(range(n))
    return (*range(SHOWN_BATCHES - 2), n - 2, n - 1)


def _batches_of_first(batches: list[np.ndarray], n: int) -> tuple[int | None, ...]:
    found = {
        int(window): number for number, batch in enumerate(batches) for window in batch[batch < n]
    }
    return tuple(found.get(window) for window in range(n))


def _read(windows: TokenWindows, numbers: np.ndarray) -> Batch:
    inputs, targets = windows.batch(numbers)
    return Batch(windows=tuple(map(int, numbers)), inputs=inputs, targets=targets)


def _count_reads(starts: np.ndarray, context: int, n: int) -> list[int]:
    return [int(((starts <= i) & (i < starts + context)).sum()) for i in range(n)]
