"""Tokenizers of models on the Hub that are not on this machine: the tokenizer alone is fetched.

A few megabytes instead of the weights' gigabytes, and of any model: its family need not be one that
can be opened here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.number_formats import split_dtype
from explorer.ownership import classify_source

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer


def find_hub_id(source: str) -> str | None:
    """The Hub id whose tokenizer has to be fetched, or None where it is found in another way.

    Args:
        source: A model's source, as it is typed or chosen.
    """
    from models.registry import CATALOGUE
    from models.sources import HUB_ID, find_local

    bare, _ = split_dtype(source.strip())
    entry = CATALOGUE.get(bare)
    hub_id = bare if entry is None else entry.hub_id or ""
    # what is named like a path is not looked for: a public page tells nothing of its server
    if classify_source(bare, CATALOGUE) not in ("catalogue", "hub") or not HUB_ID.fullmatch(hub_id):
        return None
    return hub_id if find_local(bare) is None else None


def fetch_hub_tokenizer(hub_id: str) -> Tokenizer:
    """Fetch the tokenizer of a Hub id, unless its files are here, and open it.

    Args:
        hub_id: From `find_hub_id`.

    Raises:
        SourceError: It cannot be reached, or has no tokenizer.
        TokenizerError: Its tokenizer is damaged, or of a kind that is not read here.
    """
    from models.hub import fetch_tokenizer
    from models.tokenizers import load_tokenizer

    tokenizer = load_tokenizer(fetch_tokenizer(hub_id))
    tokenizer.name = hub_id.strip("/").rpartition("/")[2]
    return tokenizer
