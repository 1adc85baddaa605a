"""The bridge from the store to `models`: finds, measures and reads models.

Everything of `models` is imported inside the functions, so that a page can be built and the list of
models shown without torch.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.checkpoint_sources import RUN_PREFIX
from explorer.errors import TokenizerError
from explorer.fitting import estimate_fit
from explorer.number_formats import DTYPES
from explorer.store_records import CatalogueEntry, ModelSummary
from explorer.uploads import UPLOAD_PREFIX

if TYPE_CHECKING:
    from models.hub import FetchProgress
    from models.loading import LoadedModel
    from models.registry import CatalogueModel
    from models.sources import ResolvedSource
    from models.tokenizers import ChatTemplate, Tokenizer


class ModelLoader:
    """Models as `models.load_model` reads them.

    Args:
        device: Where weights go, such as `cpu` or `cuda`.
    """

    def __init__(self, *, device: str = "cpu") -> None:
        self._device = device

    def catalogue(self, available_bytes: int) -> tuple[CatalogueEntry, ...]:
        """The registered models, and whether each opens without a network and fits into memory."""
        from models.registry import CATALOGUE

        return tuple(_describe(model, available_bytes) for model in CATALOGUE.values())

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

    def is_here(self, source: str) -> bool:
        """Whether a source opens without a network; see `models.sources.find_local`."""
        from models.sources import find_local

        return find_local(source) is not None

    def resolve_config(
        self, source: str, *, cancelled: Callable[[], bool]
    ) -> "ResolvedSource | None":
        """Fetch a configuration before its weights; see `models.sources.resolve_config`."""
        from models.sources import resolve_config

        return resolve_config(source, cancelled=cancelled)

    def estimate(self, resolved: "ResolvedSource", dtype: str) -> int:
        """Bytes of memory that the weights will take, counted from the configuration.

        Weights are read one tensor at a time, straight from the mapped file, so that nothing but
        the largest tensor comes on top.
        """
        from models.costs import count_weight_bytes
        from models.loading import load_config

        return count_weight_bytes(load_config(resolved), dtype)

    def load(self, resolved: "ResolvedSource", dtype: str) -> "LoadedModel":
        """Read the weights in a number format."""
        from models.loading import load_model

        return _named(load_model(resolved, dtype=dtype, device=self._device), resolved)

    def load_adapted(
        self, resolved: "ResolvedSource", base: "LoadedModel", adapter: Path
    ) -> "LoadedModel | None":
        """Open a checkpoint as its adapter on a base; see `models.adapted.load_adapted`."""
        from models.adapted import load_adapted

        loaded = load_adapted(resolved, base, adapter)
        return None if loaded is None else _named(loaded, resolved)

    def load_tokenizer(self, resolved: "ResolvedSource") -> "Tokenizer":
        """Read the tokenizer only; no torch is imported, except to see whose a .pth file is."""
        if resolved.kind == "pth":
            from models.loading import load_tokenizer_of

            return _call_like_model(load_tokenizer_of(resolved), resolved)
        from models.source_tokenizer import load_source_tokenizer

        return _call_like_model(load_source_tokenizer(resolved), resolved)

    def summarise(self, loaded: "LoadedModel") -> ModelSummary:
        """What a page shows about a model."""
        info, config, chat = loaded.info, loaded.config, loaded.chat
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
            has_chat=chat is not None,
            chat_format=None if chat is None else chat.format_name,
            knows_thinking=chat is not None and _knows_thinking(chat),
            base_name=info.base_name,
            n_base_bytes=info.n_base_bytes,
        )


def _named(loaded: "LoadedModel", resolved: "ResolvedSource") -> "LoadedModel":
    if not isinstance(loaded.tokenizer_or_error, TokenizerError):
        _call_like_model(loaded.tokenizer_or_error, resolved)
    return loaded


def _call_like_model(tokenizer: "Tokenizer", resolved: "ResolvedSource") -> "Tokenizer":
    """Let messages name it as the page names the model, where its folder's name says nothing."""
    if resolved.id.startswith((RUN_PREFIX, UPLOAD_PREFIX)):
        tokenizer.name = resolved.name
    return tokenizer


def _knows_thinking(chat: "ChatTemplate") -> bool:
    """A template that is no valid one is complained about when somebody chats, not on opening."""
    try:
        return chat.knows_thinking
    except TokenizerError:
        return False


def _describe(model: "CatalogueModel", available_bytes: int) -> CatalogueEntry:
    from models.hub_cache import hub_endpoint
    from models.registry import download_bytes, get_preset
    from models.sources import find_local

    found = find_local(model.id)
    size_bytes, is_counted = download_bytes(model), model.size_bytes is None
    # One file here may be another than the one of the Hub: the offline pack brings a smaller one.
    if found is not None and found.path.is_file():
        size_bytes, is_counted = found.path.stat().st_size, False
    config = get_preset(model.preset)
    return CatalogueEntry(
        id=model.id,
        name=model.name,
        family=model.family,
        size_bytes=size_bytes,
        licence=model.licence,
        presence="download" if found is None else "here",
        fits={dtype: estimate_fit(config, dtype, available_bytes) for dtype in DTYPES},
        size_is_counted=is_counted,
        gate_page=f"{hub_endpoint()}/{model.hub_id}" if model.is_gated and found is None else None,
    )
