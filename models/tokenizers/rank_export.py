r"""Writes vocabularies kept as ranks (rank_files.py) in the form of tokenizer.json.

That form lists the joins, and ranks do not say which two parts make a token. But joining follows
ranks, so a token's parts are what its bytes have become just before its own rank is reached:

    ranks   "h" 71, "e" 68, "t" 83, "he" 258, "the" 1169
    "the"   t h e  ->  t he  ->  two parts left: the join is (t, he)

A token that is never down to two parts cannot come from joining, only from being a whole word.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import TYPE_CHECKING

from models.errors import TokenizerError
from models.tokenizers.byte_table import byte_to_character
from models.tokenizers.rank_files import GPT2_WORDS, RankTokenizer, to_library_pattern

if TYPE_CHECKING:
    from tokenizers import pre_tokenizers

_NO_TOKEN = 2**31


def write_ranks(tokenizer: RankTokenizer) -> str:
    """Write a rank vocabulary as the content of a tokenizer.json.

    Args:
        tokenizer: The tokenizer.

    Returns:
        The content; gives the same ids.

    Raises:
        TokenizerError: A special token has the text of an ordinary one.
    """
    from tokenizers import AddedToken, Tokenizer, decoders, models

    ranks = tokenizer.ranks
    vocabulary = {_as_text(token): rank for token, rank in ranks.items()}
    for text, i in tokenizer.special_tokens.items():
        if vocabulary.setdefault(text, i) != i:
            raise TokenizerError(
                f"{tokenizer.name} has {text!r} as an ordinary token ({vocabulary[text]}) and as a "
                f"special one ({i}), which tokenizer.json cannot hold; name the special token "
                f"otherwise",
                code="tokenizer-special-unusable",
                token=text,
            )
    merges = [pair for token in sorted(ranks, key=ranks.__getitem__)
              if (pair := _find_parts(token, ranks)) is not None]  # fmt: skip
    library = Tokenizer(
        models.BPE(
            vocabulary,
            [(_as_text(left), _as_text(right)) for left, right in merges],
            ignore_merges=len(merges) + 256 < len(ranks),  # some tokens are whole words only
        )
    )
    library.pre_tokenizer = _build_word_cutter(tokenizer.word_pattern)
    library.decoder = decoders.ByteLevel()
    library.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in tokenizer.special_tokens]
    )
    return library.to_str()


def _as_text(token: bytes) -> str:
    table = byte_to_character()
    return "".join([table[byte] for byte in token])


def _find_parts(token: bytes, ranks: Mapping[bytes, int]) -> tuple[bytes, bytes] | None:
    """The two tokens that are joined to this one; None for a byte, or if it is never joined."""
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        joined = [ranks.get(a + b, _NO_TOKEN) for a, b in pairwise(parts)]
        best = min(joined)
        if best >= ranks[token]:
            return None
        i = joined.index(best)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return (parts[0], parts[1]) if len(parts) == 2 else None


def _build_word_cutter(word_pattern: str) -> pre_tokenizers.PreTokenizer:
    from tokenizers import Regex, pre_tokenizers

    if word_pattern == GPT2_WORDS:
        return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    steps = [
        pre_tokenizers.Split(Regex(to_library_pattern(word_pattern)), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
    return pre_tokenizers.Sequence(steps)
