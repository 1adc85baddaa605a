"""What a number format costs of a model's quality: perplexity on a sample text, beside float32.

    float32   read the sample ──► perplexity ─┐
    int8      read the sample ──► perplexity ─┴─► how much worse

Both are measured when somebody asks, never looked up: the loss depends on the model. The sample is
a page of prose written for this purpose (assets/samples/reading.txt), so that no model has seen it.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from explorer.errors import ConfigError, Stopped
from explorer.number_formats import DEFAULT_DTYPE, join_dtype, split_dtype
from explorer.perplexity import Perplexity, stream_perplexity
from explorer.store_records import LoadStep

if TYPE_CHECKING:
    from models.loading import LoadedModel

SAMPLE = Path(__file__).parent.parent / "assets" / "samples" / "reading.txt"
# Short, so that progress moves and Stop acts soon; the same for both formats, so the ratio is fair.
WINDOW_TOKENS = 128


class Store(Protocol):
    """What is needed of the model store."""

    def open(self, source: str, owner: str) -> Iterator[LoadStep]:
        """Load a model, reporting progress."""

    def summary(self, source: str, owner: str) -> Any:
        """Describe a loaded model; None when it is not loaded."""

    def lease(
        self, source: str, owner: str, *, cancelled: Callable[[], bool] | None = None
    ) -> "AbstractContextManager[LoadedModel]":
        """Hold a loaded model while it is used."""

    def unload(self, source: str, owner: str) -> None:
        """Drop a loaded model."""


@dataclass(frozen=True)
class FormatCost:
    """The same text, read by the same model in two number formats.

    Args:
        dtype: The format that was compared with float32.
        exact: In float32.
        rounded: In the other.
    """

    dtype: str
    exact: Perplexity
    rounded: Perplexity

    @property
    def added_share(self) -> float:
        """By how much perplexity grew: 0.01 is one percent; below 0 it fell by chance."""
        return self.rounded.perplexity / self.exact.perplexity - 1


@dataclass(frozen=True)
class CostStep:
    """How far a measurement is.

    Args:
        phase: `loading` a model, `measuring`, or `done`.
        dtype: The format that is at work.
        done_share: Of this phase, 0 to 1; None while unknown.
        cost: The result, in the phase `done` only.
    """

    phase: Literal["loading", "measuring", "done"]
    dtype: str
    done_share: float | None = None
    cost: FormatCost | None = None


def measure_format_cost(
    store: Store,
    source: str,
    owner: str,
    *,
    stopped: Callable[[], bool] = lambda: False,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[CostStep]:
    """Measure what the format of a source costs; models loaded for it are unloaded again.

    One format after the other, so that the two need not fit into memory together.

    Args:
        store: The models.
        source: With a number format other than float32, such as `gpt2#int8`.
        owner: Id of the visitor.
        stopped: Asked between two passes and two steps of loading; `ModelStore.cancel` ends a
            load at once.
        turn: Entered for each forward pass.

    Yields:
        Steps; the last one has the result.

    Raises:
        ConfigError: The source names float32, or no model.
        Stopped: `stopped()` became true.
        ExplorerError: The model cannot be opened; see `ModelStore.open`.
    """
    bare, dtype = split_dtype(source)
    if not bare or dtype == DEFAULT_DTYPE:
        raise ConfigError(
            "there is nothing to compare float32 with; choose a model, and bfloat16 or int8",
            code="format-cost-nothing",
        )
    found = {}
    for one in (DEFAULT_DTYPE, dtype):
        for step in _measure_one(store, join_dtype(bare, one), owner, stopped, turn):
            if isinstance(step, Perplexity):
                found[one] = step
            else:
                yield step
    yield CostStep("done", dtype, 1.0, FormatCost(dtype, found[DEFAULT_DTYPE], found[dtype]))


def _measure_one(
    store: Store,
    source: str,
    owner: str,
    stopped: Callable[[], bool],
    turn: Callable[[], AbstractContextManager[object]],
) -> Iterator[CostStep | Perplexity]:
    dtype = split_dtype(source)[1]
    was_here = store.summary(source, owner) is not None
    try:
        yield from _load(store, source, owner, stopped)
        with store.lease(source, owner, cancelled=stopped) as loaded:
            yield CostStep("measuring", dtype, 0.0)
            for step in stream_perplexity(
                loaded, read_sample(), window_tokens=WINDOW_TOKENS, turn=turn
            ):
                _check(stopped)
                yield CostStep("measuring", dtype, step.so_far.n_tokens / step.total_tokens)
            yield step.so_far
    finally:
        if not was_here:
            store.unload(source, owner)


def _load(store: Store, source: str, owner: str, stopped: Callable[[], bool]) -> Iterator[CostStep]:
    dtype = split_dtype(source)[1]
    yield CostStep("loading", dtype)
    for step in store.open(source, owner):
        _check(stopped)
        share = step.done_bytes / step.total_bytes if step.total_bytes else None
        yield CostStep("loading", dtype, share)
    _check(stopped)


def _check(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Stopped("the measurement was stopped")


@cache
def read_sample() -> str:
    """The sample text."""
    return SAMPLE.read_text(encoding="utf-8")
