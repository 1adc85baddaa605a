"""Downloading a data set from the Hugging Face Hub: one file of it, as its repository has it.

    GET /api/datasets/ID/revision/REV  ->  names of files  ->  one of them  ->  cache folder

Only files of rows are taken (Parquet, JSON, JSON lines, CSV, TSV); scripts of a repository are
neither downloaded nor run. Of several files the one whose name says "train" is taken, of several
parts of it the first; the name of the file is told, so that nobody takes a part for the whole.

Source: as `models.hub`; *Data files configuration* in the Hub's documentation of data sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit

from huggingface_hub import get_session, hf_raise_for_status
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils._validators import validate_repo_id

from models.hub import RETRY_DELAYS_S, request_headers
from models.hub_cache import DEFAULT_REVISION, cache_folder, hub_endpoint, is_offline
from models.hub_errors import hub_error, translated_errors
from models.hub_transfer import TIMEOUT_S, ProgressMeter, Receiver, find_remote_file, link
from models.json_files import parse_json_object
from models.weight_files import is_plain_name

KINDS = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
# Files that hold no rows although their names end so.
_NO_ROWS = ("dataset_infos.json", "config.json", "dataset_dict.json", "state.json")


@dataclass(frozen=True, kw_only=True)
class HubDataFile:
    """A file of a data set on this machine.

    Args:
        path: Where it lies.
        repository: Id of the data set.
        file: Its name there.
        n_files: Files of rows that the repository has.
    """

    path: Path
    repository: str
    file: str
    n_files: int

    @property
    def name(self) -> str:
        """What to call it: the data set, and the file where there are several."""
        return f"{self.repository}: {self.file}" if self.n_files > 1 else self.repository


def parse_data_id(text: str) -> tuple[str, str]:
    """Read the id of a data set as people type or paste it.

    Args:
        text: `owner/name`, `owner/name/folder/file.csv`, or the address of a page of either.

    Returns:
        The id, and the file that was named, or an empty text.

    Raises:
        SourceError: It is none; code `hub-data-id`.
    """
    parts = urlsplit(text.strip()) if "://" in text else None
    path = text.strip() if parts is None else parts.path
    words = [unquote(word) for word in path.split("/") if word]
    if words and words[0] == "datasets":
        words = words[1:]
    repository, rest = "/".join(words[:2]), words[2:]
    if rest and rest[0] in ("blob", "resolve", "raw", "tree", "viewer"):
        rest = rest[2:] if rest[0] != "viewer" else []
    try:
        validate_repo_id(repository)
    except HFValidationError as error:
        raise hub_error("hub-data-id", text=text[:100]) from error
    if not all(map(is_plain_name, rest)):
        raise hub_error("hub-data-id", text=text[:100])
    return repository, "/".join(rest)


def choose_data_file(names: Sequence[str], asked: str = "") -> str | None:
    """The file to read of those that a repository has.

    Args:
        names: All files.
        asked: The one that was asked for, or a folder of it; empty takes the best.

    Returns:
        None where there is none.
    """
    found = [name for name in data_files(names) if not asked or _is_under(name, asked)]
    return min(found, key=_rank, default=None)


def data_files(names: Sequence[str]) -> list[str]:
    """Those of some files that hold rows."""
    return [
        name
        for name in names
        if PurePosixPath(name).suffix.lower() in KINDS
        and PurePosixPath(name).name not in _NO_ROWS
        and not name.startswith(".")
    ]


def _is_under(name: str, asked: str) -> bool:
    return name == asked or name.startswith(f"{asked}/")


def _rank(name: str) -> tuple[bool, int, str]:
    """Training first, then Parquet before the others, then by name: the first part of several."""
    return "train" not in name.lower(), KINDS.index(PurePosixPath(name).suffix.lower()), name


def fetch_data_file(
    text: str, *, max_bytes: int, retry_delays_s: Sequence[float] = RETRY_DELAYS_S
) -> HubDataFile:
    """Bring a file of a data set to this machine, or find it there.

    HF_ENDPOINT, HF_HOME, HF_TOKEN and HF_HUB_OFFLINE are read at each call.

    Args:
        text: See `parse_data_id`.
        max_bytes: A larger file is refused before it is downloaded.
        retry_delays_s: Pauses before further attempts.

    Raises:
        SourceError: It is not there, not allowed, too large, or the Hub cannot be reached.
    """
    repository, asked = parse_data_id(text)
    folder = cache_folder() / _folder_name(repository)
    endpoint = hub_endpoint()
    with translated_errors(repository, DEFAULT_REVISION, endpoint, cache_folder()):
        if is_offline():
            return _find_cached(folder, repository, asked)
        commit, names = _list_files(endpoint, repository)
        file = choose_data_file(names, asked)
        if file is None:
            shown = ", ".join(data_files(names)[:5]) or "-"
            raise hub_error("hub-data-no-file", repository=repository, asked=asked, files=shown)
        target = folder / "snapshots" / commit / file
        found = HubDataFile(
            path=target, repository=repository, file=file, n_files=len(data_files(names))
        )
        if target.is_file():
            return found
        _download(found, endpoint, commit, max_bytes, retry_delays_s)
    return found


def _download(
    found: HubDataFile,
    endpoint: str,
    commit: str,
    max_bytes: int,
    retry_delays_s: Sequence[float],
) -> None:
    """Bring one file to its place."""
    repository, file, headers = found.repository, found.file, request_headers()
    url = f"{endpoint}/datasets/{repository}/resolve/{commit}/{quote(file)}"
    blobs = cache_folder() / _folder_name(repository) / "blobs"
    remote = find_remote_file(file, url, blobs, headers)
    if remote is None:
        reason = f"no size and etag of {file}"
        raise hub_error("hub-bad-answer", endpoint=endpoint, repository=repository, reason=reason)
    if remote.size_bytes > max_bytes:
        raise hub_error(
            "hub-data-too-large",
            repository=repository,
            file=file,
            found_mb=f"{remote.size_bytes / 1e6:,.1f}",
            limit_mb=f"{max_bytes / 1e6:,.1f}",
        )
    receiver = Receiver(repository, headers, lambda: False, retry_delays_s)
    if not remote.blob.exists():
        receiver.receive(remote, ProgressMeter(0, remote.size_bytes, None))
    link(remote.blob, found.path)


def _folder_name(repository: str) -> str:
    return "datasets--" + repository.replace("/", "--")


def _list_files(endpoint: str, repository: str) -> tuple[str, list[str]]:
    """Commit and names of the files of a data set."""
    response = get_session().get(
        f"{endpoint}/api/datasets/{repository}/revision/{DEFAULT_REVISION}",
        headers=request_headers(),
        timeout=TIMEOUT_S,
        follow_redirects=True,
    )
    if response.status_code == 404:
        raise hub_error("hub-data-not-found", repository=repository, endpoint=endpoint)
    hf_raise_for_status(response)
    try:
        answer = parse_json_object(response.content)
        commit = answer["sha"]
        names = [str(sibling["rfilename"]) for sibling in answer["siblings"]]
        usable = is_plain_name(commit)
    except (ValueError, KeyError, TypeError):
        usable, commit, names = False, "", []
    if not usable:
        raise hub_error(
            "hub-bad-answer", endpoint=endpoint, repository=repository, reason="no list of files"
        )
    return commit, [n for n in names if all(map(is_plain_name, n.split("/")))]


def _find_cached(folder: Path, repository: str, asked: str) -> HubDataFile:
    """What an earlier call brought, with no network."""
    snapshots = sorted(folder.glob("snapshots/*"), key=lambda path: path.stat().st_mtime)
    for snapshot in reversed(snapshots):
        names = [p.relative_to(snapshot).as_posix() for p in snapshot.rglob("*") if p.is_file()]
        file = choose_data_file(names, asked)
        if file is not None:
            return HubDataFile(
                path=snapshot / file, repository=repository, file=file, n_files=len(names)
            )
    raise hub_error("hub-offline", repository=repository)
