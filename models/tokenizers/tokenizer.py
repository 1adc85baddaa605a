"""What every tokenizer can do, whatever file it came from.

    text --encode--> ids --token_bytes--> bytes --UTF-8--> text

`decode` is nothing but the tokens' bytes put together, so that one definition holds for decoding
at once, for streaming and for drawing single tokens.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from models.errors import TokenizerError

_SURROGATES = re.compile("[\ud800-\udfff]")


def replace_lone_surrogates(text: str) -> str:
    """Make a text fit for UTF-8: half a character (a lone surrogate) becomes U+FFFD.

    Python strings can hold such halves, for example from a JSON escape that was cut in two. Two
    halves that belong together become the character they mean.
    """
    if not _SURROGATES.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class Tokenizer(ABC):
    """Turns text into ids and back. Its methods may be called from several threads at once.

    Attributes:
        name: What a page calls it.
        vocab_size: The highest id that can be produced, plus 1, special tokens included.
        special_tokens: Text of each special token, such as `<|im_end|>`, and its id.
        bos_id: The token that begins a text, or None.
        eos_id: The token that ends a text or an answer, or None.
        pad_id: The token that fills up a batch, or None.
        adds_bos: Whether the model was trained with `bos_id` in front of raw text.
        strips_first_space: Whether `decode` drops a space at the very front, because `encode` put
            one there (sentencepiece vocabularies mark the start of a word that way).
    """

    def __init__(
        self,
        *,
        name: str,
        vocab_size: int,
        special_tokens: Mapping[str, int],
        bos_id: int | None = None,
        eos_id: int | None = None,
        pad_id: int | None = None,
        adds_bos: bool = False,
        strips_first_space: bool = False,
    ) -> None:
        self.name = name
        self.vocab_size = vocab_size
        self.special_tokens: Mapping[str, int] = MappingProxyType(dict(special_tokens))
        self.bos_id = bos_id
        self.eos_id = eos_id
        self.pad_id = pad_id
        self.adds_bos = adds_bos
        self.strips_first_space = strips_first_space

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Cut a text into tokens. Never adds `bos_id`.

        Args:
            text: Any string. Lone surrogates are read as U+FFFD.
            special: Whether special tokens typed in the text count as such. If not, `<|im_end|>`
                is ten ordinary characters.

        Returns:
            The ids, none for an empty text.
        """
        return self._encode(replace_lone_surrogates(text), special)

    def encode_continuation(self, text: str, special: bool = False) -> list[int]:
        """Cut a text that goes on after other tokens.

        Differs from `encode` only for vocabularies that put a space before the first word of a
        text: here none is put.

        Args:
            text: Any string.
            special: As for `encode`.

        Returns:
            The ids.
        """
        return self.encode(text, special)

    def decode(self, ids: Iterable[int]) -> str:
        """Put tokens together to a text.

        Args:
            ids: Token ids.

        Returns:
            The text, special tokens included; bytes that are no UTF-8 become U+FFFD.

        Raises:
            TokenizerError: An id is not in the vocabulary.
        """
        text = b"".join([self.token_bytes(token) for token in ids]).decode("utf-8", "replace")
        return text.removeprefix(" ") if self.strips_first_space else text

    def token_bytes(self, token: int) -> bytes:
        """The exact bytes of one token; of a special token, its text.

        Args:
            token: An id.

        Returns:
            The bytes, possibly a part of a character only.

        Raises:
            TokenizerError: The id is not in the vocabulary.
        """
        found = self._token_bytes(int(token)) if 0 <= token < self.vocab_size else None
        if found is None:
            raise TokenizerError(
                f"Token id {token} is not in the vocabulary of {self.name}; its ids are 0 to "
                f"{self.vocab_size - 1}, some may be unused. Use the tokenizer that belongs to the "
                f"model.",
                code="token-id-unknown",
                token=int(token),
                tokenizer=self.name,
                last=self.vocab_size - 1,
            )
        return found

    def without_special_from(self, first: int) -> "Tokenizer | None":
        """The same tokenizer without its last special tokens, for a model with fewer rows.

        Args:
            first: The lowest id to leave out.

        Returns:
            The tokenizer, all of whose ids are below `first`; None if one from there on is no
            special token, as the tokenizer is then not the model's.
        """
        return None

    def split_special(self, text: str) -> list[str]:
        """Cut a text at the special tokens typed in it.

        Args:
            text: Any string.

        Returns:
            Plain text and special tokens in turn, beginning and ending with (maybe empty) text.
        """
        if not self.special_tokens:
            return [text]
        return re.split(f"({self._special_pattern()})", text)

    def _special_pattern(self) -> str:
        """A regular expression for all special tokens, longest first: `<a>` may begin `<a>b`."""
        return "|".join(re.escape(t) for t in sorted(self.special_tokens, key=len, reverse=True))

    @abstractmethod
    def _encode(self, text: str, special: bool) -> list[int]:
        """As `encode`, for a text without lone surrogates."""

    @abstractmethod
    def _token_bytes(self, token: int) -> bytes | None:
        """The bytes of an id between 0 and vocab_size - 1, or None if it is unused."""
