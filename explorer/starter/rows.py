"""Rows of random tokens, repeated: nothing but copying tells what comes next.

The tokens of a row are drawn anew for each, from the whole vocabulary, so that no pair of
neighbours can be learnt by heart. Whoever finds where the last token stood before, and looks one
further, knows the next: an induction head (*In-context Learning and Induction Heads*, Olsson et al.
2022, arXiv 2209.11895). Rows of English words alone teach it to English words alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from explorer.starter.dice import Dice

if TYPE_CHECKING:
    from models.tokenizers import Tokenizer

SHORTEST, LONGEST = 4, 64  # pieces before the row begins again
ROW_PIECES = 256
_NO_TEXT = "\ufffd"  # what a part of a character is decoded to


def find_pieces(tokenizer: Tokenizer) -> list[str]:
    """Texts of the tokens that come back when their text is cut again.

    Args:
        tokenizer: Whose vocabulary is searched.
    """
    texts = ((id_, tokenizer.decode([id_])) for id_ in range(tokenizer.vocab_size))
    return [text for id_, text in texts if _NO_TEXT not in text and tokenizer.encode(text) == [id_]]


def write_rows(seed: int | str, pieces: Sequence[str]) -> Iterator[str]:
    """An endless sequence of rows, each `ROW_PIECES` pieces long.

    Where two pieces meet they may be cut otherwise, but in each copy alike.

    Args:
        seed: Of all that is drawn.
        pieces: See `find_pieces`.
    """
    dice = Dice(f"{seed} rows")
    while True:
        row = dice.sample(pieces, dice.between(SHORTEST, min(LONGEST, len(pieces))))
        yield "".join(row[place % len(row)] for place in range(ROW_PIECES))
