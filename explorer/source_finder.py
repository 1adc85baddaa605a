"""What a source stands for: files on this machine, a download, an adapter on another model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.checkpoint_sources import (
    RUN_PREFIX,
    AdapterPlace,
    find_adapter,
    find_checkpoint,
    name_checkpoint,
)
from explorer.errors import SourceError
from explorer.number_formats import DEFAULT_DTYPE
from explorer.ownership import OwnerRule, SharingKey
from explorer.shared_load import SharedLoad
from explorer.store_records import Loader, LoadStep
from explorer.uploads import UPLOAD_PREFIX, Uploads

if TYPE_CHECKING:
    from models.hub import FetchProgress
    from models.sources import ResolvedSource


class SourceFinder:
    """Finds the files of models for the store.

    Args:
        loader: Finds what is neither an upload nor a checkpoint of a run.
        rule: Who may open what.
        uploads: Where uploaded models are kept.
        runs: Folder of the runs.
    """

    def __init__(self, loader: Loader, rule: OwnerRule, uploads: Uploads, runs: Path) -> None:
        self._loader = loader
        self._rule = rule
        self._uploads = uploads
        self._runs = runs

    def resolve(self, key: SharingKey, load: SharedLoad) -> ResolvedSource:
        """Find a source, downloading it where it is not here.

        Args:
            key: Of the request.
            load: Is told how far it is, and stops it.

        Raises:
            ExplorerError: See `ModelStore.open`.
        """
        uploaded, trained = key.source.startswith(UPLOAD_PREFIX), key.source.startswith(RUN_PREFIX)

        def report(progress: FetchProgress) -> None:
            load.report(
                LoadStep(
                    "downloading",
                    progress.done_bytes,
                    progress.total_bytes,
                    progress.bytes_per_s,
                    progress.seconds_left,
                )
            )

        resolved = self._loader.resolve(
            self._local_path(key) or key.source,
            on_progress=report,
            cancelled=load.is_cancelled,
        )
        if uploaded:  # its path is nobody's business, and the name of its folder is random
            name = "upload" if resolved.kind == "folder" else resolved.path.stem
            return replace(resolved, id=key.source, name=name)
        if trained:
            name = name_checkpoint(self._runs, key.source)
            return replace(resolved, id=key.source, name=name)
        self._rule.check_found(key, resolved.origin)
        return resolved

    def is_here(self, key: SharingKey) -> bool:
        """Whether a source opens without a network.

        Args:
            key: Of the request.
        """
        try:
            return self._local_path(key) is not None or self._loader.is_here(key.source)
        except SourceError:
            return False

    def adapter_of(self, key: SharingKey) -> AdapterPlace | None:
        """The adapter that a source is, where it can stand on its base: in float32, as trained.

        Rounded to fewer bits, base and adapter together are not what the checkpoint is.

        Args:
            key: Of the request.

        Raises:
            SourceError: There is no such checkpoint.
        """
        if not key.source.startswith(RUN_PREFIX) or key.dtype != DEFAULT_DTYPE:
            return None
        return find_adapter(self._runs, key.source)

    def _local_path(self, key: SharingKey) -> str | None:
        if key.source.startswith(UPLOAD_PREFIX):
            return str(self._uploads.find(key.source, key.owner))
        if key.source.startswith(RUN_PREFIX):
            return str(find_checkpoint(self._runs, key.source))
        return None
