"""What a source string means, and where its files are.

    "smollm2-135m-instruct"          a catalogue id: local cache, then offline pack, then Hub
    "/models/tiny", "tiny.gguf"      a folder or file of this machine
    "tiny.pth"                       a state dict, as PyTorch saves it
    "org/name"                       a repository on the Hugging Face Hub

No torch: the page resolves and lists without loading it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from models.errors import SourceError
from models.hub import FetchProgress, fetch_config, fetch_repository, find_cached_repository
from models.offline_pack import find_offline_file
from models.registry import CATALOGUE, CatalogueModel, find_foreign_format

Origin = Literal["bundled", "offline pack", "cache", "hub", "folder", "file"]
ASSETS = Path(__file__).parent.parent / "assets"
# A .bin file counts where no config.json lies beside it: else it is a part of that folder's model.
STATE_DICT_ENDINGS = (".pth", ".pt", ".bin")
HUB_ID = re.compile(r"(https?://\S+/)?[\w.-]+/[\w.-]+/?")


@dataclass(frozen=True)
class ResolvedSource:
    """Files of a model on this machine.

    Args:
        id: The source string.
        name: As shown.
        origin: Where the files came from.
        kind: A Hugging Face folder, one GGUF file, or one state dict (.pth).
        path: That folder or file.
    """

    id: str
    name: str
    origin: Origin
    kind: Literal["folder", "gguf", "pth"]
    path: Path


def find_local(source: str) -> ResolvedSource | None:
    """The files of a source if they are on this machine; never asks the network."""
    if source in CATALOGUE:
        return _find_catalogue_model(CATALOGUE[source])
    path = _existing_path(source)
    if path is not None:
        return _resolve_path(source, path)
    if HUB_ID.fullmatch(source):
        return _in_cache(source, source, source.strip("/").rpartition("/")[2])
    return None


def resolve_source(
    source: str,
    *,
    on_progress: Callable[[FetchProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
) -> ResolvedSource:
    """Find the files of a source, downloading them if they are on the Hub only.

    Args:
        source: Catalogue id, path or Hub id.
        on_progress: Told about a download as it goes.
        cancelled: Asked during a download; True ends it.

    Raises:
        SourceError: Nothing of that name, or it cannot be reached; says what was tried.
    """
    source = str(source).strip()
    local = find_local(source)
    if local is not None:
        return local
    entry = CATALOGUE.get(source)
    hub_id = (entry.hub_id or "") if entry else source
    if not HUB_ID.fullmatch(hub_id):
        close = difflib.get_close_matches(source, CATALOGUE, n=3, cutoff=0.0)
        raise SourceError(
            f"{source[:200]!r} is no file or folder here, no catalogue name, no Hub id (org/name); "
            f"catalogue names: {', '.join(close)}",
            code="source-unknown",
            source=source[:200],
            known=", ".join(close),
        )
    folder = fetch_repository(hub_id, on_progress=on_progress, cancelled=cancelled)
    name = entry.name if entry else hub_id.strip("/").rpartition("/")[2]
    return ResolvedSource(source, name, "hub", "folder", folder)


def resolve_config(
    source: str, *, cancelled: Callable[[], bool] | None = None
) -> ResolvedSource | None:
    """The configuration alone of a source that has to be downloaded.

    Args:
        source: Catalogue id, path or Hub id.
        cancelled: Asked during the download; True ends it.

    Returns:
        A folder with its config.json; None where the files are on this machine, and for what is no
        Hub id.

    Raises:
        SourceError: It cannot be reached, or could not be opened.
    """
    source = str(source).strip()
    entry = CATALOGUE.get(source)
    hub_id = (entry.hub_id or "") if entry else source
    if find_local(source) is not None or not HUB_ID.fullmatch(hub_id):
        return None
    name = entry.name if entry else hub_id.strip("/").rpartition("/")[2]
    return ResolvedSource(source, name, "hub", "folder", fetch_config(hub_id, cancelled=cancelled))


def _existing_path(source: str) -> Path | None:
    """The path that a source names, if there is one; any text may be asked for."""
    try:
        path = Path(source).expanduser()
        return path if source and path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long, a NUL inside, no such user
        return None


def _find_catalogue_model(entry: CatalogueModel) -> ResolvedSource | None:
    if entry.bundled_folder is not None:
        folder = ASSETS / entry.bundled_folder
        here = (folder / "config.json").exists()
        return ResolvedSource(entry.id, entry.name, "bundled", "folder", folder) if here else None
    cached = _in_cache(entry.id, entry.hub_id or entry.id, entry.name)
    if cached is not None or entry.offline_distribution is None:
        return cached
    path = find_offline_file(entry.offline_distribution, ".gguf")
    if path is None:
        return None
    return ResolvedSource(entry.id, entry.name, "offline pack", "gguf", path)


def _in_cache(source: str, hub_id: str, name: str) -> ResolvedSource | None:
    folder = find_cached_repository(hub_id)
    if folder is None:
        return None
    return ResolvedSource(source, name, "cache", "folder", folder)


def _resolve_path(source: str, path: Path) -> ResolvedSource:
    if path.is_dir():
        return _resolve_folder(source, path)
    if path.suffix == ".gguf":
        return ResolvedSource(source, path.stem, "file", "gguf", path)
    # the configuration of these two lies beside them
    beside = path.suffix == ".bin" and path.with_name("config.json").exists()
    if path.suffix == ".safetensors" or beside:
        return replace(_resolve_path(source, path.parent), origin="file")
    if path.suffix in STATE_DICT_ENDINGS:
        return ResolvedSource(source, path.stem, "file", "pth", path)
    _refuse_foreign([path.name])
    raise SourceError(
        f"{path.name} is not a model that can be opened; give a folder with config.json and "
        "safetensors files, a .gguf file, or a state dict (.pth)",
        code="file-kind-unknown",
        file=path.name,
    )


def _resolve_folder(source: str, folder: Path) -> ResolvedSource:
    """A folder with config.json is one of Hugging Face's; else a state dict in it is looked for."""
    name = folder.resolve().name
    names = sorted(path.name for path in folder.iterdir())
    if "config.json" not in names:
        packed = [file for file in names if file.endswith((".pth", ".pt"))]
        if packed and (len(packed) == 1 or packed[0].startswith("consolidated.")):
            return ResolvedSource(source, name, "folder", "pth", folder / packed[0])
        if packed:
            raise SourceError(
                f"{name} holds {len(packed)} files of weights ({', '.join(packed[:3])}); give the "
                "path of one of them",
                code="source-several-files",
                folder=name,
                found=", ".join(packed[:3]),
            )
        _refuse_foreign(names)
    return ResolvedSource(source, name, "folder", "folder", folder)


def _refuse_foreign(names: Collection[str]) -> None:
    foreign = find_foreign_format(names)
    if foreign is not None:
        raise SourceError(
            f"{foreign.name} is not opened here; take the same weights from {foreign.instead}",
            code="source-foreign",
            name=foreign.name,
            instead=foreign.instead,
        )
