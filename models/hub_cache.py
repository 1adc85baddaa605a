"""The local cache of the Hugging Face Hub: where it is, what is complete in it, and model ids.

The layout is that of huggingface_hub, so that a model downloaded here is found by transformers and
the other way round:

    HF_HOME/hub/models--owner--name/
        blobs/<etag>                 contents; `<etag>.incomplete` while it arrives
        snapshots/<commit>/<file>    links to blobs
        refs/<branch>                text file: the commit that the branch stood for

Source: *Understand caching*, huggingface_hub documentation. Nothing here touches the network. The
environment is read at each call, where huggingface_hub reads it once when it is imported.
"""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # lazy export

from models.hub_errors import hub_error
from models.weight_files import is_plain_name, list_weight_files

CONFIG_FILE = "config.json"
DEFAULT_ENDPOINT = "https://huggingface.co"
DEFAULT_REVISION = "main"

# Words that follow the id in the address of a page.
_PAGE_WORDS = ("tree", "blob", "resolve", "raw", "commit", "commits", "discussions", "edit")
# Those after which the next word is a revision.
_REVISION_WORDS = ("tree", "blob", "resolve", "raw", "commit")


def hub_endpoint() -> str:
    """Return the address of the Hub: HF_ENDPOINT or huggingface.co, without a slash at its end."""
    return (os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT).rstrip("/")


def is_offline() -> bool:
    """Tell whether HF_HUB_OFFLINE or TRANSFORMERS_OFFLINE forbids the network now."""
    setting = os.environ.get("HF_HUB_OFFLINE") or os.environ.get("TRANSFORMERS_OFFLINE") or ""
    return setting.upper() in ("1", "ON", "YES", "TRUE")


def cache_folder() -> Path:
    """Return the folder that holds all cached repositories.

    Returns:
        HF_HUB_CACHE, else HF_HOME/hub, else `huggingface/hub` in the user's cache folder. It need
        not exist.
    """
    direct = os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE")
    if direct:
        return _expand(direct)
    home = os.environ.get("HF_HOME")
    if home:
        return _expand(home) / "hub"
    return _expand(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface" / "hub"


def repository_folder(repo_id: str) -> Path:
    """Return the cache folder of one model repository; it need not exist.

    Args:
        repo_id: A valid id, `owner/name` or `name`.
    """
    return cache_folder() / ("models--" + repo_id.replace("/", "--"))


def parse_repository(text: str) -> tuple[str, str | None]:
    """Read a model id as people type or paste it.

    Args:
        text: `owner/name`, the short name of an old model (`gpt2`), or the address of a page of
            that model on the Hub, with or without `https://`.

    Returns:
        The id, and the revision that a pasted address names, else None.

    Raises:
        SourceError: The text is neither; code `hub-invalid-id`.
    """
    repo_id, revision = _split_address(text.strip())
    try:
        validate_repo_id(repo_id)
    except HFValidationError as error:
        raise hub_error("hub-invalid-id", text=text[:100]) from error
    return repo_id, revision


def find_cached_repository(repo_id: str, *, revision: str | None = None) -> Path | None:
    """Look for a complete model in the local cache, with no network at all.

    Complete means `config.json` and every weight file (see `models.weight_files`).

    Args:
        repo_id: Id of the model, or the address of its page.
        revision: Branch, tag or commit. Without one: what `main` stood for when it was downloaded,
            and where that is not complete, the complete snapshot that was written last.

    Returns:
        The snapshot's folder, or None where nothing complete is there.

    Raises:
        SourceError: The id is not valid; code `hub-invalid-id`.
    """
    repo_id, pasted_revision = parse_repository(repo_id)
    folder = repository_folder(repo_id)
    revision = revision or pasted_revision
    candidates = [_snapshot_of_revision(folder, revision or DEFAULT_REVISION)]
    if revision is None:
        candidates += newest_snapshots(folder)
    return next((path for path in candidates if path and is_complete_snapshot(path)), None)


def is_complete_snapshot(snapshot: Path) -> bool:
    """Tell whether a folder holds `config.json` and every weight file.

    Args:
        snapshot: A folder; links whose target is missing count as absent.
    """
    if not (snapshot / CONFIG_FILE).is_file():
        return False
    try:
        names = list_weight_files(snapshot)
    except (ValueError, OSError):
        return False
    return bool(names) and all((snapshot / name).is_file() for name in names)


def _expand(text: str) -> Path:
    return Path(os.path.expandvars(text)).expanduser()


def _split_address(text: str) -> tuple[str, str | None]:
    """Take id and revision out of an address; any other text comes back as it is."""
    host, path = _host_and_path(text)
    known_hosts = ("huggingface.co", "www.huggingface.co", "hf.co", urlsplit(hub_endpoint()).netloc)
    if host not in known_hosts:
        return text, None
    words = [unquote(word) for word in path.split("/") if word]
    # An old model has a name without owner: gpt2/tree/main.
    length = 1 if len(words) > 1 and words[1] in _PAGE_WORDS else 2
    rest = words[length:]
    if rest and rest[0] not in _PAGE_WORDS:  # datasets/owner/name, spaces/owner/name
        return text, None
    revision = rest[1] if len(rest) > 1 and rest[0] in _REVISION_WORDS else None
    return "/".join(words[:length]), revision


def _host_and_path(text: str) -> tuple[str, str]:
    if "://" in text:
        try:
            parts = urlsplit(text)
        except ValueError:  # for example an unclosed [ of an IPv6 address
            return "", text
        return parts.netloc, parts.path
    host, _, path = text.partition("/")
    return host, path.partition("?")[0].partition("#")[0]


def _snapshot_of_revision(folder: Path, revision: str) -> Path | None:
    """Find the snapshot of a branch, tag or commit; the folder need not exist."""
    if not all(is_plain_name(part) for part in revision.split("/")):
        return None
    reference = folder / "refs" / revision
    commit = reference.read_text(encoding="utf-8").strip() if reference.is_file() else revision
    return folder / "snapshots" / commit if is_plain_name(commit) else None


def newest_snapshots(folder: Path) -> list[Path]:
    """Snapshots of a repository, whole or not, the one that was written last first.

    Args:
        folder: From `repository_folder`; need not exist.
    """
    snapshots = [path for path in folder.glob("snapshots/*") if path.is_dir()]
    return sorted(snapshots, key=lambda path: path.stat().st_mtime, reverse=True)
