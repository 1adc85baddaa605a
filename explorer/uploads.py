"""Uploaded models: kept in a private folder of their owner, opened by nobody else.

    <home>/uploads/<hash of the owner>/<random>/      source: "upload:<random>"
        model.gguf                                    one GGUF file, or
        model.pth  model.json  tokenizer.json         a state dict and what belongs to it, or
        config.json  tokenizer.json  *.safetensors    a model folder

The owner's id is a secret of his browser, so its hash names the folder. A source that is looked up
with another owner is looked up in another folder: what is not yours does not exist.

Files are checked by what they hold, not only by their names. Nothing in them is executed: a state
dict is a pickle, and is read by a reader that builds tensors and refuses all else (see
`models/state_dict_file.py`).
"""

import hashlib
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from explorer.errors import SourceError
from explorer.memory import say_bytes
from models.json_files import parse_json_object
from models.torch_archive import find_archive_fault

UPLOAD_PREFIX = "upload:"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{22}")  # what secrets.token_urlsafe(16) makes
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100

_JSON_NAMES = frozenset(
    {
        "chat_template.json",
        "config.json",
        "encoder.json",
        "generation_config.json",
        "model.safetensors.index.json",
        "special_tokens_map.json",
        "tekken.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocab.json",
    }
)
_OTHER_NAMES = frozenset({"chat_template.jinja", "merges.txt", "tokenizer.model", "vocab.bpe"})
_WEIGHTS = ".safetensors"
_STATE_DICTS = (".pth", ".pt")
# Meta's name of a state dict says which of several files it is, and goes with params.json.
_SHARD_NAME = re.compile(r"consolidated\.\d+\.pth")
# The safetensors format allows a header of 100 MB at most; real ones have a few hundred KB.
_LONGEST_HEADER_BYTES = 100 * 10**6
# Left free on the disk, so that an upload does not stop everything else from being written.
_SPARE_DISK_BYTES = 500 * 10**6


class Uploads:
    """The uploads of all visitors below one folder.

    Args:
        home: Folder of the app's data; `uploads` inside it is made when first needed.
        max_bytes: Most bytes of one upload, all its files together; None leaves it to the disk.
    """

    def __init__(self, home: Path, *, max_bytes: int | None = None) -> None:
        self._root = home / "uploads"
        self._max_bytes = max_bytes

    def keep(self, files: Sequence[Path], owner: str) -> str:
        """Check uploaded files, copy them into the owner's folder, and return their source.

        Args:
            files: One .gguf file, or one .pth file with its settings and tokenizer files, or
                config.json, tokenizer files and .safetensors of one model.
            owner: Whose they are.

        Raises:
            SourceError: The files are no model, are damaged, too large, do not fit on the disk, or
                cannot be written.
        """
        names = _choose_names(files)
        self._check_size(files)
        for file, name in zip(files, names, strict=True):
            _check_content(file, name)
        token = secrets.token_urlsafe(16)
        try:
            with self._new_folder(owner, token) as folder:
                for file, name in zip(files, names, strict=True):
                    shutil.copyfile(file, folder / name)
        except OSError as problem:
            raise SourceError(
                f"the upload could not be written below {self._root}: {problem.strerror}; set "
                "GLASSBOX_HOME to a folder that this program may write to",
                code="upload-not-written",
                reason=str(problem.strerror),
            ) from problem
        return UPLOAD_PREFIX + token

    def find(self, source: str, owner: str) -> Path:
        """The file or folder of an upload.

        Raises:
            SourceError: There is no such upload of this owner.
        """
        token = source.removeprefix(UPLOAD_PREFIX)
        folder = self._folder_of(owner) / token
        if not _TOKEN.fullmatch(token) or not folder.is_dir():
            raise SourceError(
                "this upload is not there: it was deleted, or it belongs to another browser; "
                "upload the files again",
                code="upload-missing",
            )
        packed = list(folder.glob("*.gguf"))
        return packed[0] if packed else folder

    def delete(self, source: str, owner: str) -> None:
        """Delete an upload and its files.

        Raises:
            SourceError: There is no such upload of this owner.
        """
        found = self.find(source, owner)
        shutil.rmtree(found if found.is_dir() else found.parent)

    def _folder_of(self, owner: str) -> Path:
        return self._root / hashlib.sha256(owner.encode(errors="surrogatepass")).hexdigest()[:32]

    def _check_size(self, files: Sequence[Path]) -> None:
        n_bytes = sum(file.stat().st_size for file in files)
        if self._max_bytes is not None and n_bytes > self._max_bytes:
            raise SourceError(
                f"the upload has {say_bytes(n_bytes)}, this page takes {say_bytes(self._max_bytes)}"
                " at most; choose a smaller or more strongly quantised model, or run the app on "
                "your own computer",
                code="upload-too-large",
                found=say_bytes(n_bytes),
                limit=say_bytes(self._max_bytes),
            )
        free = shutil.disk_usage(_nearest_folder(self._root)).free
        if n_bytes + _SPARE_DISK_BYTES > free:
            raise SourceError(
                f"the upload has {say_bytes(n_bytes)}, the disk has {say_bytes(free)} free; delete "
                "what is no longer needed, or set GLASSBOX_HOME to a folder on a larger disk",
                code="upload-disk-full",
                found=say_bytes(n_bytes),
                free=say_bytes(free),
            )

    @contextmanager
    def _new_folder(self, owner: str, token: str) -> Iterator[Path]:
        """A folder that gets its final name only when everything in it has been written."""
        home = self._folder_of(owner)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        partial = home / f"{token}.partial"
        partial.mkdir(mode=0o700)
        try:
            yield partial
            partial.rename(home / token)
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # gone already when all went well


