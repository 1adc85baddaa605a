"""Downloading a model repository from the Hugging Face Hub.

    listing -> choice of files -> sizes and etags -> room on the disk -> files -> snapshot folder

Only what a decoder needs is downloaded: the configuration, the tokenizer, the chat template and
the weights as safetensors. Code in a repository is neither downloaded nor run, and weights that
could hold code (pickle: `.bin`, `.pt`, `.pth`) are refused with a word on what to do.

The weights come last, so a snapshot with all weights also has every other file. The contents land
in the cache that huggingface_hub and transformers share; see `models.hub_cache`.

Source: the `/api/models` and `/resolve` routes in the Hub's OpenAPI description, and
huggingface_hub 2.4.0, whose sessions and errors are used.
"""

import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from filelock import FileLock, Timeout
from huggingface_hub import constants, get_session, get_token, hf_raise_for_status

from models.hub_cache import (
    CONFIG_FILE,
    DEFAULT_REVISION,
    cache_folder,
    find_cached_repository,
    hub_endpoint,
    is_offline,
    newest_snapshots,
    parse_repository,
    repository_folder,
)
from models.hub_errors import disk_full_error, hub_error, translated_errors
from models.hub_files import PICKLES, choose_small_files, is_tokenizer, matches
from models.hub_transfer import (
    TIMEOUT_S,
    FetchProgress,
    ProgressMeter,
    Receiver,
    RemoteFile,
    find_remote_file,
    link,
)
from models.json_files import parse_json_object
from models.weight_files import INDEX_FILE, choose_weight_file, is_plain_name, read_shard_names

__all__ = [
    "FetchProgress",
    "fetch_config",
    "fetch_repository",
    "fetch_tokenizer",
    "find_cached_repository",
]

RETRY_DELAYS_S = (1.0, 2.0, 4.0)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_LOCK_POLL_S = 0.2


def fetch_repository(
    repo_id: str,
    *,
    revision: str | None = None,
    on_progress: Callable[[FetchProgress], None] | None = None,
    cancelled: Callable[[], bool] | None = None,
    retry_delays_s: Sequence[float] = RETRY_DELAYS_S,
) -> Path:
    """Download a model, or what is missing of it, and return its folder.

    A call that was cut, cancelled or killed is continued by the next one. HF_ENDPOINT, HF_HOME,
    HF_TOKEN and HF_HUB_OFFLINE are read at each call.

    Args:
        repo_id: `owner/name`, or the address of the model's page.
        revision: Branch, tag or commit; None for the one in a pasted address, else `main`.
        on_progress: Called from this thread about ten times a second while bytes arrive.
        cancelled: Asked for each piece that arrives; returning True ends the download.
        retry_delays_s: Pauses before attempts that follow a cut connection.

    Returns:
        The snapshot's folder in the local cache, complete.

    Raises:
        SourceError: The model cannot be had; the code says why (see `models.hub_errors`).
    """
    repo_id, pasted_revision = parse_repository(repo_id)
    revision = revision or pasted_revision or DEFAULT_REVISION
    if is_offline():
        return _require_cached(repo_id, revision)
    fetch = _Fetch(repo_id, revision, cancelled or (lambda: False), retry_delays_s)
    with translated_errors(repo_id, revision, fetch.endpoint, fetch.cache):
        return fetch.run(on_progress)


def fetch_config(
    repo_id: str,
    *,
    cancelled: Callable[[], bool] | None = None,
    retry_delays_s: Sequence[float] = RETRY_DELAYS_S,
) -> Path:
    """Download `config.json` alone: what the model is, before its gigabytes arrive.

    Args:
        repo_id: As for `fetch_repository`, which finds the file there already.
        cancelled: Asked for each piece that arrives; returning True ends the download.
        retry_delays_s: Pauses before attempts that follow a cut connection.

    Returns:
        The snapshot's folder with `config.json` in it; the weights may be missing.

    Raises:
        SourceError: The model cannot be had, or could not be opened; the code says why.
    """
    repo_id, pasted_revision = parse_repository(repo_id)
    revision = pasted_revision or DEFAULT_REVISION
    if is_offline():
        return _require_cached(repo_id, revision)
    fetch = _Fetch(repo_id, revision, cancelled or (lambda: False), retry_delays_s)
    with translated_errors(repo_id, revision, fetch.endpoint, fetch.cache):
        return fetch.run_config()


