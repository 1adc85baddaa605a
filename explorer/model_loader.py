"""The bridge from the store to `models`: finds, measures and reads models.

Everything of `models` is imported inside the functions, so that a page can be built and the list of
models shown without torch.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from explorer.store_records import CatalogueEntry, ModelSummary

if TYPE_CHECKING:
    from models.hub import FetchProgress
    from models.loading import LoadedModel
    from models.sources import ResolvedSource
    from models.tokenizers import Tokenizer


class ModelLoader:
    """Models as `models.load_model` reads them.

    Args:
        dtype: Type that weights get in memory.
        device: Where they go, such as `cpu` or `cuda`.
    """

    def __init__(self, *, dtype: str = "float32", device: str = "cpu") -> None:
        self._dtype = dtype
        self._device = device

    def catalogue(self) -> tuple[CatalogueEntry, ...]:
        """The registered models, and whether each opens without a network."""
        from models.registry import CATALOGUE
        from models.sources import find_local

        return tuple(
            CatalogueEntry(
                id=model.id,
                name=model.name,
                family=model.family,
                size_bytes=model.size_bytes,
                licence=model.licence,
                presence="download" if find_local(model.id) is None else "here",
            )
            for model in CATALOGUE.values()
        )

    def catalogue_ids(self) -> frozenset[str]:
        """Ids of the registered models."""
        from models.registry import CATALOGUE

        return frozenset(CATALOGUE)

    def resolve(
        self,
        source: str,
        *,
        on_progress: "Callable[[FetchProgress], None]",
        cancelled: Callable[[], bool],
    ) -> "ResolvedSource":
        """Find a source; see `models.sources.resolve_source`."""
        from models.sources import resolve_source

        return resolve_source(source, on_progress=on_progress, cancelled=cancelled)

    def estimate(self, resolved: "ResolvedSource") -> int:
        """Bytes of memory that the weights will take, counted from the configuration.

        Weights are read one tensor at a time, straight from the mapped file, so that nothing but
        the largest tensor comes on top.
        """
        from models.counting import count_parameters
        from models.loading import DTYPES, load_config

        return count_parameters(load_config(resolved)).unique * DTYPES[self._dtype].itemsize

    def load(self, resolved: "ResolvedSource") -> "LoadedModel":
        """Read the weights."""
        from models.loading import load_model

        return load_model(resolved, dtype=self._dtype, device=self._device)

    def load_tokenizer(self, resolved: "ResolvedSource") -> "Tokenizer":
        """Read the tokenizer only; no torch is imported."""
        from models.gguf_file import GgufFile
        from models.tokenizers import load_gguf_tokenizer, load_tokenizer

        if resolved.kind == "gguf":
            return load_gguf_tokenizer(GgufFile(resolved.path))
        return load_tokenizer(resolved.path)

    def summarise(self, loaded: "LoadedModel") -> ModelSummary:
        """What a page shows about a model."""
        info, config = loaded.info, loaded.config
        return ModelSummary(
            id=info.id,
            name=info.name,
            family=info.family,
            n_parameters=info.n_parameters,
            n_bytes=info.n_bytes,
            dtype=info.dtype,
            origin=info.origin,
            context_length=config.context_length,
            n_layers=config.n_layers,
            n_heads=config.attention.n_heads,
            n_kv_heads=config.attention.n_kv_heads,
            has_chat=loaded.chat is not None,
        )
