r"""Adds tokens to a finished vocabulary: they get the next free ids, and all others stay.

    gpt2            "MyNewToken_1"   ->   My New Token _ 1           5 tokens
    gpt2 and two    "MyNewToken_1"   ->   50257                      1 token

They are special tokens: found in the text before it is cut into words, never made by joining. What
such a token means the model has to learn (models/growing.py gives it a row).

Source: *Build a Large Language Model (From Scratch)* (2024), section 2.5; the book's course on
adding tokens to tiktoken.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from models.errors import TokenizerError
from models.tokenizers.library_tokenizer import LibraryTokenizer
from models.tokenizers.rank_files import RankTokenizer, build_encoding
from models.tokenizers.tokenizer import Tokenizer


def extend_tokenizer(tokenizer: Tokenizer, new_tokens: Sequence[str]) -> Tokenizer:
    """Make a tokenizer with more special tokens.

    Args:
        tokenizer: Of tokenizer.json, of GPT-2's files, of ranks, or trained here.
        new_tokens: Their texts; the ids go on from `tokenizer.vocab_size`.

    Returns:
        A new tokenizer; the old one stays as it is.

    Raises:
        TokenizerError: A text is empty, given twice or a token already, or the tokenizer is of a
            kind that is not extended here.
    """
    _check_new(tokenizer, new_tokens)
    if isinstance(tokenizer, RankTokenizer):
        return _extend_ranks(tokenizer, new_tokens)
    if isinstance(tokenizer, LibraryTokenizer):
        return _extend_library(tokenizer, new_tokens)
    raise TokenizerError(
        f"{tokenizer.name} is a SentencePiece file, which is not extended here; choose GPT-2, or a "
        "tokenizer with a tokenizer.json",
        code="extend-other-kind",
        tokenizer=tokenizer.name,
    )


def _check_new(tokenizer: Tokenizer, new_tokens: Sequence[str]) -> None:
    if not new_tokens:
        raise TokenizerError("no new token was given; type at least one", code="extend-none")
    for place, text in enumerate(new_tokens):
        if not text.strip() or text in new_tokens[:place] or _is_token(tokenizer, text):
            raise TokenizerError(
                f"{text!r} cannot be added: it is empty, given twice, or one token already; choose "
                "another text",
                code="extend-known",
                token=text[:80],
            )


def _is_token(tokenizer: Tokenizer, text: str) -> bool:
    """Whether a text is one token, and not the one for all that is unknown."""
    try:
        ids = tokenizer.encode(text, special=True)
    except TokenizerError:  # a vocabulary of characters that has none of them
        return False
    return len(ids) == 1 and tokenizer.token_bytes(ids[0]).strip() == text.strip().encode()


def _extend_ranks(tokenizer: RankTokenizer, new_tokens: Sequence[str]) -> RankTokenizer:
    new = {text: tokenizer.vocab_size + i for i, text in enumerate(new_tokens)}
    special = {**tokenizer.special_tokens, **new}
    words = tokenizer.word_pattern
    encoding = build_encoding(tokenizer.name, tokenizer.ranks, words, special, Path(tokenizer.name))
    return RankTokenizer(
        encoding,
        words,
        special,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        adds_bos=tokenizer.adds_bos,
    )


def _extend_library(tokenizer: LibraryTokenizer, new_tokens: Sequence[str]) -> LibraryTokenizer:
    import tokenizers

    library = tokenizers.Tokenizer.from_str(tokenizer.to_json())
    library.add_special_tokens(
        [tokenizers.AddedToken(text, special=True, normalized=False) for text in new_tokens]
    )
    return LibraryTokenizer(
        library,
        name=tokenizer.name,
        writing=tokenizer.writing,
        bos_id=tokenizer.bos_id,
        eos_id=tokenizer.eos_id,
        pad_id=tokenizer.pad_id,
        adds_bos=tokenizer.adds_bos,
        strips_first_space=tokenizer.strips_first_space,
    )