def fetch_tokenizer(repo_id: str, *, retry_delays_s: Sequence[float] = RETRY_DELAYS_S) -> Path:
    """Download the tokenizer alone; the repository may hold a model of any kind, or none.

    Args:
        repo_id: As for `fetch_repository`, which finds the files there already.
        retry_delays_s: Pauses before attempts that follow a cut connection.

    Returns:
        The snapshot's folder with the tokenizer's files in it.

    Raises:
        SourceError: It cannot be had; the code says why.
    """
    repo_id, pasted_revision = parse_repository(repo_id)
    revision = pasted_revision or DEFAULT_REVISION
    if is_offline():
        return _require_cached_tokenizer(repo_id)
    fetch = _Fetch(repo_id, revision, lambda: False, retry_delays_s)
    with translated_errors(repo_id, revision, fetch.endpoint, fetch.cache):
        return fetch.run_tokenizer()


def _require_cached_tokenizer(repo_id: str) -> Path:
    """The newest snapshot that holds a tokenizer; none of its other files is needed."""
    for snapshot in newest_snapshots(repository_folder(repo_id)):
        if any(is_tokenizer(path.name) for path in snapshot.iterdir()):
            return snapshot
    raise hub_error("hub-offline", repository=repo_id)


def _require_cached(repo_id: str, revision: str) -> Path:
    cached = find_cached_repository(repo_id, revision=revision)
    if cached is None:
        raise hub_error("hub-offline", repository=repo_id)
    return cached


