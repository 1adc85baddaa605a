r"""The words that byte pair encoding learns from: a text cut, counted, and written as symbols.

    "the cat, the hat"   cut by GPT-2's pattern   "the" " cat" "," " the" " hat"
    counted                                       each 1
    in bytes (byte_table.py)                      t h e    Ġ c a t    ,    Ġ t h e    Ġ h a t
    in characters                                 t h e    ␣ c a t    ,    ␣ t h e    ␣ h a t

Pairs are joined inside words only, and equal words are worked on once. Ways to cut:

    gpt2      a word, a number or signs, with the space before it
    digits    the same, but each digit is a word of its own, so that numbers are read digit by digit
    whole     nothing is cut: tokens may cross the ends of words

Source: *Neural Machine Translation of Rare Words with Subword Units* (2016), arXiv 1508.07909,
section 3.2 (counted words); *Language Models are Unsupervised Multitask Learners* (2019), section
2.2 (bytes, and why tokens must not cross categories of characters).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from models.errors import TokenizerError
from models.tokenizers.byte_table import byte_to_character
from models.tokenizers.rank_files import GPT2_WORDS, to_library_pattern
from models.tokenizers.tokenizer import replace_lone_surrogates

if TYPE_CHECKING:
    from tokenizers import pre_tokenizers

WordCutting = Literal["gpt2", "digits", "whole"]
StartSymbols = Literal["bytes", "characters"]

_MOST_CHARACTERS = 1_000_000  # each join reads the words it happens in: a longer one takes hours
_PART_CHARACTERS = 200_000  # of a text, counted before progress is told: at most 0.3 s of work
_MOST_KEPT = 100_000  # stretches whose words are remembered
# No word goes on over a space or line end that stands behind something that is no blank. So texts
# are cut there first, and each stretch that occurs again is cut into words once: in English that
# is ten times less work. Other blanks are left inside: not all engines agree on what is one.
_STRETCH = re.compile(r"\s*\S+(?:(?![ \n])\s+\S*)*|\s+")
_STRETCH_END = re.compile(r"\S(?=[ \n])")


def count_words(
    texts: Iterable[str], cutting: WordCutting, special_tokens: Sequence[str] = ()
) -> Counter[str]:
    """Cut texts into words and count them.

    Args:
        texts: The texts; no word crosses from one to the next.
        cutting: How to cut.
        special_tokens: Texts that end a word, and are in none.

    Returns:
        Word -> how often it occurs.

    Raises:
        TokenizerError: A word has more than a million characters.
    """
    counts: Counter[str] = Counter()
    for _ in count_words_by_parts(texts, counts, cutting, special_tokens):
        pass
    return counts


def count_words_by_parts(
    texts: Iterable[str],
    counts: Counter[str],
    cutting: WordCutting,
    special_tokens: Sequence[str] = (),
) -> Iterator[int]:
    """Count the words of texts, part by part, so that it can be told how far it is.

    Args:
        texts: As for `count_words`.
        counts: Words are counted here.
        cutting: As for `count_words`.
        special_tokens: As for `count_words`.

    Yields:
        Characters that are done, after each part.

    Raises:
        TokenizerError: As for `count_words`.
    """
    special = "|".join(map(re.escape, sorted(special_tokens, key=len, reverse=True)))
    cut = lru_cache(_MOST_KEPT)(_choose_cut(cutting))
    done = 0
    for text in texts:
        clean = replace_lone_surrogates(text)
        for index, piece in enumerate(re.split(f"({special})", clean) if special else [clean]):
            if index % 2:  # a special token
                done += len(piece)
                continue
            for part in _list_parts(piece, cutting):
                _count_part(part, counts, cut, cutting)
                done += len(part)
                yield done


def _count_part(
    part: str, counts: Counter[str], cut: Callable[[str], list[str]], cutting: WordCutting
) -> None:
    stretches = [part] if cutting == "whole" else _STRETCH.findall(part)
    for stretch, n_times in Counter(stretches).items():
        words = cut(stretch)
        if len(stretch) > _MOST_CHARACTERS:
            _check_lengths(words, cutting)
        for word in words:
            counts[word] += n_times


def _list_parts(text: str, cutting: WordCutting) -> Iterator[str]:
    """Cut a text where no word goes on."""
    start = 0
    while start < len(text):
        end = len(text)
        if cutting != "whole":
            found = _STRETCH_END.search(text, start + _PART_CHARACTERS)
            end = found.end() if found else end
        yield text[start:end]
        start = end


def _check_lengths(words: Iterable[str], cutting: WordCutting) -> None:
    longest = max(map(len, words), default=0)
    if longest > _MOST_CHARACTERS:
        raise TokenizerError(
            f"the text has a word of {longest} characters, and {_MOST_CHARACTERS} are the most: "
            f"nothing in it ends a word; cut it by {'gpt2' if cutting == 'whole' else 'hand'}, or "
            f"take a text with spaces or signs",
            code="bpe-word-long",
            found=longest,
            limit=_MOST_CHARACTERS,
        )


def _choose_cut(cutting: WordCutting) -> Callable[[str], list[str]]:
    """By the library, as when encoding: another would know letters of another Unicode version."""
    cutter = build_word_cutter(cutting, "characters")
    if cutter is None:
        return lambda text: [text]
    return lambda text: [word for word, _ in cutter.pre_tokenize_str(text)]


def write_symbols(words: Mapping[str, int], start: StartSymbols) -> Counter[str]:
    """Write words with one character for each symbol that joining starts from.

    Args:
        words: Word -> count.
        start: Whether symbols are bytes or characters.

    Returns:
        The same with words in symbols; those that never occur are left out.
    """
    symbols: Counter[str] = Counter()
    table = byte_to_character()
    for word, count in words.items():
        clean = replace_lone_surrogates(word)
        if start == "bytes":
            clean = "".join([table[byte] for byte in clean.encode()])
        if clean and count > 0:
            symbols[clean] += count
    return symbols


def list_alphabet(words: Iterable[str], start: StartSymbols) -> list[str]:
    """The symbols that joining starts from, in the order of their code points.

    Args:
        words: Words in symbols.
        start: What symbols are; of bytes there are always 256, so that any text can be encoded.
    """
    return sorted(byte_to_character() if start == "bytes" else set().union(*words))


def build_word_cutter(
    cutting: WordCutting, start: StartSymbols
) -> pre_tokenizers.PreTokenizer | None:
    """The same cutting in the `tokenizers` library, for encoding.

    Args:
        cutting: How to cut.
        start: Whether words are written in bytes.

    Returns:
        The library's object, or None where there is nothing to do.
    """
    from tokenizers import Regex, pre_tokenizers

    steps: list[pre_tokenizers.PreTokenizer] = []
    if cutting == "digits":
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    if start == "bytes":
        use_regex = cutting != "whole"
        steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex))
    elif cutting != "whole":
        pattern = to_library_pattern(GPT2_WORDS)
        steps.append(pre_tokenizers.Split(Regex(pattern), behavior="isolated"))
    return pre_tokenizers.Sequence(steps) if steps else None
