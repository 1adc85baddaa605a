r"""A tokenizer on Hugging Face's `tokenizers` library, and how its tokens are read as bytes.

Vocabularies write tokens as text in one of four ways:

    byte_level   every byte is one visible character (byte_table.py):  " the" is "Ġthe"
    metaspace    text, with "▁" for the space:                         " the" is "▁the"
                 characters outside the vocabulary as bytes:           "\n" is "<0x0A>"
    pieces       blanks are lost; what goes on inside a word marked:   " the" is "the"
                                                                       "ing" is "##ing"
    plain        text as it is, made of the characters of one text:    " the" is " the"

Of pieces, each that begins a word reads with a space in front: what the text had is not kept.

Sources: *SentencePiece* (2018), arXiv 1808.06226, section 3.1 (metaspace); *Google's Neural Machine
Translation System* (2016), arXiv 1609.08144, section 4.1 (pieces of words).
"""

from __future__ import annotations

import copy
import json
import re
import threading
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from models.errors import TokenizerError
from models.tokenizers.byte_table import token_text_to_bytes
from models.tokenizers.tokenizer import Tokenizer, replace_lone_surrogates

if TYPE_CHECKING:
    import tokenizers

_BYTE_TOKEN = re.compile(r"<0x([0-9A-F]{2})>")
_METASPACE = "▁"

TokenWriting = Literal["byte_level", "metaspace", "pieces", "plain"]


class LibraryTokenizer(Tokenizer):
    """A tokenizer on `tokenizers.Tokenizer`.

    Whether the library parses special tokens is a setting of its object. To serve several threads,
    one object is kept per setting, made when it is first needed, and never changed afterwards.

    Attributes:
        writing: How its tokens are written as text.
    """

    def __init__(
        self,
        library: tokenizers.Tokenizer,
        *,
        name: str,
        writing: TokenWriting,
        bos_id: int | None = None,
        eos_id: int | None = None,
        pad_id: int | None = None,
        adds_bos: bool = False,
        strips_first_space: bool = False,
    ) -> None:
        """Wrap the library's object, which must not be used elsewhere afterwards.

        Args:
            library: The object; truncation and padding are switched off.
            name: What a page calls it.
            writing: How its tokens are written as text.
            bos_id: As for `Tokenizer`.
            eos_id: As for `Tokenizer`.
            pad_id: As for `Tokenizer`.
            adds_bos: As for `Tokenizer`.
            strips_first_space: As for `Tokenizer`.
        """
        added = library.get_added_tokens_decoder()
        super().__init__(
            name=name,
            vocab_size=max(library.get_vocab(with_added_tokens=True).values(), default=-1) + 1,
            special_tokens={t.content: i for i, t in added.items() if t.special and t.content},
            bos_id=bos_id,
            eos_id=eos_id,
            pad_id=pad_id,
            adds_bos=adds_bos,
            strips_first_space=strips_first_space,
        )
        library.no_truncation()
        library.no_padding()
        library.encode_special_tokens = True
        self.writing = writing
        self._alphabet = _closed_alphabet(library) if writing == "plain" else None
        self._hidden: frozenset[str] = frozenset()
        self._added = {i: token.content for i, token in added.items()}
        self._special_tokens = [token for token in added.values() if token.special]
        self._library = library  # (plain text, at the start of a text)
        self._others: dict[tuple[bool, bool], tokenizers.Tokenizer] = {(False, True): library}
        before = library.pre_tokenizer
        self._opens_with_space = before is not None and _never_prepend(
            json.loads(before.__getstate__())
        )
        self._lock = threading.Lock()

    def encode_continuation(self, text: str, special: bool = False) -> list[int]:
        """As `Tokenizer.encode_continuation`."""
        return self._encode(replace_lone_surrogates(text), special, opening=False)

    def without_special_from(self, first: int) -> LibraryTokenizer | None:
        """As `Tokenizer.without_special_from`."""
        hidden = {i: text for text, i in self.special_tokens.items() if i >= first}
        found = self._library.get_vocab(with_added_tokens=True)
        if any(i >= first and i not in hidden for i in found.values()):
            return None
        smaller = copy.copy(self)  # building another library object takes seconds
        smaller.vocab_size = first
        smaller.special_tokens = MappingProxyType(
            {text: i for text, i in self.special_tokens.items() if i < first}
        )
        smaller._special_tokens = [
            token for token in self._special_tokens if token.content not in hidden.values()
        ]
        smaller._hidden = frozenset(hidden.values())
        smaller.bos_id = None if self.bos_id in hidden else self.bos_id
        smaller.eos_id = None if self.eos_id in hidden else self.eos_id
        smaller.pad_id = None if self.pad_id in hidden else self.pad_id
        return smaller

    def to_json(self) -> str:
        """The content of a tokenizer.json that gives the same ids."""
        description = json.loads(self._library.to_str())
        if self._hidden:
            description["added_tokens"] = [
                token for token in description["added_tokens"] if token["id"] < self.vocab_size
            ]
            vocabulary = description["model"]["vocab"]
            for text in self._hidden & vocabulary.keys():
                del vocabulary[text]
        return json.dumps(description, ensure_ascii=False)

    def _encode(self, text: str, special: bool, opening: bool = True) -> list[int]:
        if special and any(token in text for token in self._hidden):
            return self._encode_piecewise(text, opening)
        if self._alphabet is not None:
            self._check_characters(text, special, self._alphabet)
        library = self._variant(special, opening)
        try:
            # "fast" does not work out where each token lies in the text: a third of the time
            return library.encode_batch_fast([text], add_special_tokens=False)[0].ids
        except Exception as error:  # the library raises nothing more precise
            raise TokenizerError(
                f"{self.name} cannot write this text: {error}; it has no token for what it does "
                "not know. Take that out of the text, or choose a tokenizer of bytes.",
                code="tokenizer-text-unwritable",
                tokenizer=self.name,
                problem=str(error),
            ) from error

    def _check_characters(self, text: str, special: bool, alphabet: frozenset[str]) -> None:
        """Refuse what the library would leave out without a word."""
        pieces = self.split_special(text)[::2] if special else [text]
        unknown = sorted(set().union(*pieces) - alphabet)
        if unknown:
            listed = ", ".join(map(repr, unknown[:10]))
            raise TokenizerError(
                f"{self.name} has no token for {listed}: its vocabulary is the characters of the "
                f"text that it was made from. Leave them out, or choose a tokenizer of bytes.",
                code="tokenizer-character-unknown",
                tokenizer=self.name,
                found=listed,
            )

    def _encode_piecewise(self, text: str, opening: bool) -> list[int]:
        """Special tokens parsed, while those that we hide from the library's user stay text."""
        ids: list[int] = []
        for index, piece in enumerate(self.split_special(text)):
            if piece:
                is_text = index % 2 == 0
                ids += self._encode(piece, special=not is_text, opening=opening and index == 0)
        return ids

    def _variant(self, special: bool, opening: bool) -> tokenizers.Tokenizer:
        """The library's object for these settings."""
        with self._lock:
            # A copy of a large vocabulary takes seconds: only where it would be another one.
            key = (special, opening or not self._opens_with_space)
            if key not in self._others:
                self._others[key] = _copy_with(self._library, special, opening)
            return self._others[key]

    def _token_bytes(self, token: int) -> bytes | None:
        text = self._library.id_to_token(token)
        if text is None:
            return None
        if self.writing == "byte_level":
            return text.encode() if token in self._added else token_text_to_bytes(text)
        if text in self.special_tokens or self.writing == "plain":
            return text.encode()
        if self.writing == "pieces":
            return _read_piece(self._library, text).encode()
        byte = _BYTE_TOKEN.fullmatch(text)
        return bytes.fromhex(byte[1]) if byte else text.replace(_METASPACE, " ").encode()

    def _special_pattern(self) -> str:
        """As the library sees them: some special tokens swallow the blanks around them."""
        longest_first = sorted(self._special_tokens, key=lambda t: len(t.content), reverse=True)
        return "|".join(
            (r"\s*" if token.lstrip else "")
            + re.escape(token.content)
            + (r"\s*" if token.rstrip else "")
            for token in longest_first
            if token.content
        )


