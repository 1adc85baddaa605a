"""Tokenizers that were uploaded or made here, kept for the whole app.

    <home>/tokenizers/<random>/
        about.json                       name, where it is from, size, hash of its owner
        tokenizer.json | tokenizer.model | NAME.tiktoken | model.gguf | vocab.json, merges.txt

A tokenizer is named by `kept:<random>`, which nobody can guess: who has it may use it, and each
visitor's list shows his own only. A file is opened before it is kept, so that what is kept can be
opened. Nothing in it is executed.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from explorer.errors import TokenizerError
from explorer.memory import say_bytes
from explorer.tokenizer_lab.hub_tokenizers import fetch_hub_tokenizer
from explorer.tokenizer_lab.named import NAMED, load_named

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer

KEPT_PREFIX = "kept:"
TOKENIZERS_FOLDER = "tokenizers"
ABOUT = "about.json"
Origin = Literal["trained", "uploaded", "extended"]
# A vocabulary of 262,144 tokens with its merges has 33 MB; models in one GGUF file are larger.
MAX_FILE_BYTES = 300 * 10**6
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")  # what secrets.token_urlsafe(16) makes
_MOST_OPEN = 6
_LONGEST_NAME = 60


@dataclass(frozen=True, kw_only=True)
class KeptTokenizer:
    """One kept tokenizer, for lists.

    Args:
        source: What opens it, `kept:...`.
        name: What a page calls it.
        origin: Where it is from.
        vocab_size: Its tokens.
        made_at: When, in seconds since 1970.
    """

    source: str
    name: str
    origin: Origin
    vocab_size: int
    made_at: float


class KeptTokenizers:
    """All of them below one folder. Safe to use from any thread.

    Args:
        home: Folder of the app's data.
    """

    def __init__(self, home: Path) -> None:
        self._root = home / TOKENIZERS_FOLDER
        self._opened: OrderedDict[str, Tokenizer] = OrderedDict()
        self._lock = threading.Lock()

    def keep(self, tokenizer: Tokenizer, name: str, origin: Origin, owner: str) -> KeptTokenizer:
        """Keep a tokenizer that was made here.

        Args:
            tokenizer: Of a kind that tokenizer.json can hold.
            name: What to call it.
            origin: Where it is from.
            owner: Id of the visitor.

        Raises:
            TokenizerError: It cannot be written.
        """
        from models.tokenizers.saving import save_tokenizer

        return self._make(lambda folder: save_tokenizer(tokenizer, folder), name, origin, owner)

    def keep_files(self, files: Sequence[Path], owner: str) -> KeptTokenizer:
        """Keep uploaded files.

        Args:
            files: A tokenizer.json (of any name ending in .json), a .model, .tiktoken or .gguf
                file; settings files beside it, or vocab.json with merges.txt.
            owner: Id of the visitor.

        Raises:
            TokenizerError: They are no tokenizer, too large, damaged, or of a kind that is not
                read here.
        """
        names = _choose_names(files)
        n_bytes = sum(file.stat().st_size for file in files)
        if n_bytes > MAX_FILE_BYTES:
            found, limit = say_bytes(n_bytes), say_bytes(MAX_FILE_BYTES)
            raise TokenizerError(
                f"the files have {found}, and {limit} are taken; upload the tokenizer alone",
                code="tokenizer-file-large",
                found=found,
                limit=limit,
            )

        def write(folder: Path) -> None:
            for file, name in zip(files, names, strict=True):
                shutil.copyfile(file, folder / name)

        return self._make(write, files[0].stem, "uploaded", owner)

    def list(self, owner: str) -> tuple[KeptTokenizer, ...]:
        """A visitor's tokenizers, the newest first."""
        found = []
        for path in self._root.glob(f"*/{ABOUT}"):
            about = json.loads(path.read_text(encoding="utf-8"))
            if about.pop("owner") == _hash(owner):
                found.append(KeptTokenizer(**about))
        return tuple(sorted(found, key=lambda kept: -kept.made_at))

    def find(self, source: str) -> KeptTokenizer:
        """What is known about one.

        Raises:
            TokenizerError: There is none of this name.
        """
        about = json.loads((self._folder(source) / ABOUT).read_text(encoding="utf-8"))
        about.pop("owner")
        return KeptTokenizer(**about)

    def open(self, source: str) -> Tokenizer:
        """The tokenizer itself.

        Args:
            source: `kept:...`, the name of an encoding (named.py), or a Hub id, of which the
                tokenizer alone is fetched (hub_tokenizers.py).

        Raises:
            TokenizerError: There is none of this name, or it cannot be read.
            SourceError: The Hub cannot be reached, or has none of this name.
        """
        with self._lock:
            if source in self._opened:
                self._opened.move_to_end(source)
                return self._opened[source]
        if source in NAMED:
            tokenizer = load_named(source)
        elif not source.startswith(KEPT_PREFIX):
            tokenizer = fetch_hub_tokenizer(source)
        else:
            tokenizer = load_any(self._folder(source))
            tokenizer.name = self.find(source).name
        with self._lock:
            self._opened[source] = tokenizer
            if len(self._opened) > _MOST_OPEN:
                self._opened.popitem(last=False)
        return tokenizer

    def read_json(self, source: str) -> str:
        """The content of its tokenizer.json, for `tokenizers` and `transformers`.

        Raises:
            TokenizerError: There is none of this name, or it is a SentencePiece file.
        """
        from models.tokenizers.saving import write_tokenizer_json

        return write_tokenizer_json(self.open(source))

    def _folder(self, source: str) -> Path:
        token = source.removeprefix(KEPT_PREFIX)
        folder = self._root / token
        if not _TOKEN.fullmatch(token) or not (folder / ABOUT).is_file():
            raise TokenizerError(
                "this tokenizer is not there any more; choose another, or make it again",
                code="tokenizer-not-kept",
            )
        return folder

    def _make(
        self, write: Callable[[Path], None], name: str, origin: Origin, owner: str
    ) -> KeptTokenizer:
        """Write into a folder that gets its name when what is in it can be opened."""
        token = secrets.token_urlsafe(16)
        partial = self._root / f".{token}"
        partial.mkdir(parents=True, mode=0o700)
        try:
            write(partial)
            kept = KeptTokenizer(
                source=KEPT_PREFIX + token,
                name=" ".join(name.split())[:_LONGEST_NAME] or origin,
                origin=origin,
                vocab_size=load_any(partial).vocab_size,
                made_at=time.time(),
            )
            about = json.dumps({**asdict(kept), "owner": _hash(owner)})
            (partial / ABOUT).write_text(about, encoding="utf-8")
            partial.rename(self._root / token)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return kept


