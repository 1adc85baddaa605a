"""A text as its tokens, drawn so that no character is torn apart.

Tokens are pieces of *bytes*; what a reader sees as one character (a grapheme) may be spread over
several tokens, and one token may hold many characters. A unit is the smallest run of tokens that
begins and ends at a border of both:

    tokens      | e4 bd | a0 | e5 a5 bd |  20 68 69  |        bytes, in hexadecimal
    characters  |    你      |    好     | · | h | i  |
    units       |    你      |    好     |    ·hi     |

All of it is computed from the bytes of the tokens, so it holds as well for a tokenizer that changes
the text (composes accents, puts a space in front).

Source: *Unicode Text Segmentation*, UAX 29, section 3 (extended grapheme clusters).
"""

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import regex

from models.errors import TokenizerError
from models.tokenizers.tokenizer import Tokenizer, replace_lone_surrogates

# Two regional indicators are one flag. \X alone looks back to the start of a row of flags for each
# of them, which takes minutes for a long row.
_GRAPHEME = regex.compile(
    r"[\U0001F1E6-\U0001F1FF]{2}[\p{GCB=Extend}\p{GCB=ZWJ}\p{GCB=SpacingMark}]*|\X"
)
_LOOKAHEAD = 64  # tokens behind the limit, to see where the last unit ends: UTF-8 needs at most 4
_VISIBLE = {" ": "·", "\n": "⏎", "\t": "⇥", "\x7f": "␡"} | {
    chr(code): chr(0x2400 + code) for code in range(32) if chr(code) not in "\n\t"
}
# Format characters, other blanks, private use, unassigned and lone surrogates cannot be seen.
_UNSEEN = frozenset({"Cf", "Zs", "Zl", "Zp", "Co", "Cn", "Cc", "Cs"})
_ESCAPE = regex.compile(
    r"\\(?:x(?<code>[0-9A-Fa-f]{2})|u(?<code>[0-9A-Fa-f]{4})|U(?<code>[0-9A-Fa-f]{8})"
    r"|(?<short>[nrt0\\]))"
)
_SHORT_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "\\": "\\"}
_JOINER = "\u200d"  # between the persons of an emoji family: stays, or the family falls apart
_RING = "\u25cc"  # a dotted ring, to carry an accent that has no letter


@dataclass(frozen=True)
class TokenUnit:
    """The smallest run of tokens that shows whole characters.

    Attributes:
        text: What it says; U+FFFD for bytes that are no text.
        ids: Its tokens.
        token_bytes: The bytes of each token.
        start: Where it begins among the bytes of all tokens.
        special: Whether it is one special token.
    """

    text: str
    ids: tuple[int, ...]
    token_bytes: tuple[bytes, ...]
    start: int
    special: bool


@dataclass(frozen=True)
class TokenPieces:
    """A text, counted and cut.

    Attributes:
        n_tokens: Tokens of the whole text.
        n_characters: Its Unicode code points.
        n_graphemes: What a reader counts as characters.
        n_bytes: Its bytes in UTF-8.
        n_read_bytes: Bytes of all tokens. Fewer than `n_bytes` where the vocabulary has no token
            for a byte (the tokenizer drops it); other than `n_bytes` where the tokenizer changes
            the text first, such as composing accents.
        ids: All token ids.
        units: The units of the first tokens.
        shown: How many tokens `units` covers.
        text: The text, as it was cut.
        is_decomposed: Whether it has accents apart from their letters (it is not in NFC), which
            cuts into other tokens than the same text composed.
        is_replaced: Whether it has U+FFFD, which stands where something could not be read.
    """

    n_tokens: int
    n_characters: int
    n_graphemes: int
    n_bytes: int
    n_read_bytes: int
    ids: tuple[int, ...]
    units: tuple[TokenUnit, ...]
    shown: int
    text: str = ""
    is_decomposed: bool = False
    is_replaced: bool = False


def compute_token_pieces(
    tokenizer: Tokenizer, text: str, *, special: bool = False, limit: int = 1000
) -> TokenPieces:
    """Cut a text into tokens and units.

    Args:
        tokenizer: Any tokenizer.
        text: Any string.
        special: Whether special tokens typed in the text count as such.
        limit: Units are made of this many tokens at most; the counts are of the whole text.

    Returns:
        The counts, all ids and the first units.
    """
    text = replace_lone_surrogates(text)
    return count_pieces(tokenizer, text, tokenizer.encode(text, special=special), limit=limit)


def count_pieces(
    tokenizer: Tokenizer, text: str, tokens: Sequence[int], *, limit: int = 1000
) -> TokenPieces:
    """As `compute_token_pieces`, for a text that is cut already.

    Args:
        tokenizer: Any tokenizer.
        text: What was cut, without lone surrogates.
        tokens: Its ids.
        limit: As for `compute_token_pieces`.
    """
    ids = tuple(tokens)
    units = _first_units(units_of(tokenizer, ids[: limit + _LOOKAHEAD]), limit)
    return TokenPieces(
        n_tokens=len(ids),
        n_characters=len(text),
        n_graphemes=sum(1 for _ in _GRAPHEME.finditer(text)),
        n_bytes=len(text.encode("utf-8")),
        # each token is looked up once: a text of 100,000 characters has few different ones
        n_read_bytes=sum(len(tokenizer.token_bytes(t)) * n for t, n in Counter(ids).items()),
        ids=ids,
        units=units,
        shown=sum(len(unit.ids) for unit in units),
        text=text,
        is_decomposed=not unicodedata.is_normalized("NFC", text),
        is_replaced="\ufffd" in text,
    )


