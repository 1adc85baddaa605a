"""Whose a model is: the owner rule.

    kind        example                        on loopback     on a public host
    catalogue   smollm2-135m-instruct          shared          shared by all
    hub         org/name                       shared          shared by all
    upload      upload:Zm9v...                 shared          only its owner
    run         run:ID@STEP                    shared          only its owner
    path        /models/mine.gguf, ./folder    shared          refused, unless the operator named it

On loopback there is one owner, who sees all, from any page. On a public host the owner is a random
id that the visitor's browser keeps. A path of the server is no visitor's business: whether it
exists would already be told by the error message, so it is refused before the disk is touched.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from explorer.errors import SourceError
from explorer.number_formats import DEFAULT_DTYPE

SourceKind = Literal["catalogue", "hub", "upload", "run", "path"]

# The owner of everything on a loopback host, and of what all share on a public one.
EVERYBODY = ""
_PATH_START = re.compile(r"[/\\~.]|[A-Za-z]:[/\\]")
_URL_START = re.compile(r"https?://", re.IGNORECASE)
_MODEL_FILE_ENDINGS = (".gguf", ".safetensors", ".pth", ".pt", ".bin")


@dataclass(frozen=True)
class SharingKey:
    """Two visitors with the same key use the same model in memory."""

    source: str
    owner: str
    dtype: str = DEFAULT_DTYPE


def classify_source(source: str, catalogue_ids: Collection[str]) -> SourceKind:
    """Say what kind of source a text names, without looking at the disk.

    A relative folder such as `models/mine` reads like a Hub id and counts as one here; what it
    turned out to be is checked again when it has been found (`OwnerRule.check_found`).
    """
    if source in catalogue_ids:
        return "catalogue"
    if source.startswith("upload:"):
        return "upload"
    if source.startswith("run:"):
        return "run"
    if _URL_START.match(source):
        return "hub"
    if _PATH_START.match(source) or "\\" in source or source.count("/") > 1:
        return "path"
    return "path" if source.lower().endswith(_MODEL_FILE_ENDINGS) else "hub"


@dataclass(frozen=True)
class OwnerRule:
    """Who may open what, and who shares it.

    Args:
        public: Strangers can reach this host; False is a loopback host with one owner.
        operator_sources: Sources that whoever started the app chose: shared by all, paths too.
    """

    public: bool = False
    operator_sources: frozenset[str] = frozenset()

    def key_of(self, source: str, owner: str, catalogue_ids: Collection[str]) -> SharingKey:
        """The key under which this visitor's request for a source is shared.

        Raises:
            SourceError: The source is empty, is a path on a public host, or belongs to one visitor
                while this visitor has no id.
        """
        source = source.strip()
        if not source:
            raise SourceError(
                "no model was named; choose one from the list, or give a Hub id, a folder or a "
                "file",
                code="source-empty",
            )
        if not self.public or source in self.operator_sources:
            return SharingKey(source, EVERYBODY)
        kind = classify_source(source, catalogue_ids)
        if kind == "path":
            raise _refused_path(source)
        if kind in ("catalogue", "hub"):
            return SharingKey(source, EVERYBODY)
        return SharingKey(source, self.owner_of(owner))

    def owner_of(self, owner: str) -> str:
        """The owner that a visitor's private things belong to.

        Raises:
            SourceError: On a public host, the visitor has no id.
        """
        if not self.public:
            return EVERYBODY
        if not owner:
            raise SourceError(
                "uploads belong to one browser, and this one sent no id; allow this site to store "
                "data in your browser, then load the page again",
                code="owner-missing",
            )
        return owner

    def check_found(self, key: SharingKey, origin: str) -> None:
        """Refuse a source that read like a Hub id and turned out to be a path of the server.

        Args:
            key: Key of the request.
            origin: Where the model was found, as in `ModelSummary.origin`.

        Raises:
            SourceError: It is a folder or file of a public host that the operator did not name.
        """
        if self.public and origin in ("folder", "file") and key.source not in self.operator_sources:
            raise _refused_path(key.source)


def _refused_path(source: str) -> SourceError:
    return SourceError(
        f"{source!r} is a path, and this public page opens no paths of its server; give a Hub id, "
        "choose a model from the list, or upload the files",
        code="path-refused",
        source=source,
    )
