"""The 256-entry table that byte-level vocabularies use to write bytes as visible characters.

GPT-2 cuts UTF-8 *bytes* into tokens, but stores its vocabulary as text. So every byte gets one
printable character:

    byte   0 .. 32        -> U+0100 .. U+0120      space (32) becomes "Ġ", newline (10) "Ċ"
    byte  33 .. 126       -> itself                "!" .. "~"
    byte 127 .. 160       -> U+0121 .. U+0142
    byte 161 .. 172       -> itself                "¡" .. "¬"
    byte 173              -> U+0143                the soft hyphen cannot be seen either
    byte 174 .. 255       -> itself                "®" .. "ÿ"

The bytes that have no visible character of their own get 256, 257, ... in their order.

Source: *Language Models are Unsupervised Multitask Learners* (2019), section 2.2, and the encoder
released with it.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType


@cache
def byte_to_character() -> tuple[str, ...]:
    """The table: entry b is the character that stands for byte b."""
    visible = {*range(33, 127), *range(161, 173), *range(174, 256)}
    hidden = [byte for byte in range(256) if byte not in visible]
    return tuple(chr(b) if b in visible else chr(256 + hidden.index(b)) for b in range(256))


@cache
def character_to_byte() -> Mapping[str, int]:
    """The table read backwards."""
    return MappingProxyType({character: b for b, character in enumerate(byte_to_character())})


def token_text_to_bytes(text: str) -> bytes:
    """Read the text of a byte-level token, such as `Ġthe`, as the bytes it stands for.

    Args:
        text: The token as the vocabulary file writes it.

    Returns:
        Its bytes. A text with a character outside the table can only be a token that was added
        as plain text, and gives its own UTF-8.
    """
    table = character_to_byte()
    try:
        return bytes([table[character] for character in text])
    except KeyError:
        return text.encode("utf-8")