def read_escapes(text: str) -> str:
    r"""Read escapes such as `\n`, `\t`, `\u00e9` as the characters they stand for.

    Args:
        text: What was typed; a backslash that begins no escape stays, and `\\` is one backslash.
    """
    return _ESCAPE.sub(_read_escape, text)


def _read_escape(found: "regex.Match[str]") -> str:
    code = found["code"]
    if code is None:
        return _SHORT_ESCAPES[found["short"]]
    number = int(code, 16)
    return chr(number) if number <= 0x10FFFF else found[0]


def units_of(tokenizer: Tokenizer, ids: Sequence[int]) -> tuple[TokenUnit, ...]:
    """Group tokens into units.

    Args:
        tokenizer: The tokenizer that the ids belong to.
        ids: Token ids.

    Returns:
        The units; their ids in order are `ids`. A special token always is a unit of its own.

    Raises:
        TokenizerError: An id is not in the vocabulary.
    """
    special_ids = frozenset(tokenizer.special_tokens.values())
    units: list[TokenUnit] = []
    run: list[tuple[int, bytes]] = []
    start = 0
    for token in map(int, ids):
        raw = tokenizer.token_bytes(token)
        if token not in special_ids:
            run.append((token, raw))
            continue
        units += _units_of_run(run, start)
        start += sum(len(part) for _, part in run)
        units.append(_make_unit([(token, raw)], start, special=True))
        start += len(raw)
        run = []
    return (*units, *_units_of_run(run, start))


def label_of(tokenizer: Tokenizer, token: int) -> str:
    """One token as a short label in which everything can be seen.

    Args:
        token: Its id. Models may have more outputs than the vocabulary has tokens.
        tokenizer: The tokenizer that it belongs to.

    Returns:
        Its text, with `·` for spaces, `⏎`, `⇥`, `<E7>` for a byte that is no text on
        its own, `<U+200B>` for other invisible characters; `<#50300>` for an id without token.
    """
    try:
        return label_of_bytes(tokenizer.token_bytes(token))
    except TokenizerError:
        return f"<#{token}>"


def label_of_bytes(raw: bytes) -> str:
    """The bytes of tokens as a label in which everything can be seen.

    Args:
        raw: The bytes of a token, or of all tokens of a unit.

    Returns:
        As `label_of`.
    """
    text = raw.decode("utf-8", "surrogateescape")
    inner = text.strip(" ")
    return "".join(
        _show_character(character, previous, inner)
        for character, previous in zip(text, ("", *text), strict=False)
    )


def labels_of_units(units: Sequence[TokenUnit]) -> tuple[str, ...]:
    """One label a token; the tokens of a character that is cut in three are 玛₁ 玛₂ 玛₃."""
    labels: list[str] = []
    for unit in units:
        label = label_of_bytes(b"".join(unit.token_bytes))
        several = len(unit.ids) > 1
        labels += [label + (_subscript(i + 1) if several else "") for i in range(len(unit.ids))]
    return tuple(labels)


def _subscript(number: int) -> str:
    return "".join(chr(0x2080 + int(digit)) for digit in str(number))


def _show_character(character: str, previous: str, text: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # how surrogateescape writes the bytes 80 to FF
        return f"<{code - 0xDC00:02X}>"
    if character in _VISIBLE:
        return _VISIBLE[character]
    category = unicodedata.category(character)
    if category.startswith("M"):
        # nothing of the other glyphs may carry it: an accent on the dot of a space is a blot
        return character if previous and _is_seen(previous) else _RING + character
    if category not in _UNSEEN:
        return character
    return character if character == _JOINER and len(text) > 1 else f"<U+{code:04X}>"


def _is_seen(character: str) -> bool:
    return character not in _VISIBLE and unicodedata.category(character) not in _UNSEEN


def _first_units(units: Sequence[TokenUnit], limit: int) -> tuple[TokenUnit, ...]:
    """The units that lie within the first `limit` tokens; of a giant first one, its beginning."""
    ends = accumulate(len(unit.ids) for unit in units)
    kept = tuple(unit for unit, end in zip(units, ends, strict=True) if end <= limit)
    if kept or not units or limit < 1:
        return kept
    giant = units[0]
    tokens = list(zip(giant.ids, giant.token_bytes, strict=True))[:limit]
    return (_make_unit(tokens, giant.start, special=giant.special),)


def _units_of_run(run: Sequence[tuple[int, bytes]], start: int) -> Iterator[TokenUnit]:
    """Units of tokens without special ones in between."""
    borders = set(_grapheme_ends(b"".join(raw for _, raw in run)))
    unit: list[tuple[int, bytes]] = []
    begin = end = 0
    for token, raw in run:
        unit.append((token, raw))
        end += len(raw)
        if end in borders:
            yield _make_unit(unit, start + begin, special=False)
            unit, begin = [], end
    if unit:  # only tokens without any bytes can be left over
        yield _make_unit(unit, start + begin, special=False)


def _grapheme_ends(raw: bytes) -> Iterator[int]:
    """Byte offsets at which a grapheme ends; a byte that is no text counts as one."""
    end = 0
    for grapheme in _GRAPHEME.finditer(raw.decode("utf-8", "surrogateescape")):
        end += len(grapheme[0].encode("utf-8", "surrogateescape"))
        yield end


def _make_unit(tokens: Sequence[tuple[int, bytes]], start: int, *, special: bool) -> TokenUnit:
    ids, parts = zip(*tokens, strict=True)
    return TokenUnit(b"".join(parts).decode("utf-8", "replace"), ids, parts, start, special)
