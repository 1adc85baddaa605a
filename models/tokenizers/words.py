r"""Tokenizers from before byte pairs: whole words, characters, bytes.

    "Hello, tea?"   cut at blanks and signs   Hello | , | tea | ?
    ids             places in the sorted list of all words of one text

A word that the text did not have has no id: either that is an error, or all such words become the
one token `<|unk|>` and are lost. Blanks are not kept, so that no text comes back exactly.

Source: *Build a Large Language Model (From Scratch)* (2024), sections 2.2 to 2.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from models.errors import TokenizerError
from models.tokenizers.trained import END_OF_TEXT, empty_training_text

UNKNOWN = "<|unk|>"
_SIGNS = re.compile(r'([,.:;?_!"()\']|--|\s)')
_SPACE_BEFORE_SIGN = re.compile(r'\s+([,.:;?!"()\'])')


def split_words(text: str) -> list[str]:
    """Cut a text at blanks and signs; signs stay, blanks go.

    Args:
        text: Any string.
    """
    return [piece for piece in (part.strip() for part in _SIGNS.split(text)) if piece]


@dataclass(frozen=True)
class WordVocabulary:
    """The words of one text.

    Args:
        ids: Word -> id, in the order of Unicode; further tokens after them.
    """

    ids: Mapping[str, int]

    @property
    def knows_unknown(self) -> bool:
        """Whether words outside the vocabulary become `<|unk|>` instead of an error."""
        return UNKNOWN in self.ids

    def encode(self, text: str) -> list[int]:
        """Cut a text into words and look them up.

        Args:
            text: Any string.

        Raises:
            TokenizerError: It has a word that the vocabulary has not, and there is no `<|unk|>`.
        """
        words = split_words(text)
        if self.knows_unknown:
            return [self.ids.get(word, self.ids[UNKNOWN]) for word in words]
        unknown = next((word for word in words if word not in self.ids), None)
        if unknown is not None:
            raise TokenizerError(
                f"the word {unknown!r} is not in the vocabulary of {len(self.ids)} words; take one "
                f"that the text has, or the vocabulary with {UNKNOWN}",
                code="words-unknown",
                word=unknown[:80],
                words=len(self.ids),
            )
        return [self.ids[word] for word in words]

    def decode(self, ids: Iterable[int]) -> str:
        """Put words together with a space between them, but none before a sign.

        Args:
            ids: Ids of the vocabulary.
        """
        return _SPACE_BEFORE_SIGN.sub(r"\1", " ".join([self._words[i] for i in ids]))

    @cached_property
    def _words(self) -> Mapping[int, str]:
        return {i: word for word, i in self.ids.items()}


def learn_words(text: str, *, with_unknown: bool = False) -> WordVocabulary:
    """Make the vocabulary of a text.

    Args:
        text: The text.
        with_unknown: Whether to add `<|endoftext|>` and `<|unk|>`.

    Raises:
        TokenizerError: The text has no word.
    """
    words = sorted(set(split_words(text)))
    if not words:
        raise empty_training_text()
    more = [END_OF_TEXT, UNKNOWN] if with_unknown else []
    listed = dict.fromkeys([*(word for word in words if word not in more), *more])
    return WordVocabulary(MappingProxyType({word: i for i, word in enumerate(listed)}))
