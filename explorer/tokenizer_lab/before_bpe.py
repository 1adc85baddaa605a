"""Tokenizers from before byte pairs, on the same text, and what each loses.

words           blanks are lost; a word that was not in the first text is an error
words and unk   such a word becomes `<|unk|>` and is lost
characters      a character that was not in the first text is an error
bytes           nothing is lost, and a text is as many tokens as it has bytes
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from explorer.errors import TokenizerError
from models.tokenizers.characters import train_character_tokenizer
from models.tokenizers.tokenizer import replace_lone_surrogates
from models.tokenizers.words import UNKNOWN, learn_words

Kind = Literal["words", "words_unknown", "characters", "bytes"]
KINDS: tuple[Kind, ...] = ("words", "words_unknown", "characters", "bytes")


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """A text through one tokenizer and back.

    Args:
        kind: Which tokenizer.
        vocab_size: Its tokens.
        ids: Of the text; empty where it could not be encoded.
        tokens: Their texts.
        decoded: What comes back.
        is_exact: Whether that is the text.
        n_unknown: Tokens that stand for something outside the vocabulary.
        error: Why the text could not be encoded, or None.
    """

    kind: Kind
    vocab_size: int
    ids: tuple[int, ...]
    tokens: tuple[str, ...]
    decoded: str
    is_exact: bool
    n_unknown: int
    error: TokenizerError | None


def compare_round_trips(learnt_from: str, text: str) -> tuple[RoundTrip, ...]:
    """Send a text through each of the four tokenizers and back.

    Args:
        learnt_from: The text that the vocabularies are made of.
        text: The text to encode.

    Raises:
        TokenizerError: `learnt_from` has no word.
    """
    first, text = replace_lone_surrogates(learnt_from), replace_lone_surrogates(text)
    plain, unknown = learn_words(first), learn_words(first, with_unknown=True)
    characters = train_character_tokenizer(first)
    return (
        _travel("words", len(plain.ids), text, plain.encode, plain.decode),
        _travel("words_unknown", len(unknown.ids), text, unknown.encode, unknown.decode),
        _travel("characters", characters.vocab_size, text, characters.encode, characters.decode),
        _travel("bytes", 256, text, lambda t: list(t.encode()), _decode_bytes),
    )


def _travel(
    kind: Kind,
    vocab_size: int,
    text: str,
    encode: Callable[[str], list[int]],
    decode: Callable[[list[int]], str],
) -> RoundTrip:
    ids: list[int] = []
    error = None
    try:
        ids = encode(text)
    except TokenizerError as problem:
        error = problem
    decoded = decode(ids)
    tokens = tuple(f"{i:02X}" if kind == "bytes" else decode([i]) for i in ids)
    return RoundTrip(
        kind=kind,
        vocab_size=vocab_size,
        ids=tuple(ids),
        tokens=tokens,
        decoded=decoded,
        is_exact=error is None and decoded == text,
        n_unknown=tokens.count(UNKNOWN) if kind == "words_unknown" else 0,
        error=error,
    )


def _decode_bytes(ids: list[int]) -> str:
    return bytes(ids).decode("utf-8", "replace")
