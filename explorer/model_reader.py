"""Reads a model into the room that the shelf makes for it: whole, or as an adapter on its base."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from explorer.checkpoint_sources import RUN_PREFIX, AdapterPlace
from explorer.errors import ConfigError, WeightError
from explorer.memory import give_back_memory
from explorer.model_shelf import ModelShelf, ShelvedModel
from explorer.number_formats import join_dtype
from explorer.ownership import SharingKey
from explorer.shared_load import SharedLoad
from explorer.store_records import Loader, LoadStep
from explorer.uploads import UPLOAD_PREFIX

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.sources import ResolvedSource


class ModelReader:
    """Reads models for the store, each within the budget.

    Args:
        loader: Reads the files.
        shelf: Makes room.
        changed: Held around every call of the shelf.
        available_bytes: Says how much memory the machine has free now.
    """

    def __init__(
        self,
        loader: Loader,
        shelf: ModelShelf,
        changed: threading.Condition,
        available_bytes: Callable[[], int],
    ) -> None:
        self._loader = loader
        self._shelf = shelf
        self._changed = changed
        self._available_bytes = available_bytes

    def refuse_before_download(self, key: SharingKey, load: SharedLoad) -> None:
        """Refuse what could never be read here before gigabytes of it arrive.

        Args:
            key: Of the request.
            load: Stops it.

        Raises:
            BudgetError: It is larger than the budget.
            ExplorerError: Its configuration cannot be fetched or used.
        """
        if key.source.startswith(UPLOAD_PREFIX):
            return
        found = self._loader.resolve_config(key.source, cancelled=load.is_cancelled)
        if found is None:
            return
        needs = self._loader.estimate(found, key.dtype)
        with self._changed:
            self._shelf.refuse_too_large(found.name, needs)

    def read(self, key: SharingKey, load: SharedLoad, resolved: ResolvedSource) -> ShelvedModel:
        """Read a model with weights of its own.

        Args:
            key: Of the request; its bytes stay reserved.
            load: Is told how much is read.
            resolved: Its files.

        Raises:
            BudgetError: It does not fit.
            ExplorerError: Its files cannot be used.
        """
        self._make_room(key, load, resolved, self._loader.estimate(resolved, key.dtype))
        return self._describe(key, self._loader.load(resolved, key.dtype))

    def read_adapted(
        self,
        key: SharingKey,
        load: SharedLoad,
        resolved: ResolvedSource,
        base: ShelvedModel,
        place: AdapterPlace,
    ) -> ShelvedModel | None:
        """Read a checkpoint as its adapter on a model in memory.

        Args:
            key: Of the request; its bytes stay reserved.
            load: Is told how much is read.
            resolved: The checkpoint's files.
            base: The model to stand on.
            place: The adapter.

        Returns:
            None where that is not the model which it was trained on, or where the adapter's files
            are damaged: the checkpoint has all its weights besides.

        Raises:
            BudgetError: It does not fit.
        """
        loaded: LoadedModel | None = None
        with suppress(WeightError, ConfigError, OSError):
            needs = sum(file.stat().st_size for file in place.folder.iterdir())
            self._make_room(key, load, resolved, needs)
            loaded = self._loader.load_adapted(resolved, base.loaded, place.folder)
        if loaded is None:
            with self._changed:
                self._shelf.cancel_reservation(key)
            return None
        model = self._describe(key, loaded)
        model.stands_on = base
        return model

    def _make_room(
        self, key: SharingKey, load: SharedLoad, resolved: ResolvedSource, needs: int
    ) -> None:
        available = self._available_bytes()
        with self._changed:
            freed = self._shelf.reserve(key, resolved.name, needs, available)
        if freed:
            give_back_memory()
        load.report(LoadStep("reading", total_bytes=needs))

    def _describe(self, key: SharingKey, loaded: LoadedModel) -> ShelvedModel:
        give_back_memory()  # what tensors took on their way through float32
        name = join_dtype(key.source, key.dtype)
        summary = replace(self._loader.summarise(loaded), id=name)
        if key.source.startswith(UPLOAD_PREFIX):
            summary = replace(summary, origin="upload")
        elif key.source.startswith(RUN_PREFIX):
            summary = replace(summary, origin="run")
        return ShelvedModel(loaded, summary)