def _nearest_folder(folder: Path) -> Path:
    """The folder itself, or the first of its parents that exists already."""
    return next(place for place in (folder, *folder.parents) if place.is_dir())


def _choose_names(files: Sequence[Path]) -> list[str]:
    """Safe names for the kept files, in the same order.

    Raises:
        SourceError: The files together are no model that can be opened.
    """
    if len(files) == 1 and files[0].suffix.lower() == ".gguf":
        return [_safe_stem(files[0]) + ".gguf"]
    state_dicts = [file for file in files if file.suffix.lower() in _STATE_DICTS]
    if len(state_dicts) == 1:
        names = [_choose_name_beside(file, state_dicts[0]) for file in files]
        _require_unique(names, files)
        return names
    names = [_choose_folder_name(file) for file in files]
    weights = [name for name in names if name.endswith(_WEIGHTS)]
    if "config.json" not in names or not weights:
        raise SourceError(
            f"found {_say_names(files)}; upload one .gguf file, one .pth file, or config.json, the "
            "tokenizer's files and the .safetensors files of a model together",
            code="upload-incomplete",
            found=_say_names(files),
        )
    _require_unique(names, files)
    if len(weights) == 1 and "model.safetensors.index.json" not in names:
        names[names.index(weights[0])] = "model.safetensors"  # the name that loaders look for
    return names


def _require_unique(names: Sequence[str], files: Sequence[Path]) -> None:
    if len(set(names)) < len(names):
        raise SourceError(
            f"two files have the same name among {_say_names(files)}; upload the files of one "
            "model at a time",
            code="upload-twice",
            found=_say_names(files),
        )


def _choose_name_beside(file: Path, state_dict: Path) -> str:
    """The name of a state dict, or of a file that belongs to it; other JSON is its settings."""
    stem = _safe_stem(state_dict)
    if file == state_dict:
        whole = _SHARD_NAME.fullmatch(file.name) is not None
        return file.name if whole else stem + file.suffix.lower()
    if file.name == "params.json":
        return file.name
    if file.suffix.lower() == ".json" and file.name not in _JSON_NAMES:
        return stem + ".json"
    if file.name == "config.json":  # would make a Hugging Face folder of it, where none is opened
        raise _unknown_file(file)
    return _choose_folder_name(file)


def _choose_folder_name(file: Path) -> str:
    if file.name in _JSON_NAMES or file.name in _OTHER_NAMES:
        return file.name
    if file.suffix.lower() == _WEIGHTS:
        return _safe_stem(file) + _WEIGHTS
    raise _unknown_file(file)


def _unknown_file(file: Path) -> SourceError:
    return SourceError(
        f"{file.name!r} is not a model file that can be opened here; upload one .gguf file, one "
        ".pth file, or config.json, the tokenizer's files and .safetensors",
        code="upload-unknown-file",
        name=file.name,
    )


def _safe_stem(file: Path) -> str:
    return _UNSAFE.sub("-", file.stem)[:_LONGEST_NAME].strip(".-") or "model"


def _say_names(files: Sequence[Path]) -> str:
    return ", ".join(file.name for file in files[:10]) or "no file"


def _check_content(file: Path, name: str) -> None:
    """Refuse a file that does not hold what its name says, reading as little of it as possible."""
    if name.endswith(".gguf"):
        with file.open("rb") as stream:
            sound = stream.read(4) == b"GGUF"
    elif name.endswith(_WEIGHTS):
        sound = _is_safetensors(file)
    elif name.endswith(_STATE_DICTS):
        sound = _is_state_dict(file)
    elif name.endswith(".json"):
        sound = _parse_json(file.read_bytes()) is not None
    else:
        sound = file.stat().st_size > 0
    if not sound:
        raise SourceError(
            f"{file.name!r} is damaged or is another kind of file than its name says; download or "
            "export it again, then upload it again",
            code="upload-damaged",
            name=file.name,
        )


def _is_state_dict(file: Path) -> bool:
    """Whether it is an archive of `torch.save`; what is in it is found out when it is opened."""
    fault = find_archive_fault(file)
    if fault == "old":
        raise SourceError(
            f"{file.name!r} is a bare pickle, as PyTorch before 1.6 wrote it; load it with PyTorch "
            "and save its state dict again with torch.save",
            code="pth-old-format",
            file=file.name,
        )
    return fault is None


def _is_safetensors(file: Path) -> bool:
    """Whether header and size agree: 8 bytes of header length, a JSON header, then the data."""
    size = file.stat().st_size
    with file.open("rb") as stream:
        header_bytes = int.from_bytes(stream.read(8), "little")
        if not 2 <= header_bytes <= min(_LONGEST_HEADER_BYTES, size - 8):
            return False
        header = _parse_json(stream.read(header_bytes))
    if header is None:
        return False
    tensors = [entry for name, entry in header.items() if name != "__metadata__"]
    ends = [_end_of(tensor) for tensor in tensors]
    return None not in ends and max([0, *(end for end in ends if end)]) == size - 8 - header_bytes


def _end_of(tensor: object) -> int | None:
    """Where a tensor's data ends, counted from the end of the header; None when it does not say."""
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    if isinstance(offsets, list) and len(offsets) == 2 and isinstance(offsets[1], int):
        return offsets[1]
    return None


def _parse_json(content: bytes) -> dict[str, Any] | None:
    """The object, or None when the content is something else."""
    try:
        return parse_json_object(content)
    except ValueError:
        return None