class _Fetch:
    """One call of `fetch_repository`: its addresses, folders and receiver."""

    def __init__(
        self,
        repo_id: str,
        revision: str,
        cancelled: Callable[[], bool],
        retry_delays_s: Sequence[float],
    ) -> None:
        self.repo_id = repo_id
        self.revision = revision
        self.endpoint = hub_endpoint()
        self.cache = cache_folder()
        self.folder = repository_folder(repo_id)
        self.headers = request_headers()
        self.receiver = Receiver(repo_id, self.headers, cancelled, retry_delays_s)

    def run(self, on_progress: Callable[[FetchProgress], None] | None) -> Path:
        """List, choose, check and receive; return the snapshot's folder."""
        commit, listed, weight_files = self._inspect()
        small_files = choose_small_files(listed)
        snapshot = self.folder / "snapshots" / commit
        with self._lock():
            if INDEX_FILE in weight_files:
                self._receive_all([INDEX_FILE], commit, snapshot, None)
                weight_files += self._shards_of_index(snapshot / INDEX_FILE, listed)
            self._receive_all(small_files + weight_files, commit, snapshot, on_progress)
            self._write_reference(commit)
        return snapshot

    def run_config(self) -> Path:
        """Receive `config.json` of a repository that could be opened; return the folder."""
        commit, _, _ = self._inspect()
        snapshot = self.folder / "snapshots" / commit
        with self._lock():
            self._receive_all([CONFIG_FILE], commit, snapshot, None)
        return snapshot

    def run_tokenizer(self) -> Path:
        """Receive the tokenizer's files; return the folder."""
        self.receiver.check_cancelled()
        commit, listed = self._list_files()
        if not any(map(is_tokenizer, listed)):
            raise hub_error("hub-no-tokenizer", repository=self.repo_id)
        snapshot = self.folder / "snapshots" / commit
        with self._lock():
            self._receive_all(choose_small_files(listed), commit, snapshot, None)
        return snapshot

    def _inspect(self) -> tuple[str, list[str], list[str]]:
        """Commit, all files and the weight files to take; refuse what cannot be opened."""
        self.receiver.check_cancelled()
        commit, listed = self._list_files()
        weight_files = self._choose_weights(listed)
        if CONFIG_FILE not in listed:
            raise hub_error("hub-no-config", repository=self.repo_id)
        return commit, listed, weight_files

    def _list_files(self) -> tuple[str, list[str]]:
        """Ask for the commit of the revision and the files in its top folder."""
        response = get_session().get(
            f"{self.endpoint}/api/models/{self.repo_id}/revision/{quote(self.revision, safe='')}",
            headers=self.headers,
            timeout=TIMEOUT_S,
            follow_redirects=True,
        )
        hf_raise_for_status(response)
        try:
            answer = parse_json_object(response.content)
            commit = answer["sha"]
            names = [sibling["rfilename"] for sibling in answer["siblings"]]
            usable = is_plain_name(commit)
        except (ValueError, KeyError, TypeError) as error:
            raise self._bad_answer("no list of files") from error
        if not usable:
            raise self._bad_answer("no commit")
        return commit, sorted(name for name in names if is_plain_name(name))

    def _choose_weights(self, listed: list[str]) -> list[str]:
        """Choose the weight file; of weights in several files only the index."""
        chosen = choose_weight_file(listed)
        if chosen is None:
            raise self._no_whole_weights(listed)
        return [chosen]

    def _no_whole_weights(self, listed: list[str]) -> Exception:
        page = f"{self.endpoint}/{self.repo_id}"
        for code, patterns in (
            ("hub-weights-unclear", ("*.safetensors",)),
            ("hub-only-gguf", ("*.gguf",)),
            ("hub-no-safetensors", PICKLES),
        ):
            found = [name for name in listed if matches(name, patterns)]
            if found:
                files = _shorten(found)
                return hub_error(code, repository=self.repo_id, files=files, page=page)
        return hub_error("hub-no-weights", repository=self.repo_id)

    def _shards_of_index(self, index: Path, listed: list[str]) -> list[str]:
        try:
            names = read_shard_names(index)
        except ValueError as error:
            raise hub_error("hub-damaged", path=str(index)) from error
        missing = [name for name in names if name not in listed]
        if missing:
            raise hub_error("hub-shard-missing", repository=self.repo_id, files=_shorten(missing))
        return names

    def _receive_all(
        self,
        names: Sequence[str],
        commit: str,
        snapshot: Path,
        on_progress: Callable[[FetchProgress], None] | None,
    ) -> None:
        """Receive the files that the snapshot lacks and link them into it."""
        there = [snapshot / name for name in names if (snapshot / name).is_file()]
        wanted = [name for name in names if not (snapshot / name).is_file()]
        remotes = [self._look_up(name, commit) for name in wanted]
        there_bytes = sum(path.stat().st_size for path in there)
        done_bytes = there_bytes + sum(remote.present_bytes() for remote in remotes)
        total_bytes = there_bytes + sum(remote.size_bytes for remote in remotes)
        self._check_room(total_bytes - done_bytes)
        meter = ProgressMeter(done_bytes, total_bytes, on_progress)
        for remote in remotes:
            if not remote.blob.exists():
                meter.report(remote.name)
                self.receiver.receive(remote, meter)
            link(remote.blob, snapshot / remote.name)
        meter.report(names[-1])

    def _look_up(self, name: str, commit: str) -> RemoteFile:
        """Ask for the size and the etag of one file."""
        self.receiver.check_cancelled()
        url = f"{self.endpoint}/{self.repo_id}/resolve/{quote(commit, safe='')}/{quote(name)}"
        found = find_remote_file(name, url, self.folder / "blobs", self.headers)
        if found is None:
            raise self._bad_answer(f"no size and etag of {name}")
        return found

    def _check_room(self, needed_bytes: int) -> None:
        self.cache.mkdir(parents=True, exist_ok=True)
        free_bytes = shutil.disk_usage(self.cache).free
        if needed_bytes > free_bytes:
            raise disk_full_error(self.repo_id, self.cache, needed_bytes, free_bytes)

    def _write_reference(self, commit: str) -> None:
        """Note which commit the branch stood for, so that it is found with no network.

        Written last: a reference never points to a download that is not complete.
        """
        parts = self.revision.split("/")
        if _COMMIT.fullmatch(self.revision) or not all(is_plain_name(part) for part in parts):
            return
        reference = self.folder / "refs" / self.revision
        reference.parent.mkdir(parents=True, exist_ok=True)
        temporary = reference.with_name(reference.name + ".new")
        temporary.write_text(commit, encoding="utf-8")
        os.replace(temporary, reference)

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Let one call at a time write partial files of this repository, in all processes."""
        path = self.cache / ".locks" / self.folder.name / "fetch.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(path)
        while not lock.is_locked:
            self.receiver.check_cancelled()
            try:
                lock.acquire(timeout=_LOCK_POLL_S)
            except Timeout:
                continue
        try:
            yield
        finally:
            lock.release()

    def _bad_answer(self, reason: str) -> Exception:
        return hub_error(
            "hub-bad-answer", endpoint=self.endpoint, repository=self.repo_id, reason=reason
        )


def request_headers() -> dict[str, str]:
    """Make the headers of all requests.

    Not those of huggingface_hub: to fill in its user-agent it first asks the Hub for a list of
    programs, also when HF_ENDPOINT names another server.
    """
    # Lengths and ranges count the bytes of the file itself, not of a compressed copy.
    headers = {"user-agent": "glassbox", "accept-encoding": "identity"}
    token = None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    if token:
        headers["authorization"] = f"Bearer {token}"
    return headers


def _shorten(names: list[str]) -> str:
    """Join names for a message; of many only the first three."""
    return ", ".join(names[:3]) + (" …" if len(names) > 3 else "")
