"""Windows of a long text, and the order in which an epoch goes through them.

A language model learns to predict the next token, so the targets of a window are its inputs moved
on by one. With context 4 and stride 4:

    ids        40  367 2885 1464 1807 3619  402  271 10899 ...
    window 0  [40  367 2885 1464]              targets [367 2885 1464 1807]
    window 1                     [1807 3619  402  271]  targets [3619 402 271 10899]

Window i starts at i * stride, for all starts with start + context < len(ids): the last target has
to be there too. A stride smaller than the context lets windows overlap.

Source: *Build a Large Language Model (From Scratch)* (2024), section 2.6. The order of an epoch is
the one of `torch.utils.data.DataLoader` (PyTorch 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from explorer.errors import ConfigError

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, eq=False)
class TokenWindows:
    """The windows of one text.

    Args:
        ids: All tokens of the text, one dimension, any integer type; may be a memory-mapped file.
        context: Tokens in a window.
        stride: Tokens from the start of a window to the start of the next; None means `context`,
            so that each token is an input once.

    Raises:
        ConfigError: The text has no window, or a number cannot be used.
    """

    ids: np.ndarray
    context: int
    stride: int | None = None

    def __post_init__(self) -> None:
        if self.ids.ndim != 1 or self.ids.dtype.kind not in "iu":
            raise ValueError(f"ids are one row of integers, not {self.ids.dtype} {self.ids.shape}")
        count_windows(len(self.ids), self.context, self.stride)

    @property
    def step(self) -> int:
        """Tokens from the start of a window to the start of the next."""
        return self.context if self.stride is None else self.stride

    @property
    def n_windows(self) -> int:
        """How many windows the text has, at least 1."""
        return count_windows(len(self.ids), self.context, self.stride)

    def batch(self, indices: Sequence[int] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Put windows together.

        Args:
            indices: Numbers of B windows, each 0 to n_windows - 1.

        Returns:
            Inputs and targets, each int64 of shape (B, context).

        Raises:
            IndexError: There is no such window.
        """
        chosen = np.asarray(indices, dtype=np.int64)
        if chosen.size and not 0 <= chosen.min() <= chosen.max() < self.n_windows:
            raise IndexError(f"windows are 0 to {self.n_windows - 1}, not {chosen.tolist()}")
        places = (chosen * self.step)[:, None] + np.arange(self.context + 1)
        tokens = self.ids[places].astype(np.int64)
        return tokens[:, :-1], tokens[:, 1:]


def count_windows(n_tokens: int, context: int, stride: int | None = None) -> int:
    """How many windows a text has.

    Args:
        n_tokens: Tokens of the text.
        context: Tokens in a window.
        stride: As for `TokenWindows`.

    Raises:
        ConfigError: None, or a number cannot be used.
    """
    step = context if stride is None else stride
    _check_positive("context", context)
    _check_positive("stride", step)
    if n_tokens < context + 1:
        raise ConfigError(
            f"the text has {n_tokens} tokens, but a window of context={context} "
            f"needs {context + 1}: its tokens and the one after them; choose a longer "
            f"text or a smaller context",
            code="windows-text-short",
            found=n_tokens,
            context=context,
            needed=context + 1,
        )
    return len(range(0, n_tokens - context, step))


def draw_epoch_order(n: int, generator: torch.Generator, *, shuffle: bool) -> np.ndarray:
    """Draw the order of an epoch, as torch's `DataLoader` without workers does.

    The loader draws a base seed for its workers (even if it has none, and even unshuffled), then a
    seed for the sampler, whose own generator makes the permutation. With `generator` in the state
    of torch's global one, the order is the loader's, and so is the state afterwards; the global
    generator is not touched.

    Args:
        n: How many items there are.
        generator: Where the two seeds come from; it moves on.
        shuffle: Whether to permute; if not, the order is 0, 1, 2 ...

    Returns:
        The numbers 0 to n - 1 as int64, shape (n,).
    """
    import torch

    _draw_seed(generator)  # for the loader's workers
    if not shuffle:
        return np.arange(n, dtype=np.int64)
    sampler = torch.Generator().manual_seed(_draw_seed(generator))
    return torch.randperm(n, generator=sampler).numpy()


def _draw_seed(generator: torch.Generator) -> int:
    import torch

    return int(torch.empty((), dtype=torch.int64).random_(generator=generator).item())


def batches_of(order: np.ndarray, batch_size: int, *, drop_last: bool) -> Iterator[np.ndarray]:
    """Cut an order into batches.

    Args:
        order: Numbers of items, shape (n,).
        batch_size: Items in a batch.
        drop_last: Whether to leave out a last batch that is not full.

    Yields:
        Numbers of items, shape (batch_size,); the last one may be shorter.

    Raises:
        ConfigError: The batch size is below 1.
    """
    _check_positive("batch_size", batch_size)
    end = len(order) - len(order) % batch_size if drop_last else len(order)
    for start in range(0, end, batch_size):
        yield order[start : min(start + batch_size, end)]


def _check_positive(name: str, value: int) -> None:
    if value < 1:
        raise ConfigError(
            f"{name}={value} is below 1; choose 1 or more",
            code="windows-number-low",
            name=name,
            value=value,
        )
