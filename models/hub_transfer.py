"""Receiving files from the Hub: measured, cancelled at any moment, resumed where they stopped.

A file arrives in `<blob>.incomplete` and is renamed when it is whole, so a blob is never partial.
When the connection is cut, the next request asks for the rest only (HTTP `Range`). This is why the
bytes are not received by `huggingface_hub.hf_hub_download`: that of 2.4.0 deletes what has arrived
when a download fails or is cancelled. Only plain HTTP is used, which every server offers;
a server that stores files in chunks (Xet) redirects to an ordinary address.

Sources: RFC 9110, section 14 (range requests); huggingface_hub documentation, *Understand caching*.
"""

import hashlib
import os
import re
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import httpx2
from huggingface_hub import get_session, hf_raise_for_status

from models.hub_errors import hub_error, reason_of
from models.weight_files import is_plain_name

TIMEOUT_S = 10.0  # as huggingface_hub; also the longest that a stalled server delays a cancel

_MAX_REDIRECTS = 10
_REPORT_EVERY_S = 0.1  # a page cannot show more than about ten states a second
_SPEED_WINDOW_S = 5.0  # long enough to be calm, short enough to notice a slower network
_WAIT_STEP_S = 0.05
_PASSING_STATUS = (408, 429, 500, 502, 503, 504)  # a later attempt may succeed
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FetchProgress:
    """How far the download of a repository is.

    Attributes:
        file: Name of the file that is being received.
        done_bytes: Bytes of all files that are on the disk, those from earlier calls included.
        total_bytes: Bytes of all files that are needed.
        bytes_per_s: Speed over the last seconds of this call; 0.0 as long as nothing arrived.
        seconds_left: Time for the rest at this speed; None while the speed is unknown.
    """

    file: str
    done_bytes: int
    total_bytes: int
    bytes_per_s: float
    seconds_left: float | None


@dataclass(frozen=True)
class RemoteFile:
    """A file on the Hub that has to be received.

    Attributes:
        name: Its name in the repository.
        url: Address to get it from.
        etag: Identity of its contents; for large files their SHA-256.
        size_bytes: Its length.
        blob: Where its contents belong.
    """

    name: str
    url: str
    etag: str
    size_bytes: int
    blob: Path

    @property
    def partial(self) -> Path:
        """Where its contents are while they arrive."""
        return self.blob.with_name(self.blob.name + ".incomplete")

    def arrived_bytes(self) -> int:
        """Count the bytes that an earlier attempt left."""
        return self.partial.stat().st_size if self.partial.exists() else 0

    def present_bytes(self) -> int:
        """Count the bytes on the disk: all, when the blob is whole."""
        return self.size_bytes if self.blob.exists() else self.arrived_bytes()


def find_remote_file(
    name: str, url: str, blobs: Path, headers: dict[str, str]
) -> RemoteFile | None:
    """Ask for the size and the etag of one file.

    A large file is answered with a redirect to a storage host. Its size and etag are then on the
    redirect itself, in headers of the Hub's own.

    Args:
        name: Its name in the repository.
        url: Its address.
        blobs: The folder that its contents belong into.
        headers: Sent with the request.

    Returns:
        None where the server tells neither.

    Raises:
        HfHubHTTPError: The server refuses.
    """
    session = get_session()
    response = session.head(url, headers=headers, timeout=TIMEOUT_S, follow_redirects=False)
    for _ in range(_MAX_REDIRECTS):
        hf_raise_for_status(response)
        size, etag = announced_size(response), announced_etag(response)
        if size is not None and etag is not None:
            return RemoteFile(name, url, etag, size, blobs / etag)
        if response.next_request is None:
            break
        # The session drops the access token when the next request goes to another host.
        response = session.send(response.next_request, follow_redirects=False)
    return None


