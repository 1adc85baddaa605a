"""A small store of models for tests of the page: no torch, no files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from explorer.errors import SourceError


@dataclass(frozen=True)
class FakeEntry:
    id: str
    name: str
    family: str
    size_bytes: int
    licence: str
    presence: str


@dataclass(frozen=True)
class FakeSummary:
    id: str
    name: str = "SmolLM2-135M-Instruct"
    family: str = "Llama"
    n_parameters: int = 134_515_008
    n_bytes: int = 538_060_032
    dtype: str = "float32"
    origin: str = "offline pack"
    context_length: int = 2048
    n_layers: int = 30
    n_heads: int = 9
    has_chat: bool = True


@dataclass(frozen=True)
class FakeStep:
    phase: str
    done_bytes: int = 0
    total_bytes: int | None = None
    bytes_per_s: float | None = None
    seconds_left: float | None = None
    summary: FakeSummary | None = None


CATALOGUE = (
    FakeEntry(
        "smollm2-135m-instruct", "SmolLM2-135M-Instruct", "Llama", 98_000_000, "Apache-2.0", "here"
    ),
    FakeEntry("gpt2", "GPT-2", "GPT-2", 548_000_000, "MIT", "download"),
    FakeEntry("qwen3-0.6b", "Qwen3-0.6B", "Qwen3", 1_503_000_000, "Apache-2.0", "download"),
)


class FakeStore:
    """Opens anything that is not in `missing`, in the given steps."""

    def __init__(self, *, steps: tuple[FakeStep, ...] = (), broken: bool = False) -> None:
        self.steps = steps or (FakeStep("resolving"), FakeStep("reading", 40, 98))
        self.broken = broken
        self.missing = {"missing"}
        self.opened: list[tuple[str, str]] = []
        self.cancelled: list[tuple[str, str]] = []
        self.loaded: dict[str, FakeSummary] = {}

    def catalogue(self) -> tuple[FakeEntry, ...]:
        return CATALOGUE

    def open(self, source: str, owner: str) -> Iterator[FakeStep]:
        self.opened.append((source, owner))
        yield from self.steps
        if self.broken:
            raise RuntimeError("a fault of ours")
        if source in self.missing:
            raise SourceError(f"{source!r} was not found; check the spelling.")
        names = {entry.id: entry.name for entry in CATALOGUE}
        self.loaded[source] = FakeSummary(source, names.get(source, source))
        yield FakeStep("ready", summary=self.loaded[source])

    def summary(self, source: str, owner: str) -> FakeSummary | None:
        return self.loaded.get(source)

    @contextmanager
    def lease(self, source: str, owner: str, *, cancelled: object = None) -> Iterator[object]:
        yield self.loaded[source]

    def tokenizer(self, source: str, owner: str) -> object:
        raise SourceError(f"{source!r} has no tokenizer here.")

    def cancel(self, source: str, owner: str) -> None:
        self.cancelled.append((source, owner))

    def unload(self, source: str, owner: str) -> None:
        self.loaded.pop(source, None)

    def keep_upload(self, files: Sequence[Path], owner: str) -> str:
        return f"upload:{len(files)}"
