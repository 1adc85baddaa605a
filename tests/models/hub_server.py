"""A small Hugging Face Hub on loopback: the routes that a download uses, and faults on demand.

    GET  /api/models/ID/revision/REV    the commit and the names of the files
    HEAD /ID/resolve/REV/FILE           size, etag, commit; large files: a redirect to storage
    GET  /ID/resolve/REV/FILE           the contents, or the rest of them (Range)
    GET  /storage/ETAG                  where large files are, as on the real Hub's CDN

Route and header names are those of huggingface_hub 2.4.0; `test_the_server_speaks_the_protocol`
lets huggingface_hub itself download from it.
"""

import hashlib
import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from huggingface_hub import constants

from models.errors import SourceError
from models.hub import fetch_repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"
MODEL = "org/tiny-model"
# Large enough for several pieces and for the redirect to storage; not one repeated byte.
FIRST_SHARD = bytes(range(256)) * 400
SECOND_SHARD = bytes(reversed(range(256))) * 200
FIRST_NAME, SECOND_NAME = (f"model-0000{number}-of-00002.safetensors" for number in (1, 2))
SHARDS = {FIRST_NAME: FIRST_SHARD, SECOND_NAME: SECOND_SHARD}
SMALL_FILES = {
    "config.json": b'{"model_type": "llama"}',
    "generation_config.json": b"{}",
    "tokenizer.json": b'{"model": {}}',
    "tokenizer_config.json": b'{"a": 1}',
    "chat_template.jinja": b"{{ messages }}",
}
INDEX = json.dumps({"weight_map": {"a": FIRST_NAME, "b": SECOND_NAME, "c": SECOND_NAME}}).encode()
SHARDED = SMALL_FILES | SHARDS | {"model.safetensors.index.json": INDEX}
SINGLE = SMALL_FILES | {"model.safetensors": FIRST_SHARD}
_LARGE_BYTES = 4096
_PIECE_BYTES = 1024


@dataclass
class Repository:
    """What the server holds of one model."""

    files: dict[str, bytes]
    commit: str = COMMIT
    gated: bool = False


@dataclass
class HubServer:
    """The state of the running server; tests change it and read what was asked."""

    url: str = ""
    repositories: dict[str, Repository] = field(default_factory=dict)
    # After how many body bytes of a large file the connection breaks, one entry a request.
    cuts: list[int] = field(default_factory=list)
    ignore_ranges: bool = False
    status_for_all: int | None = None
    refused_token: str | None = None
    untold_lengths: bool = False  # a file ends where the connection ends, as old proxies do it
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    served_bytes: dict[str, int] = field(default_factory=dict)

    def contents_of(self, etag: str) -> bytes | None:
        for repository in self.repositories.values():
            for contents in repository.files.values():
                if etag_of(contents) == etag:
                    return contents
        return None

    def served(self, contents: bytes) -> int:
        """How many bytes of a large file were sent, all requests together."""
        return self.served_bytes.get(f"/storage/{etag_of(contents)}", 0)

    def requests_with(self, word: str) -> list[tuple[str, str, dict[str, str]]]:
        return [request for request in self.requests if word in request[1]]


def etag_of(contents: bytes) -> str:
    """SHA-256 for large files, the git blob id for small ones, as the Hub does."""
    if len(contents) >= _LARGE_BYTES:
        return hashlib.sha256(contents).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(contents) + contents).hexdigest()


@contextmanager
def running_hub() -> Iterator[HubServer]:
    hub = HubServer()
    handler = type("BoundHandler", (_Handler,), {"hub": hub})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def prepared_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    """A running server with one model, and an environment that knows no other Hub and no cache."""
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    # huggingface_hub reads these two once, when it is imported.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(folder / "no-token"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    monkeypatch.setenv("HF_HOME", str(folder / "home"))
    with running_hub() as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        server.repositories[MODEL] = Repository(dict(SHARDED))
        yield server


