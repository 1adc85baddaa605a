"""A loader without models: every stage can be held, can fail, and is counted.

Also the few steps that all tests of the store take.
"""

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

from explorer.errors import SourceError
from explorer.fitting import FitEstimate
from explorer.store import ModelStore
from explorer.store_records import CatalogueEntry, ModelSummary

LONG_S = 20  # only ever waited for when something is broken


@dataclass(frozen=True)
class FakeResolved:
    id: str
    name: str
    origin: str
    kind: str
    path: Path


@dataclass(frozen=True)
class FakeProgress:
    file: str
    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    seconds_left: float | None


class FakeModel:
    """Stands for a LoadedModel; weak references tell when it is gone."""

    def __init__(self, resolved: FakeResolved) -> None:
        self.resolved = resolved
        self.tokenizer = SimpleNamespace(of=resolved.id, whole=True)


class Gate:
    """A stage of loading that waits until the test lets it go on."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.go_on = threading.Event()

    def pass_through(self) -> None:
        self.arrived.set()
        assert self.go_on.wait(LONG_S), "the test never let this stage go on"

    def wait_for_arrival(self) -> None:
        assert self.arrived.wait(LONG_S), "this stage was never reached"


class FakeLoader:
    """Args: sizes: source -> bytes. Gates and failures are set by the test, by (stage, source)."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self.sizes = sizes
        self.calls: Counter[tuple[str, str]] = Counter()
        self.gates: dict[tuple[str, str], Gate] = {}
        self.failures: dict[tuple[str, str], list[BaseException]] = {}
        self.origins: dict[str, str] = {}
        self.downloads: set[str] = set()
        self.dtypes: list[str] = []

    def hold(self, stage: str, source: str) -> Gate:
        gate = self.gates[stage, source] = Gate()
        return gate

    def fail_once(self, stage: str, source: str, error: BaseException) -> None:
        self.failures.setdefault((stage, source), []).append(error)

    def _enter(self, stage: str, source: str) -> None:
        self.calls[stage, source] += 1
        if (stage, source) in self.gates:
            self.gates[stage, source].pass_through()
        if self.failures.get((stage, source)):
            raise self.failures[stage, source].pop(0)

    def catalogue(self, available_bytes: int) -> tuple[CatalogueEntry, ...]:
        size = self.sizes["tiny"]
        fits = {
            dtype: FitEstimate("too large", size, size, available_bytes)
            for dtype in ("float32", "int8")
        }
        return (CatalogueEntry("tiny", "Tiny", "Llama", size, "MIT", "here", fits),)

    def catalogue_ids(self) -> frozenset[str]:
        return frozenset({"tiny"})

    def resolve(
        self,
        source: str,
        *,
        on_progress: Callable[[FakeProgress], None],
        cancelled: Callable[[], bool],
    ) -> FakeResolved:
        self.calls["resolve", source] += 1
        if source in self.downloads:
            on_progress(FakeProgress("model.safetensors", 30, 100, 10.0, 7.0))
        gate = self.gates.get(("resolve", source))
        if gate is not None:
            gate.arrived.set()
            while not gate.go_on.wait(0.001):
                if cancelled():
                    raise SourceError("the download was cancelled", code="download-cancelled")
        if self.failures.get(("resolve", source)):
            raise self.failures["resolve", source].pop(0)
        origin = self.origins.get(source, "hub")
        return FakeResolved(source, source.upper(), origin, "folder", Path(source))

    def resolve_config(self, source: str, *, cancelled: Callable[[], bool]) -> FakeResolved | None:
        if source not in self.downloads:
            return None
        self._enter("resolve_config", source)
        return FakeResolved(source, source.upper(), "hub", "folder", Path(source))

    def estimate(self, resolved: FakeResolved, dtype: str) -> int:
        self._enter("estimate", resolved.id)
        return self.sizes[resolved.id]

    def load(self, resolved: FakeResolved, dtype: str) -> FakeModel:
        self.dtypes.append(dtype)
        model = FakeModel(resolved)  # half-read when it fails
        self._enter("load", resolved.id)
        return model

    def load_tokenizer(self, resolved: FakeResolved) -> SimpleNamespace:
        self._enter("tokenizer", resolved.id)
        return SimpleNamespace(of=resolved.id, whole=False)

    def summarise(self, loaded: FakeModel) -> ModelSummary:
        resolved = loaded.resolved
        return ModelSummary(
            id=resolved.id,
            name=resolved.name,
            family="Llama",
            n_parameters=7,
            n_bytes=self.sizes[resolved.id],
            dtype="float32",
            origin=resolved.origin,
            context_length=97,
            n_layers=5,
            n_heads=6,
            n_kv_heads=3,
            has_chat=True,
        )


def open_all(store: ModelStore, source: str, owner: str = "ann") -> list:
    return list(store.open(source, owner))


def phases(steps: list) -> list[str]:
    return [step.phase for step in steps]


def wait_until(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    for _ in range(LONG_S * 1000):
        if condition():
            return
        pause.wait(0.001)
    raise AssertionError("this never became true")


def joined(store: ModelStore, source: str) -> set[str]:
    """Owners who wait for a load now."""
    with store._changed:
        return {
            owner
            for key, load in store._loads.items()
            if key.source == source
            for owner in load.owners
        }


def result_of(future: Future):
    return future.result(LONG_S)
