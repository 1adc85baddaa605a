"""One text, several tokenizers: how many tokens, how long they are, what a language costs.

    characters per token   code points / tokens
    bytes per token        bytes in UTF-8 / tokens
    fertility              tokens / words (Rust et al. 2021, arXiv 2012.15613, section 4.1): 1 where
                           every word is one token. Words are those of the Unicode standard (UAX 29,
                           section 4.1); Chinese, Japanese and Thai write no spaces, so that their
                           numbers say little
    share of the context   tokens / context length of the model

The cost of a language is its tokens divided by those of the same text in English (Petrov et al.
2023, arXiv 2305.15425, section 3: the premium).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import regex

from explorer.errors import TokenizerError
from models.tokenizers.tokenizer import replace_lone_surrogates

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer

_LANGUAGES = Path(__file__).parent.parent.parent / "assets" / "samples" / "languages.json"
_WORD = regex.compile(r"(?w)\b\w.*?\b", regex.DOTALL)
MOST_COMPARED = 4


@dataclass(frozen=True, kw_only=True)
class TokenCounts:
    """What one tokenizer makes of a text.

    Args:
        name: The tokenizer.
        vocab_size: Its tokens.
        n_tokens: Of the text.
        characters_per_token: Code points for each token.
        bytes_per_token: Bytes in UTF-8 for each token.
        fertility: Tokens for each word.
        context_share: Share of the context length, or None where no length is known.
        is_exact: Whether decoding gives the text back.
    """

    name: str
    vocab_size: int
    n_tokens: int
    characters_per_token: float
    bytes_per_token: float
    fertility: float
    context_share: float | None
    is_exact: bool


def count_words(text: str) -> int:
    """Words of a text, by the word borders of Unicode; what has no letter or digit is none."""
    return sum(1 for _ in _WORD.finditer(text))


def compare_tokenizers(
    tokenizers: Mapping[str, Tokenizer], text: str, *, context_length: int | None = None
) -> tuple[TokenCounts, ...]:
    """Count a text with each of several tokenizers.

    Args:
        tokenizers: Name -> tokenizer, at most `MOST_COMPARED`.
        text: Any string; special tokens in it count as text.
        context_length: Of the model that the share is of.

    Returns:
        One entry a tokenizer. Ratios of a text without tokens or words are 0.

    Raises:
        TokenizerError: Too many tokenizers, none, or one has no token for a character.
    """
    if not 0 < len(tokenizers) <= MOST_COMPARED:
        raise TokenizerError(
            f"{len(tokenizers)} tokenizers were chosen; choose 1 to {MOST_COMPARED}",
            code="compare-number",
            found=len(tokenizers),
            most=MOST_COMPARED,
        )
    clean = replace_lone_surrogates(text)
    return tuple(_count(name, t, clean, context_length) for name, t in tokenizers.items())


def _count(name: str, tokenizer: Tokenizer, text: str, context_length: int | None) -> TokenCounts:
    ids = tokenizer.encode(text)
    n_words = count_words(text)
    return TokenCounts(
        name=name,
        vocab_size=tokenizer.vocab_size,
        n_tokens=len(ids),
        characters_per_token=len(text) / max(1, len(ids)),
        bytes_per_token=len(text.encode()) / max(1, len(ids)),
        fertility=len(ids) / n_words if n_words else 0.0,
        context_share=len(ids) / context_length if context_length else None,
        is_exact=tokenizer.decode(ids) == text,
    )


@dataclass(frozen=True, kw_only=True)
class LanguageCosts:
    """The same text in several languages.

    Args:
        languages: Their codes; English first.
        names: Their own names.
        texts: The text in each.
        counts: For each tokenizer its tokens in each language; None where it has no token for a
            character.
    """

    languages: tuple[str, ...]
    names: tuple[str, ...]
    texts: tuple[str, ...]
    counts: Mapping[str, tuple[int | None, ...]]

    def premiums(self, name: str) -> tuple[float | None, ...]:
        """Tokens of each language divided by those of English, for one tokenizer."""
        counts = self.counts[name]
        first = counts[0]
        return tuple(None if n is None or not first else n / first for n in counts)


def count_languages(tokenizers: Mapping[str, Tokenizer]) -> LanguageCosts:
    """Count the sample text in ten languages.

    Args:
        tokenizers: Name -> tokenizer.
    """
    samples = _read_languages()
    return LanguageCosts(
        languages=tuple(samples),
        names=tuple(sample["name"] for sample in samples.values()),
        texts=tuple(sample["text"] for sample in samples.values()),
        counts={
            name: tuple(_count_or_none(t, sample["text"]) for sample in samples.values())
            for name, t in tokenizers.items()
        },
    )


def _count_or_none(tokenizer: Tokenizer, text: str) -> int | None:
    try:
        return len(tokenizer.encode(text))
    except TokenizerError as error:
        if error.code != "tokenizer-character-unknown":
            raise
        return None


@cache
def _read_languages() -> Mapping[str, Mapping[str, str]]:
    content: Mapping[str, Mapping[str, str]] = json.loads(_LANGUAGES.read_text(encoding="utf-8"))
    return content


def pair_labels(names: Sequence[str]) -> tuple[str, ...]:
    """Names that can be told apart: a second one of the same gets a number."""
    seen: dict[str, int] = {}
    labels = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        labels.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(labels)
