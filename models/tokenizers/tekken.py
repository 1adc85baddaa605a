"""Mistral's `tekken.json`: a byte-level vocabulary kept as ranks, with its own word pattern.

    {"config": {"pattern": "...", "default_vocab_size": 131072, "default_num_special_tokens": 1000},
     "vocab": [{"rank": 0, "token_bytes": "AA=="}, ...],
     "special_tokens": [{"rank": 0, "token_str": "<unk>"}, ...]}      in later files

Ids begin with the special tokens, whether they have a use or not; the token of rank r is the id
r + default_num_special_tokens. The list of ranks may be longer than the vocabulary, which is cut:

    0 <unk>   1 <s>   2 </s>   3 [INST]  ...  999 <SPECIAL_999>   1000 = rank 0   1001 = rank 1 ...

Source: mistral-common, class Tekkenizer (2024).
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from models.tokenizers.rank_files import RankTokenizer, build_encoding
from models.tokenizers.reading import damaged_file, read_json_object

TEKKEN_FILE = "tekken.json"
MOST_SPECIAL = 100_000
# What the first files leave unsaid: the names of the first ten. Later ones list all of theirs.
_FIRST_SPECIAL = (
    *("<unk>", "<s>", "</s>", "[INST]", "[/INST]", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]"),
    *("[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]"),
)


def load_tekken(path: Path) -> RankTokenizer:
    """Load a `tekken.json`.

    Args:
        path: The file.

    Returns:
        The tokenizer; texts begin with `<s>`.

    Raises:
        TokenizerError: It is damaged, or no such file.
    """
    content = read_json_object(path)
    config = content.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("pattern"), str):
        raise damaged_file(path, "it has no config with a pattern")
    n_special = _whole(config, "default_num_special_tokens", MOST_SPECIAL, path)
    n_tokens = _whole(config, "default_vocab_size", 2**31 - 1, path) - n_special
    special = _read_special(content.get("special_tokens"), n_special, path)
    ranks = _read_ranks(content.get("vocab"), n_tokens, n_special, path)
    encoding = build_encoding(path.parent.name, ranks, config["pattern"], special, path)
    return RankTokenizer(
        encoding,
        config["pattern"],
        special,
        bos_id=special.get("<s>"),
        eos_id=special.get("</s>"),
        pad_id=special.get("<pad>"),
        adds_bos="<s>" in special,
    )


def _whole(config: Mapping[str, Any], key: str, most: int, path: Path) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise damaged_file(path, f"its {key} is {value!r:.40}")
    return value


def _read_special(listed: object, n_special: int, path: Path) -> dict[str, int]:
    """Text -> id of all of them; those without a name get Mistral's placeholder."""
    names = dict(enumerate(_FIRST_SPECIAL[:n_special]))
    if listed is not None:
        names = {}
        for entry in listed if isinstance(listed, list) else [listed]:
            rank, text = _pair(entry, "token_str", path)
            if not 0 <= rank < n_special or rank in names:
                raise damaged_file(path, f"special token {text!r:.40} has the rank {rank}")
            names[rank] = text
    special = {names.get(rank, f"<SPECIAL_{rank}>"): rank for rank in range(n_special)}
    if len(special) < n_special or "" in special:
        raise damaged_file(path, "a special token is given twice, or has no text")
    return special


def _read_ranks(listed: object, n_tokens: int, n_special: int, path: Path) -> dict[bytes, int]:
    if not isinstance(listed, list) or len(listed) < n_tokens or n_tokens < 1:
        raise damaged_file(path, f"its vocab does not hold the {n_tokens} tokens that it states")
    ranks: dict[bytes, int] = {}
    for place, entry in enumerate(listed[:n_tokens]):
        rank, text = _pair(entry, "token_bytes", path)
        if rank != place:
            raise damaged_file(path, f"entry {place} of its vocab has the rank {rank}")
        try:
            ranks[base64.b64decode(text, validate=True)] = rank + n_special
        except (ValueError, binascii.Error) as error:
            raise damaged_file(path, f"entry {place} of its vocab is no base64") from error
    if len(ranks) < n_tokens:
        raise damaged_file(path, "a token is given twice")
    return ranks


def _pair(entry: object, key: str, path: Path) -> tuple[int, str]:
    if isinstance(entry, dict):
        rank, text = entry.get("rank"), entry.get(key)
        if isinstance(rank, int) and isinstance(text, str):
            return rank, text
    raise damaged_file(path, f"{entry!r:.80} is no rank with its {key}")
