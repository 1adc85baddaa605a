r"""Byte pair encoding by the book: how a tokenizer cuts one word, join by join.

    " hello"   in symbols   Ġ h e l l o
    1          h + e  has the lowest rank of all pairs that are tokens   ->  Ġ he l l o
    2          l + l ...                                                 ->  until no pair is left

The rank of a pair is its place in the list of merges; in a vocabulary kept as ranks it is the id of
what the join gives. The pair with the lowest rank goes first, wherever it stands; of equal ones the
left.

The libraries that the app encodes with do the same much faster and show nothing of it. Here every
step is kept, and a test holds both to the same ids.

Source: *Neural Machine Translation of Rare Words with Subword Units* (2016), arXiv 1508.07909,
section 3.2; *Language Models are Unsupervised Multitask Learners* (2019), section 2.2.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from models.errors import TokenizerError
from models.tokenizers.byte_table import byte_to_character, token_text_to_bytes
from models.tokenizers.library_tokenizer import LibraryTokenizer
from models.tokenizers.rank_files import RankTokenizer, to_library_pattern
from models.tokenizers.tokenizer import Tokenizer, replace_lone_surrogates

# Each step looks at every pair of the word: a word of 5,000 symbols takes seconds.
MOST_SYMBOLS = 2_000


@dataclass(frozen=True, kw_only=True)
class Join:
    """One join inside a word.

    Attributes:
        place: Which of the parts before the join is its left one, from 0.
        left: Its left part, in symbols.
        right: Its right part.
        rank: Of the pair; lower goes first.
        parts: All parts after the join.
    """

    place: int
    left: str
    right: str
    rank: int
    parts: tuple[str, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class MergeRules:
    """How a tokenizer of byte pairs works.

    Attributes:
        in_bytes: Whether symbols are bytes (byte_table.py) or characters.
        cut: Cuts a text into words, written in symbols.
        rank_of: Rank of a pair of parts, or None where the two are never joined.
        vocabulary: Token in symbols -> id.
        takes_whole_words: Whether a word that is a token is taken as it is, without joining.
    """

    in_bytes: bool
    cut: Callable[[str], list[str]]
    rank_of: Callable[[str, str], int | None]
    vocabulary: Mapping[str, int]
    takes_whole_words: bool

    def join(self, word: str) -> Iterator[Join]:
        """Join the symbols of a word until no pair is left.

        Args:
            word: In symbols, as `cut` gives it.

        Yields:
            The joins, in their order.

        Raises:
            TokenizerError: The word is longer than can be shown.
        """
        if len(word) > MOST_SYMBOLS:
            raise TokenizerError(
                f"a word of {len(word)} symbols is too long to be shown join by join; choose one "
                f"of at most {MOST_SYMBOLS}",
                code="merges-word-long",
                found=len(word),
                limit=MOST_SYMBOLS,
            )
        parts = list(word)
        while (best := self._best(parts)) is not None:
            rank, place = best
            left, right = parts[place : place + 2]
            parts[place : place + 2] = [left + right]
            yield Join(place=place, left=left, right=right, rank=rank, parts=tuple(parts))

    def encode_word(self, word: str) -> list[int]:
        """The ids of one word in symbols.

        Args:
            word: As `cut` gives it.

        Raises:
            TokenizerError: It has a symbol outside the vocabulary, or is too long.
        """
        if self.takes_whole_words and word in self.vocabulary:
            return [self.vocabulary[word]]
        parts: Sequence[str] = tuple(word)
        for step in self.join(word):
            parts = step.parts
        return [self._id_of(part) for part in parts]

    def encode(self, text: str) -> list[int]:
        """Cut a text into tokens; special tokens in it count as text.

        Args:
            text: Any string.

        Raises:
            TokenizerError: As for `encode_word`.
        """
        return [
            i for word in self.cut(replace_lone_surrogates(text)) for i in self.encode_word(word)
        ]

    def bytes_of(self, part: str) -> bytes:
        """The bytes that a part in symbols stands for."""
        return token_text_to_bytes(part) if self.in_bytes else part.encode()

    def _best(self, parts: Sequence[str]) -> tuple[int, int] | None:
        """Rank and place of the next join."""
        ranked = ((self.rank_of(*pair), place) for place, pair in enumerate(pairwise(parts)))
        return min(((rank, place) for rank, place in ranked if rank is not None), default=None)

    def _id_of(self, part: str) -> int:
        found = self.vocabulary.get(part)
        if found is None:
            raise TokenizerError(
                f"the vocabulary has no token for {part!r}; take it out of the text, or choose a "
                "tokenizer of bytes",
                code="tokenizer-character-unknown",
                tokenizer="BPE",
                found=repr(part),
            )
        return found


@lru_cache(maxsize=4)  # the tables of a large vocabulary take half a second
def read_merge_rules(tokenizer: Tokenizer) -> MergeRules:
    """Find out how a tokenizer joins.

    Args:
        tokenizer: One of byte pairs, of bytes or of characters.

    Returns:
        Its rules; encoding by them gives its ids.

    Raises:
        TokenizerError: It does not join byte pairs, or not of words that can be shown.
    """
    if isinstance(tokenizer, RankTokenizer):
        return _rules_of_ranks(tokenizer)
    if isinstance(tokenizer, LibraryTokenizer) and tokenizer.writing in ("byte_level", "plain"):
        description = json.loads(tokenizer.to_json())
        if description["model"]["type"] == "BPE":
            return _rules_of_merges(description, in_bytes=tokenizer.writing == "byte_level")
    raise TokenizerError(
        f"{tokenizer.name} joins no byte pairs in the way that is shown here; choose GPT-2, "
        "cl100k_base, the tokenizer of a Llama 3, Qwen or SmolLM2, or one trained here",
        code="merges-other-kind",
        tokenizer=tokenizer.name,
    )


def _rules_of_ranks(tokenizer: RankTokenizer) -> MergeRules:
    from tokenizers import Regex, pre_tokenizers

    # this engine knows the letters that tiktoken's knows; the one of Python is a Unicode version on
    pattern = Regex(to_library_pattern(tokenizer.word_pattern))
    words = pre_tokenizers.Split(pattern, behavior="isolated")
    ranks = {_as_symbols(token): rank for token, rank in tokenizer.ranks.items()}
    return MergeRules(
        in_bytes=True,
        cut=lambda text: [_as_symbols(w.encode()) for w, _ in words.pre_tokenize_str(text)],
        rank_of=lambda left, right: ranks.get(left + right),
        vocabulary=ranks,
        takes_whole_words=True,
    )


def _rules_of_merges(description: dict[str, object], *, in_bytes: bool) -> MergeRules:
    model = description["model"]
    assert isinstance(model, dict)
    listed = (m.split(" ") if isinstance(m, str) else m for m in model["merges"])
    ranks = {(left, right): rank for rank, (left, right) in enumerate(listed)}
    cut = _cutter_of(description, in_bytes=in_bytes)
    return MergeRules(
        in_bytes=in_bytes,
        cut=_without_unknown(cut, model["vocab"]) if in_bytes else cut,
        rank_of=lambda left, right: ranks.get((left, right)),
        vocabulary=model["vocab"],
        takes_whole_words=bool(model.get("ignore_merges")),
    )


def _without_unknown(
    cut: Callable[[str], list[str]], vocabulary: Mapping[str, int]
) -> Callable[[str], list[str]]:
    """Some vocabularies have no token for a few bytes; the library leaves them out before joining.

    So that what stood around such a byte may be joined.
    """

    def cut_known(text: str) -> list[str]:
        words = ("".join(symbol for symbol in word if symbol in vocabulary) for word in cut(text))
        return [word for word in words if word]

    return cut_known


def _cutter_of(description: dict[str, object], *, in_bytes: bool) -> Callable[[str], list[str]]:
    """Normaliser and pre-tokenizer of the library, without the vocabulary."""
    import tokenizers

    empty = tokenizers.models.BPE().__getstate__().decode()
    small = {**description, "model": json.loads(empty), "added_tokens": [], "post_processor": None}
    library = tokenizers.Tokenizer.from_str(json.dumps(small))

    def cut(text: str) -> list[str]:
        clean = library.normalizer.normalize_str(text) if library.normalizer else text
        if not clean:
            return []
        if library.pre_tokenizer is not None:
            return [word for word, _ in library.pre_tokenizer.pre_tokenize_str(clean)]
        return [_as_symbols(clean.encode()) if in_bytes else clean]

    return cut


def _as_symbols(content: bytes) -> str:
    table = byte_to_character()
    return "".join([table[byte] for byte in content])