def load_any(folder: Path) -> Tokenizer:
    """Open the tokenizer that lies in a folder, whatever its format.

    Raises:
        TokenizerError: There is none, or it cannot be read.
    """
    from models.gguf_file import GgufFile
    from models.tokenizers import load_gguf_tokenizer, load_tiktoken, load_tokenizer

    for file in folder.glob("*.tiktoken"):
        return load_tiktoken(file, file.stem)
    for file in folder.glob("*.gguf"):
        return load_gguf_tokenizer(GgufFile(file))
    return load_tokenizer(folder)


def _choose_names(files: Sequence[Path]) -> list[str]:
    """The names under which the formats are looked for, in the same order."""
    known = {
        *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "config.json"),
        *("vocab.json", "merges.txt", "encoder.json", "vocab.bpe", "tekken.json"),
    }
    endings = {".json": "tokenizer.json", ".model": "tokenizer.model"}
    whole = {".tiktoken", ".gguf"}
    names = []
    for file in files:
        suffix = file.suffix.lower()
        once = re.sub(r" ?\(\d+\)$", "", file.stem)  # what browsers add to a second download
        plain = re.sub(r"[^A-Za-z0-9._-]+", "_", once) + suffix
        names.append(plain if plain in known or suffix in whole else endings.get(suffix, ""))
    if not files or "" in names or len(set(names)) < len(names):
        found = ", ".join(file.name for file in files)[:200] or "-"
        raise TokenizerError(
            f"found {found}; upload one tokenizer.json, .model, .tiktoken or .gguf file, or "
            "vocab.json together with merges.txt",
            code="tokenizer-files-unknown",
            found=found,
        )
    return names


def _hash(owner: str) -> str:
    return hashlib.sha256(owner.encode(errors="surrogatepass")).hexdigest()[:32]
