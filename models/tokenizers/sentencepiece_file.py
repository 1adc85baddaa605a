r"""Reads and writes `tokenizer.model`, the one file of a SentencePiece vocabulary.

The file is a protobuf message. Such a message is a row of fields, each a key and a value:

    key = field number * 8 + kind    kind 0: varint    1: 8 bytes    2: length, bytes    5: 4 bytes

    tokenizer.model
    ├── 1  piece, once per token      1 text    2 score, a float    3 kind of token
    ├── 2  trainer settings           3 algorithm    35 whether unknown characters become bytes
    └── 3  normaliser settings        3 whether a space is put in front of a text

A varint is a number in groups of 7 bits, lowest first; all but its last byte have the top bit set.
We read it ourselves, as the schema needs another package, and need only these fields. The rest is
kept as it is.

Source: *SentencePiece* (2018), arXiv 1808.06226; sentencepiece_model.proto; *Protocol Buffers*,
"Encoding".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum

_PIECE, _TRAINER, _NORMALISER = 1, 2, 3
_TEXT, _SCORE, _KIND = 1, 2, 3
_ALGORITHM, _BYTE_FALLBACK = 3, 35
_SPACE_IN_FRONT, _SHORTENS_BLANKS = 3, 4
_BPE = 2  # ModelType of sentencepiece_model.proto
_VARINT, _LENGTH, _FOUR_BYTES = 0, 2, 5
_FIXED_SIZE = {1: 8, 5: 4}


class PieceKind(IntEnum):
    """What a token is for; GGUF files use the same numbers."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


@dataclass(frozen=True, slots=True)
class Piece:
    """One token.

    Attributes:
        text: As written in the vocabulary: `▁the`, `<0x0A>`.
        score: BPE joins the pair first whose join has the highest score.
        kind: What it is for.
    """

    text: str
    score: float
    kind: PieceKind


@dataclass(frozen=True)
class SentencePieceModel:
    """A vocabulary with its settings.

    Attributes:
        pieces: The tokens in the order of their ids.
        adds_space: Whether a space is put in front of a text.
        settings: All other fields, as they stand in the file.
    """

    pieces: tuple[Piece, ...]
    adds_space: bool
    settings: bytes


def read_sentencepiece(data: bytes) -> SentencePieceModel:
    """Read the contents of a `tokenizer.model`.

    Args:
        data: The whole file.

    Returns:
        The vocabulary.

    Raises:
        ValueError: It is no such file, or cut off.
    """
    pieces: list[Piece] = []
    settings = bytearray()
    adds_space = True
    for number, value, raw in _read_fields(data):
        if number == _PIECE and isinstance(value, bytes):
            pieces.append(_read_piece(value))
            continue
        settings += raw
        if number == _NORMALISER and isinstance(value, bytes):
            found = {n: v for n, v, _ in _read_fields(value)}
            adds_space = bool(found.get(_SPACE_IN_FRONT, True))
    if not pieces:
        raise ValueError("it holds no tokens")
    return SentencePieceModel(tuple(pieces), adds_space, bytes(settings))


def build_bpe_model(pieces: Iterable[Piece], adds_space: bool) -> SentencePieceModel:
    """Make a vocabulary of pieces alone, with the settings of Llama 2 and Gemma.

    Args:
        pieces: The tokens in the order of their ids.
        adds_space: Whether a space is put in front of a text.

    Returns:
        A BPE vocabulary that changes nothing in a text, except that space.
    """
    tokens = tuple(pieces)
    has_bytes = any(piece.kind == PieceKind.BYTE for piece in tokens)
    trainer = _write_varint(_ALGORITHM, _BPE) + _write_varint(_BYTE_FALLBACK, has_bytes)
    normaliser = _write_varint(_SHORTENS_BLANKS, False)
    settings = _write_bytes(_TRAINER, trainer) + _write_bytes(_NORMALISER, normaliser)
    return SentencePieceModel(tokens, adds_space, settings)


def write_sentencepiece(model: SentencePieceModel) -> bytes:
    """Write a vocabulary as the contents of a `tokenizer.model`.

    Args:
        model: The vocabulary.

    Returns:
        The bytes.
    """
    pieces = b"".join(_write_bytes(_PIECE, _write_piece(piece)) for piece in model.pieces)
    # A field that comes twice is read as its last value.
    space = _write_bytes(_NORMALISER, _write_varint(_SPACE_IN_FRONT, model.adds_space))
    return pieces + model.settings + space


def _read_piece(data: bytes) -> Piece:
    text, score, kind = "", 0.0, PieceKind.NORMAL
    for number, value, _ in _read_fields(data):
        if number == _TEXT and isinstance(value, bytes):
            text = value.decode("utf-8")
        elif number == _SCORE and isinstance(value, bytes) and len(value) == 4:
            score = struct.unpack("<f", value)[0]
        elif number == _KIND and isinstance(value, int):
            kind = PieceKind(value)
    return Piece(text, score, kind)


def _write_piece(piece: Piece) -> bytes:
    score = bytes([_SCORE * 8 + _FOUR_BYTES]) + struct.pack("<f", piece.score)
    return _write_bytes(_TEXT, piece.text.encode()) + score + _write_varint(_KIND, piece.kind)


def _read_fields(data: bytes) -> Iterator[tuple[int, int | bytes, bytes]]:
    """The fields of a message: (number, value, the whole field)."""
    position = 0
    while position < len(data):
        start = position
        key, position = _read_varint(data, position)
        number, kind = divmod(key, 8)
        if kind == _VARINT:
            value, position = _read_varint(data, position)
            yield number, value, data[start:position]
            continue
        if kind == _LENGTH:
            length, position = _read_varint(data, position)
        elif kind in _FIXED_SIZE:
            length = _FIXED_SIZE[kind]
        else:
            raise ValueError(f"it has a field of kind {kind} at byte {start}")
        end = position + length
        if end > len(data):
            raise ValueError(f"a field at byte {start} ends after the end")
        yield number, data[position:end], data[start:end]
        position = end


def _read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A number, and where the next value starts."""
    number = shift = 0
    while position < len(data) and shift < 64:
        byte = data[position]
        number |= (byte & 127) << shift
        position += 1
        if byte < 128:
            return number, position
        shift += 7
    raise ValueError(f"the number before byte {position} does not end")


def _write_varint(number: int, value: int) -> bytes:
    return _varint(number * 8 + _VARINT) + _varint(int(value))


def _write_bytes(number: int, value: bytes) -> bytes:
    return _varint(number * 8 + _LENGTH) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    groups = bytearray()
    while value > 127:
        groups.append(value & 127 | 128)
        value >>= 7
    groups.append(value)
    return bytes(groups)
