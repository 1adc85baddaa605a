"""What the model store hands out, and what it needs of whoever loads the models."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from explorer.fitting import FitEstimate

if TYPE_CHECKING:  # `models` is imported when the first model is opened, not with the page
    from models.hub import FetchProgress
    from models.loading import LoadedModel
    from models.sources import ResolvedSource
    from models.tokenizers import Tokenizer

Presence = Literal["here", "download"]
LoadPhase = Literal["resolving", "downloading", "reading", "ready"]
Origin = Literal["bundled", "offline pack", "hub", "cache", "file", "folder", "upload", "run"]


@dataclass(frozen=True)
class CatalogueEntry:
    """A model that can be chosen from the list.

    Args:
        id: Its source string for `ModelStore.open`.
        name: For people.
        family: Architecture family.
        size_bytes: To download, or on disk.
        licence: SPDX id or the licence's own name.
        presence: `here` opens with no network; `download` needs it.
        fits: Number format -> whether it fits into memory now.
        size_is_counted: The size is not that of the files, but two bytes for each weight.
        gate_page: Page where its owner wants people to accept terms first; None without a gate, or
            when it is here already.
    """

    id: str
    name: str
    family: str
    size_bytes: int
    licence: str
    presence: Presence
    fits: Mapping[str, FitEstimate] = field(default_factory=dict)
    size_is_counted: bool = False
    gate_page: str | None = None

    def when_loaded(self, dtypes: Collection[str]) -> "CatalogueEntry":
        """The entry where the model is in memory in some formats: there it fits."""
        fits = {d: fit.as_loaded() if d in dtypes else fit for d, fit in self.fits.items()}
        return replace(self, fits=fits)


@dataclass(frozen=True)
class ModelSummary:
    """What a page says about a loaded model.

    Args:
        id: The source it was opened with.
        name: For people.
        family: Architecture family.
        n_parameters: Numbers in its weights; tied weights count once.
        n_bytes: Memory that they take here; without what belongs to `base_name`.
        dtype: Type of the weights in memory, such as `float32`.
        origin: Where it was found.
        context_length: Tokens that it was made to read at once.
        n_layers: Blocks.
        n_heads: Query heads a layer.
        n_kv_heads: Key/value heads a layer.
        has_chat: Whether it can hold a conversation; else it continues a text.
        chat_format: Name of the well-known format that stands in for a template; None when its
            files bring one, or when it has no chat.
        knows_thinking: Whether its template can turn thinking on and off.
        base_name: The model whose memory it stands on, itself only an adapter; "" for all others.
        n_base_bytes: Memory of that model's weights.
    """

    id: str
    name: str
    family: str
    n_parameters: int
    n_bytes: int
    dtype: str
    origin: Origin
    context_length: int
    n_layers: int
    n_heads: int
    n_kv_heads: int
    has_chat: bool
    chat_format: str | None = None
    knows_thinking: bool = False
    base_name: str = ""
    n_base_bytes: int = 0


@dataclass(frozen=True)
class LoadStep:
    """One event of opening a model.

    Args:
        phase: `resolving` (finding it), `downloading`, `reading` (weights into memory), `ready`.
        done_bytes: Bytes of this phase that are done.
        total_bytes: Bytes of this phase; None while unknown.
        bytes_per_s: Speed of the download; None in other phases and while unknown.
        seconds_left: Of the download; None while unknown.
        summary: The model, in the phase `ready` only.
    """

    phase: LoadPhase
    done_bytes: int = 0
    total_bytes: int | None = None
    bytes_per_s: float | None = None
    seconds_left: float | None = None
    summary: ModelSummary | None = None


class Loader(Protocol):
    """Finds and reads models. `explorer.model_loader.ModelLoader` is the real one."""

    def catalogue(self, available_bytes: int) -> tuple[CatalogueEntry, ...]:
        """Models that can be chosen from a list, measured against the memory that there is."""

    def catalogue_ids(self) -> frozenset[str]:
        """Their ids, without looking for them on the disk."""

    def resolve(
        self,
        source: str,
        *,
        on_progress: "Callable[[FetchProgress], None]",
        cancelled: Callable[[], bool],
    ) -> "ResolvedSource":
        """Find a source on this machine, downloading it if it is elsewhere."""

    def is_here(self, source: str) -> bool:
        """Whether a source opens without a network."""

    def resolve_config(
        self, source: str, *, cancelled: Callable[[], bool]
    ) -> "ResolvedSource | None":
        """Find the configuration of a source that has to be downloaded; None when it is here."""

    def estimate(self, resolved: "ResolvedSource", dtype: str) -> int:
        """Bytes of memory that reading it will take, from its configuration alone."""

    def load(self, resolved: "ResolvedSource", dtype: str) -> "LoadedModel":
        """Read its weights in a number format."""

    def load_adapted(
        self, resolved: "ResolvedSource", base: "LoadedModel", adapter: Path
    ) -> "LoadedModel | None":
        """Open it as an adapter on a base in memory; None where that base is another one."""

    def load_tokenizer(self, resolved: "ResolvedSource") -> "Tokenizer":
        """Read its tokenizer and nothing else."""

    def summarise(self, loaded: "LoadedModel") -> ModelSummary:
        """Say what a page shows about it."""