def _read_piece(library: tokenizers.Tokenizer, piece: str) -> str:
    """A piece of a word, with a space in front where a word begins."""
    mark = getattr(library.model, "continuing_subword_prefix", "")
    return piece.removeprefix(mark) if mark and piece.startswith(mark) else f" {piece}"


def _closed_alphabet(library: tokenizers.Tokenizer) -> frozenset[str] | None:
    """All characters that can be encoded; None if there is a way for others too."""
    from tokenizers.models import BPE

    model = library.model
    is_open = not isinstance(model, BPE) or model.unk_token is not None or model.byte_fallback
    if is_open or library.normalizer is not None:
        return None
    return frozenset(t for t in library.get_vocab(with_added_tokens=False) if len(t) == 1)


def _copy_with(library: tokenizers.Tokenizer, special: bool, opening: bool) -> tokenizers.Tokenizer:
    """A copy that parses special tokens or not, and that sees a text's start or not."""
    import tokenizers

    settings = json.loads(library.to_str())
    if not opening:
        _never_prepend(settings["pre_tokenizer"])
    copy = tokenizers.Tokenizer.from_str(json.dumps(settings))
    copy.encode_special_tokens = not special
    return copy


def _never_prepend(step: object) -> bool:
    """Turn off, in a pre-tokenizer's JSON, the space before the first word; whether it was on."""
    if not isinstance(step, dict):
        return False
    found = step.get("prepend_scheme") == "first"
    if found:
        step["prepend_scheme"] = "never"
    return any([found, *map(_never_prepend, step.get("pretokenizers", ()))])