class _Handler(BaseHTTPRequestHandler):
    hub: HubServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else each answer waits 40 ms for an acknowledgement

    def log_message(self, *_: object) -> None:
        """Keep the test's output clean."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.hub.requests.append((self.command, path, headers))
        if self.hub.status_for_all:
            return self._refuse(self.hub.status_for_all)
        if headers.get("authorization") == f"Bearer {self.hub.refused_token}":
            message = "Invalid credentials in Authorization header"
            return self._send(401, {"X-Error-Message": message}, b"")
        if match := re.fullmatch(r"/api/((?:models|datasets)/.+)/revision/(.+)", path):
            return self._list(match[1].removeprefix("models/"), match[2])
        if match := re.fullmatch(r"/(.+)/resolve/([^/]+)/(.+)", path):
            return self._resolve(*match.groups())
        if match := re.fullmatch(r"/storage/(\w+)", path):
            contents = self.hub.contents_of(match[1])
            return self._send_file(contents or b"", {"ETag": '"of-the-storage-host"'})
        return self._refuse(404)

    def _list(self, repo_id: str, revision: str) -> None:
        repository = self.hub.repositories.get(repo_id)
        if repository is None:
            return self._refuse(404, "RepoNotFound")
        if revision not in ("main", repository.commit):
            return self._refuse(404, "RevisionNotFound")
        names = [{"rfilename": name} for name in repository.files]
        body = json.dumps({"id": repo_id, "sha": repository.commit, "siblings": names}).encode()
        return self._send(200, {"Content-Type": "application/json"}, body)

    def _resolve(self, repo_id: str, revision: str, name: str) -> None:
        repository = self.hub.repositories[repo_id]
        if repository.gated and self.headers.get("Authorization") != "Bearer good":
            return self._refuse(403 if "Authorization" in self.headers else 401, "GatedRepo")
        if name not in repository.files or revision not in ("main", repository.commit):
            return self._refuse(404, "EntryNotFound")
        contents = repository.files[name]
        etag = etag_of(contents)
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{etag}"'}
        if len(contents) < _LARGE_BYTES:
            return self._send_file(contents, headers)
        # Another host than that of the Hub (a name, not an address), as a CDN is.
        storage = self.hub.url.replace("127.0.0.1", "localhost")
        linked = {"X-Linked-Etag": f'"{etag}"', "X-Linked-Size": str(len(contents))}
        location = {"Location": f"{storage}/storage/{etag}"}
        return self._send(302, {"X-Repo-Commit": repository.commit} | linked | location, b"")

    def _send_file(self, contents: bytes, headers: dict[str, str]) -> None:
        start = 0
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        status = 200
        if asked and not self.hub.ignore_ranges:
            start, status = int(asked[1]), 206
            whole = len(contents)
            headers = headers | {"Content-Range": f"bytes {start}-{whole - 1}/{whole}"}
        body = contents[start:]
        cut = self.hub.cuts.pop(0) if len(contents) >= _LARGE_BYTES and self.hub.cuts else None
        self._send(status, headers, body, cut)

    def _send(
        self, status: int, headers: dict[str, str], body: bytes, cut: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command == "GET" and self.hub.untold_lengths:
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        sent = body if cut is None else body[:cut]
        name = unquote(urlsplit(self.path).path)
        for start in range(0, len(sent), _PIECE_BYTES):
            piece = sent[start : start + _PIECE_BYTES]
            try:
                self.wfile.write(piece)
            except OSError:  # the client has hung up
                self.close_connection = True
                return
            self.hub.served_bytes[name] = self.hub.served_bytes.get(name, 0) + len(piece)
        if cut is not None:
            self.close_connection = True

    def _refuse(self, status: int, code: str | None = None) -> None:
        self._send(status, {"X-Error-Code": code} if code else {}, b"")


def fetch(repo_id: str = MODEL, retries: int = 3, **options) -> Path:
    """`fetch_repository` with attempts that follow each other at once."""
    return fetch_repository(repo_id, retry_delays_s=(0.0,) * retries, **options)


def failure_of(repo_id: str = MODEL, **options) -> SourceError:
    with pytest.raises(SourceError) as caught:
        fetch(repo_id, **options)
    return caught.value