class ProgressMeter:
    """Counts the bytes of one fetch and reports them, at most ten times a second.

    Args:
        done_bytes: Bytes that are there before this call.
        total_bytes: Bytes of all files.
        on_progress: Called with each report; None measures silently.
        clock: Time in seconds that only grows.
    """

    def __init__(
        self,
        done_bytes: int,
        total_bytes: int,
        on_progress: Callable[[FetchProgress], None] | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.done_bytes = done_bytes
        self.total_bytes = total_bytes
        self._on_progress = on_progress
        self._clock = clock
        self._samples = deque([(clock(), done_bytes)])
        self._reported_at = -_REPORT_EVERY_S

    def add(self, file: str, count: int) -> None:
        """Count bytes that arrived, or with a negative count, bytes that were thrown away.

        Args:
            file: Name of the file that they belong to.
            count: How many.
        """
        self.done_bytes += count
        if self._on_progress is None:
            return
        if count < 0:  # a speed across the step back would be negative
            self._samples.clear()
        self._samples.append((self._clock(), self.done_bytes))
        if self._samples[-1][0] - self._reported_at >= _REPORT_EVERY_S:
            self.report(file)

    def report(self, file: str) -> None:
        """Report now, however short ago the last report was.

        Args:
            file: Name of the file to report.
        """
        if self._on_progress is None:
            return
        now = self._clock()
        self._reported_at = now
        speed = self._speed(now)
        left = (self.total_bytes - self.done_bytes) / speed if speed > 0 else None
        self._on_progress(FetchProgress(file, self.done_bytes, self.total_bytes, speed, left))

    def _speed(self, now: float) -> float:
        while len(self._samples) > 2 and now - self._samples[0][0] > _SPEED_WINDOW_S:
            self._samples.popleft()
        if not self._samples:
            return 0.0
        started_at, started_bytes = self._samples[0]
        elapsed_s = now - started_at
        return (self.done_bytes - started_bytes) / elapsed_s if elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class Receiver:
    """Receives the files of one repository, one after the other.

    Attributes:
        repository: Its id, for messages.
        headers: Sent with every request; holds the access token, if there is one.
        cancelled: Asked before each piece that is written; True ends the download.
        retry_delays_s: Pauses before the attempts that follow a cut. The count starts anew
            whenever bytes have arrived, so only attempts in vain use it up.
    """

    repository: str
    headers: dict[str, str]
    cancelled: Callable[[], bool]
    retry_delays_s: Sequence[float]

    def receive(self, remote: RemoteFile, meter: ProgressMeter) -> None:
        """Bring one file to the disk, whole and checked.

        Args:
            remote: The file; what is there of it already is kept.
            meter: Counts the new bytes.

        Raises:
            SourceError: Cancelled (`download-cancelled`), cut too often (`hub-interrupted`), or
                other contents than announced (`hub-wrong-contents`).
            HfHubHTTPError: The server refuses the file.
            OSError: The disk is full or refuses to be written.
        """
        self.check_cancelled()
        remote.blob.parent.mkdir(parents=True, exist_ok=True)
        vain_attempts = 0
        while True:
            before = remote.arrived_bytes()
            try:
                self._receive_rest(remote, meter)
                break
            except (httpx2.TransportError, _CutError) as error:
                vain_attempts = 1 if remote.arrived_bytes() > before else vain_attempts + 1
                if vain_attempts > len(self.retry_delays_s):
                    raise self._interrupted(remote, error) from error
                self._wait(self.retry_delays_s[vain_attempts - 1])
        _check_contents(remote)
        os.replace(remote.partial, remote.blob)

    def check_cancelled(self) -> None:
        """Stop here if the caller asked for it.

        Raises:
            SourceError: It did; code `download-cancelled`.
        """
        if self.cancelled():
            raise hub_error("download-cancelled", repository=self.repository)

    def _receive_rest(self, remote: RemoteFile, meter: ProgressMeter) -> None:
        """Append what is missing, in one request."""
        offset = remote.arrived_bytes()
        if offset > remote.size_bytes:
            offset = _discard(remote, meter)
        if offset == remote.size_bytes:
            remote.partial.touch()  # an empty file needs no request
            return
        headers = dict(self.headers)
        if offset:
            headers["Range"] = f"bytes={offset}-"
        with get_session().stream(
            "GET", remote.url, headers=headers, timeout=TIMEOUT_S, follow_redirects=True
        ) as response:
            if not (offset and response.status_code == 416):  # 416: its file ends before ours
                _check_status(response)
            if offset and not _continues_at(response, offset):
                _discard(remote, meter)
                if response.status_code != 200:
                    raise _CutError(f"status {response.status_code} instead of the rest")
            self._write(response, remote, meter)
        if remote.arrived_bytes() < remote.size_bytes:
            raise _CutError("the server ended the file too early")

    def _write(self, response: httpx2.Response, remote: RemoteFile, meter: ProgressMeter) -> None:
        # Leaving the block writes what is buffered, so a cut loses no byte that arrived.
        with remote.partial.open("ab") as file:
            for piece in response.iter_bytes():
                self.check_cancelled()
                file.write(piece)
                meter.add(remote.name, len(piece))

    def _wait(self, seconds: float) -> None:
        """Sleep, but wake up for a cancel."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check_cancelled()
            time.sleep(min(left, _WAIT_STEP_S))

    def _interrupted(self, remote: RemoteFile, error: Exception) -> Exception:
        return hub_error(
            "hub-interrupted",
            repository=self.repository,
            file=remote.name,
            reason=reason_of(error),
        )


class _CutError(Exception):
    """A transfer that ended too early for a reason that may pass."""


def _check_status(response: httpx2.Response) -> None:
    if response.status_code in _PASSING_STATUS:
        raise _CutError(f"status {response.status_code}")
    if response.is_error:
        response.read()  # the error's text is taken from the body
    hf_raise_for_status(response)


def _continues_at(response: httpx2.Response, offset: int) -> bool:
    """Tell whether the answer is the rest that was asked for, not the file from its beginning."""
    content_range = response.headers.get("Content-Range", "")
    return response.status_code == 206 and content_range.startswith(f"bytes {offset}-")


def _discard(remote: RemoteFile, meter: ProgressMeter) -> int:
    """Throw away what arrived; return the new offset, 0."""
    meter.add(remote.name, -remote.arrived_bytes())
    remote.partial.unlink()
    return 0


def _check_contents(remote: RemoteFile) -> None:
    """Compare length and, where the Hub gives it, the SHA-256 with what was announced.

    A resumed file is put together from several answers, and after a power cut its end may be
    zeros: the length alone does not prove it.
    """
    whole = remote.arrived_bytes() == remote.size_bytes
    if whole and _SHA256.fullmatch(remote.etag):
        with remote.partial.open("rb") as file:
            whole = hashlib.file_digest(file, "sha256").hexdigest() == remote.etag
    if not whole:
        remote.partial.unlink()
        raise hub_error("hub-wrong-contents", file=remote.name)


def announced_size(response: httpx2.Response) -> int | None:
    """The size of a file, from a redirect of the Hub or from where the file lies."""
    size = response.headers.get("X-Linked-Size")
    if size is None and not response.has_redirect_location:
        size = response.headers.get("Content-Length")
    return int(size) if size is not None and size.isdecimal() else None


def announced_etag(response: httpx2.Response) -> str | None:
    """The etag of a file, plain enough to name one here; from where its size is."""
    etag = response.headers.get("X-Linked-Etag")
    if etag is None and not response.has_redirect_location:
        etag = response.headers.get("ETag")
    plain = (etag or "").removeprefix("W/").strip('"')
    return plain if is_plain_name(plain) else None


def link(blob: Path, target: Path) -> None:
    """Show a blob under its name in the snapshot, as huggingface_hub does."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # a link whose blob was deleted
    try:
        target.symlink_to(os.path.relpath(blob, target.parent))
    except OSError:  # Windows without the right to make links
        os.replace(blob, target)
