"""A small store of models for tests of the page: no torch, no files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from explorer.errors import SourceError
from explorer.store_records import CatalogueEntry, LoadStep, ModelSummary


def make_summary(id: str, name: str = "SmolLM2-135M-Instruct", **changes: Any) -> ModelSummary:
    summary = ModelSummary(
        id=id,
        name=name,
        family="Llama",
        n_parameters=134_515_008,
        n_bytes=538_060_032,
        dtype="float32",
        origin="offline pack",
        context_length=2048,
        n_layers=30,
        n_heads=9,
        n_kv_heads=3,
        has_chat=True,
    )
    return replace(summary, **changes)


CATALOGUE = (
    CatalogueEntry(
        "smollm2-135m-instruct", "SmolLM2-135M-Instruct", "Llama", 98_000_000, "Apache-2.0", "here"
    ),
    CatalogueEntry("gpt2", "GPT-2", "GPT-2", 548_000_000, "MIT", "download"),
    CatalogueEntry("qwen3-0.6b", "Qwen3-0.6B", "Qwen3", 1_503_000_000, "Apache-2.0", "download"),
)


class FakeStore:
    """Opens anything that is not in `missing`, in the given steps."""

    def __init__(self, *, steps: tuple[LoadStep, ...] = (), broken: bool = False) -> None:
        self.steps = steps or (LoadStep("resolving"), LoadStep("reading", 40, 98))
        self.broken = broken
        self.missing = {"missing"}
        self.opened: list[tuple[str, str]] = []
        self.cancelled: list[tuple[str, str]] = []
        self.loaded: dict[str, ModelSummary] = {}

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        return CATALOGUE

    def open(self, source: str, owner: str) -> Iterator[LoadStep]:
        self.opened.append((source, owner))
        yield from self.steps
        if self.broken:
            raise RuntimeError("a fault of ours")
        if source in self.missing:
            raise SourceError(f"{source!r} was not found; check the spelling.")
        names = {entry.id: entry.name for entry in CATALOGUE}
        self.loaded[source] = make_summary(source, names.get(source, source))
        yield LoadStep("ready", summary=self.loaded[source])

    def summary(self, source: str, owner: str) -> ModelSummary | None:
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
