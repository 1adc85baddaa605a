"""Which files of a model hold its weights: one answer for the Hub, its cache, and any folder.

    model.safetensors               all of them
    model.safetensors.index.json    says which file holds which: {"weight_map": {tensor: file}}
    anything.safetensors            all of them, where there is no other such file

Source: *Safetensors* in the Hub's documentation, "Serialization format" of sharded weights.
"""

import re
from collections.abc import Collection
from pathlib import Path

from models.json_files import parse_json_object

SINGLE_WEIGHT_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"

_ENDING = ".safetensors"
# Mistral's repositories hold the same weights a second time, in the authors' own names.
_SECOND_COPY = "consolidated"
_ONE_OF_SEVERAL = re.compile(r".*-\d+-of-(?!0*1\.)\d+\.safetensors")


def choose_weight_file(names: Collection[str]) -> str | None:
    """Choose among files the one that holds a model's weights, or says which others do.

    Args:
        names: Names of all files of the model.

    Returns:
        The name of a safetensors file or of an index; None where no file has all weights, or it
        cannot be told which one has.
    """
    for usual in (SINGLE_WEIGHT_FILE, INDEX_FILE):
        if usual in names:
            return usual
    tensors = [name for name in names if name.endswith(_ENDING)]
    found = [name for name in tensors if not name.startswith(_SECOND_COPY)] or tensors
    whole = len(found) == 1 and _ONE_OF_SEVERAL.fullmatch(found[0]) is None
    return found[0] if whole else None


def list_weight_files(folder: Path) -> list[str]:
    """Name the files that must be in a folder for all its weights to be there.

    Args:
        folder: The folder of a model. Links that lead nowhere count as absent.

    Returns:
        Their names, sorted; none where no file can be chosen. Those of an index may be missing.

    Raises:
        ValueError: The index is damaged.
        OSError: The folder or its index cannot be read.
    """
    chosen = choose_weight_file([path.name for path in folder.iterdir() if path.is_file()])
    if chosen == INDEX_FILE:
        return read_shard_names(folder / INDEX_FILE)
    return [] if chosen is None else [chosen]


def read_shard_names(index: Path) -> list[str]:
    """Read which weight files an index names.

    Args:
        index: A `model.safetensors.index.json`.

    Returns:
        Their names, sorted, each once.

    Raises:
        ValueError: It is no such index, or names a file outside its folder; says so.
        OSError: It cannot be read.
    """
    weight_map = parse_json_object(index.read_bytes()).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ValueError("it has no weight_map")
    names = set(map(str, weight_map.values()))
    outside = [name for name in names if not is_plain_name(name)]
    if outside:
        raise ValueError(f"it names {outside[0][:80]!r}, which is no file of its folder")
    return sorted(names)


def is_plain_name(name: str) -> bool:
    """Tell whether a name from outside stays inside the folder that it is put into.

    Args:
        name: Name of a file, an etag or a commit, as a server or a file said it.
    """
    return bool(name) and name not in (".", "..") and not set(name) & set('/\\:\0*?"<>|')
