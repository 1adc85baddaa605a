r"""A tokenizer on Google's `sentencepiece` library: Llama 2, Mistral, Gemma.

    "Hi you"  ─space in front─►  "▁Hi▁you"  ─BPE by score─►  "▁Hi" "▁you"

Characters that no token covers become their bytes, one token each: "\n" is `<0x0A>`.

The library itself never reads a control token such as `<s>` from a text. We cut texts at special
tokens first, and give it the pieces between them. Tokens that a vocabulary calls user-defined are
read from any text by the library; those of them that are special (Gemma's `<start_of_turn>`) are
handed to it as control tokens, so that a user cannot type them by accident.

Whether a piece after a special token gets its own space in front differs:

    always   `<s>` `▁Hi`    Llama 2 as Meta's code encodes it, llama.cpp, "legacy": true
    first    `<s>` `Hi`     only the very start of a text gets one, "legacy": false

Source: *SentencePiece* (2018), arXiv 1808.06226, sections 3.1 and 3.2.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from models.tokenizers.sentencepiece_file import (
    Piece,
    PieceKind,
    SentencePieceModel,
    write_sentencepiece,
)
from models.tokenizers.tokenizer import Tokenizer, replace_lone_surrogates

if TYPE_CHECKING:
    from sentencepiece import SentencePieceProcessor

_METASPACE = "▁"
# User-defined tokens that structure a conversation rather than being text (as `<table>` is).
_LOOKS_SPECIAL = re.compile(r"<\|.*\|>|<(start|end)_of_\w+>|\[/?[A-Z_]+\]", re.DOTALL)

SpaceScheme = Literal["always", "first"]


@dataclass(frozen=True)
class AddedToken:
    """A token that settings files add to a vocabulary, or say more about.

    Attributes:
        text: Its text.
        special: Whether it is read from a text only when asked.
        lstrip: Whether it swallows blanks before it.
        rstrip: Whether it swallows blanks behind it.
    """

    text: str
    special: bool
    lstrip: bool = False
    rstrip: bool = False

    @property
    def pattern(self) -> str:
        """A regular expression for it and the blanks that it swallows."""
        before, after = (r"\s*" if flag else "" for flag in (self.lstrip, self.rstrip))
        return f"{before}{re.escape(self.text)}{after}"


class SentencePieceTokenizer(Tokenizer):
    """A tokenizer on `sentencepiece.SentencePieceProcessor`, which several threads may share."""

    def __init__(
        self,
        model: SentencePieceModel,
        *,
        name: str,
        added: Mapping[int, AddedToken],
        spaces: SpaceScheme,
        bos_id: int | None = None,
        eos_id: int | None = None,
        pad_id: int | None = None,
        adds_bos: bool = False,
    ) -> None:
        """Take over a vocabulary.

        Args:
            model: The vocabulary.
            name: What a page calls it.
            added: Tokens from settings files, by id; they may lie inside the vocabulary or after.
            spaces: Which pieces of a text get a space in front, if the vocabulary puts any.
            bos_id: As for `Tokenizer`.
            eos_id: As for `Tokenizer`.
            pad_id: As for `Tokenizer`.
            adds_bos: As for `Tokenizer`.

        Raises:
            ValueError: The library cannot use the vocabulary; says why.
        """
        pieces = _apply_added(model.pieces, added)
        cut_out = _tokens_to_cut_out(pieces, added)
        super().__init__(
            name=name,
            vocab_size=max(len(pieces), *(i + 1 for i in added), 0),
            special_tokens={t.text: i for i, t in cut_out.items() if t.special},
            bos_id=bos_id,
            eos_id=eos_id,
            pad_id=pad_id,
            adds_bos=adds_bos,
            strips_first_space=model.adds_space,
        )
        self._pieces = pieces
        self._added = dict(added)
        self._cut_out = cut_out
        self._ids = {token.text: i for i, token in cut_out.items()}
        self._spaces = spaces
        self._model = replace(model, pieces=pieces)
        self._opening = _load_processor(self._model)

    def encode_continuation(self, text: str, special: bool = False) -> list[int]:
        """As `Tokenizer.encode_continuation`."""
        return self._encode(replace_lone_surrogates(text), special, opening=False)

    def without_special_from(self, first: int) -> SentencePieceTokenizer | None:
        """As `Tokenizer.without_special_from`."""
        dropped = [token for i, token in self._added.items() if i >= first]
        if len(self._pieces) > first or not all(token.special for token in dropped):
            return None
        roles = {"bos_id": self.bos_id, "eos_id": self.eos_id, "pad_id": self.pad_id}
        return SentencePieceTokenizer(
            self._model,
            name=self.name,
            added={i: token for i, token in self._added.items() if i < first},
            spaces=self._spaces,
            adds_bos=self.adds_bos,
            **{role: i for role, i in roles.items() if i is not None and i < first},
        )

    def _encode(self, text: str, special: bool, opening: bool = True) -> list[int]:
        ids: list[int] = []
        pattern = self._all_tokens if special else self._plain_tokens
        for index, piece in enumerate(pattern.split(text)):
            if index % 2:
                ids.append(self._ids[piece if piece in self._ids else piece.strip()])
            elif piece:
                with_space = self._spaces == "always" or (opening and index == 0)
                ids += (self._opening if with_space else self._continuing).encode(piece)
        return ids

    @cached_property
    def _continuing(self) -> SentencePieceProcessor:
        """Puts no space in front."""
        if not self._model.adds_space:
            return self._opening
        return _load_processor(replace(self._model, adds_space=False))

    @cached_property
    def _all_tokens(self) -> re.Pattern[str]:
        return _compile(list(self._cut_out.values()))

    @cached_property
    def _plain_tokens(self) -> re.Pattern[str]:
        """Added tokens that are text: these are read whether special tokens are or not."""
        return _compile([token for token in self._cut_out.values() if not token.special])

    def _special_pattern(self) -> str:
        """As `Tokenizer._special_pattern`, with the blanks that some of them swallow."""
        return _join([token for token in self._cut_out.values() if token.special])

    def _token_bytes(self, token: int) -> bytes | None:
        if token in self._cut_out:
            return self._cut_out[token].text.encode()
        if token >= len(self._pieces):
            return None
        piece = self._pieces[token]
        if piece.kind == PieceKind.BYTE:
            return bytes.fromhex(piece.text[3:5])
        return piece.text.replace(_METASPACE, " ").encode()


def _apply_added(pieces: tuple[Piece, ...], added: Mapping[int, AddedToken]) -> tuple[Piece, ...]:
    """Rename the pieces that settings files rename, and make special ones control tokens."""
    found = list(pieces)
    for i, piece in enumerate(pieces):
        text, kind = piece.text, piece.kind
        if i in added and kind != PieceKind.UNKNOWN:
            text = added[i].text
            if added[i].special:
                kind = PieceKind.CONTROL
            elif text != piece.text or kind == PieceKind.CONTROL:
                kind = PieceKind.USER_DEFINED
        elif kind == PieceKind.USER_DEFINED and _LOOKS_SPECIAL.fullmatch(text):
            kind = PieceKind.CONTROL
        if (text, kind) != (piece.text, piece.kind):
            found[i] = Piece(text, piece.score, kind)
    return tuple(found)


def _tokens_to_cut_out(
    pieces: tuple[Piece, ...], added: Mapping[int, AddedToken]
) -> dict[int, AddedToken]:
    """What the library does not read from a text itself: control tokens, and added ones."""
    special = {PieceKind.CONTROL, PieceKind.UNKNOWN}
    found = {i: AddedToken(p.text, True) for i, p in enumerate(pieces) if p.kind in special}
    for i, token in added.items():
        if i >= len(pieces) or pieces[i].kind not in (PieceKind.USER_DEFINED, PieceKind.BYTE):
            found[i] = token
    return {i: token for i, token in found.items() if token.text}


def _join(tokens: list[AddedToken]) -> str:
    longest_first = sorted(tokens, key=lambda token: len(token.text), reverse=True)
    return "|".join(token.pattern for token in longest_first)


def _compile(tokens: list[AddedToken]) -> re.Pattern[str]:
    return re.compile(f"({_join(tokens)})" if tokens else "((?!))")


def _load_processor(model: SentencePieceModel) -> SentencePieceProcessor:
    from sentencepiece import SentencePieceProcessor

    try:
        return SentencePieceProcessor(model_proto=write_sentencepiece(model))
    except RuntimeError as error:
        raise ValueError(str(error)) from error
