"""Which of a repository's files are taken, by their names in its top folder.

    configuration   config.json, generation_config.json
    tokenizer       tokenizer.json | vocab.json, merges.txt | tekken.json | tokenizer.model
    conversation    chat_template.jinja, chat_template.json

Weights are chosen in `models.weight_files`; those that could hold code are only named here, to be
refused.
"""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from models.hub_cache import CONFIG_FILE

PICKLES = ("*.bin", "*.pth", "*.pt", "*.ckpt")
_TEKKEN_FILE = "tekken.json"
_SMALL_FILES = (
    CONFIG_FILE,
    "generation_config.json",
    "tokenizer*.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "chat_template.jinja",
    "chat_template.json",
)
# One of these is a tokenizer; vocab.json needs merges.txt beside it.
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", _TEKKEN_FILE)


def choose_small_files(listed: Sequence[str]) -> list[str]:
    """Configuration and tokenizer; tekken.json (15 MB) only where nothing else is read first.

    Args:
        listed: Names in the repository's top folder.
    """
    names = [name for name in listed if matches(name, _SMALL_FILES)]
    is_needed = _TEKKEN_FILE in listed and "tokenizer.json" not in listed
    return [*names, _TEKKEN_FILE] if is_needed else names


def is_tokenizer(name: str) -> bool:
    """Whether a file of this name holds a vocabulary."""
    return name in _TOKENIZER_FILES


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a name fits one of some patterns, such as `*.bin`; case counts."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)
