"""Reads the small settings files beside a tokenizer, in their old and new forms.

tokenizer_config.json     which tokens begin and end a text, whether the first is put in front
special_tokens_map.json   the same, in older folders
added_tokens.json         tokens after the vocabulary's own: text -> id, in older folders

A token is named by its text, or (older form) by an object whose `content` is its text.
"""

from collections.abc import Mapping
from pathlib import Path

from models.tokenizers.reading import damaged_file, read_json_object
from models.tokenizers.sentencepiece_tokenizer import AddedToken

_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token")


def read_settings(folder: Path) -> dict[str, object]:
    """The two settings files as one; tokenizer_config.json wins.

    Args:
        folder: The folder of the tokenizer.

    Returns:
        Key -> value; keys whose value is null are left out.

    Raises:
        TokenizerError: One of the files is damaged.
    """
    settings: dict[str, object] = {}
    for name in ("special_tokens_map.json", "tokenizer_config.json"):
        if (folder / name).is_file():
            found = read_json_object(folder / name)
            settings |= {key: value for key, value in found.items() if value is not None}
    return settings


def named_text(settings: Mapping[str, object], key: str) -> object:
    """The text of the token that the settings name, or None when they name none."""
    named = settings.get(key)
    return named.get("content") if isinstance(named, dict) else named


def read_added_tokens(folder: Path, settings: Mapping[str, object]) -> dict[int, AddedToken]:
    """Tokens that the settings files add to the vocabulary, or say more about.

    Args:
        folder: The folder of the tokenizer.
        settings: From `read_settings`.

    Returns:
        Id -> token.

    Raises:
        TokenizerError: The lists are damaged.
    """
    special = {named_text(settings, role) for role in _ROLES}
    more = settings.get("additional_special_tokens")
    for token in more if isinstance(more, list) else ():
        special.add(token.get("content") if isinstance(token, dict) else token)
    path = folder / "added_tokens.json"
    added: dict[int, AddedToken] = {}
    if path.is_file():
        for text, i in read_json_object(path).items():
            added[_checked_id(i, path)] = AddedToken(text, text in special)
    path = folder / "tokenizer_config.json"
    listed = settings.get("added_tokens_decoder", {})
    if not isinstance(listed, dict):
        raise damaged_file(path, "its added_tokens_decoder is no object")
    for i, token in listed.items():
        added[_checked_id(i, path)] = _read_token(token, special, path)
    return added


def _read_token(token: object, special: set[object], path: Path) -> AddedToken:
    text = token.get("content") if isinstance(token, dict) else None
    if not isinstance(token, dict) or not isinstance(text, str):
        raise damaged_file(path, f"its added_tokens_decoder holds {token!r:.80}")
    return AddedToken(
        text,
        special=bool(token.get("special")) or text in special,
        lstrip=bool(token.get("lstrip")),
        rstrip=bool(token.get("rstrip")),
    )


def _checked_id(value: object, path: Path) -> int:
    """An id, which the one file writes as a number and the other as the key of an object."""
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or not 0 <= value < 2**31:
        raise damaged_file(path, f"{value!r:.80} is no token id")
    return value
