r"""Decodes a growing answer token by token, without ever showing half a character.

A character outside ASCII is 2 to 4 bytes and may be spread over several tokens. What is complete
goes out, the rest waits:

    tokens   " Gr"   "\xc3"   "\xbc"   "n"
    shown    " Gr"    ""       "ü"      "n"
"""

import codecs

from models.tokenizers.tokenizer import Tokenizer


class StreamDecoder:
    """Turns ids into text as they come. All pieces together equal `tokenizer.decode(ids)`."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Start an empty answer.

        Args:
            tokenizer: The tokenizer that the ids belong to.
        """
        self._tokenizer = tokenizer
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._strip_space = tokenizer.strips_first_space

    def push(self, token: int) -> str:
        """Add a token.

        Args:
            token: Its id.

        Returns:
            The text that became complete, perhaps none.

        Raises:
            TokenizerError: The id is not in the vocabulary.
        """
        return self._strip(self._decoder.decode(self._tokenizer.token_bytes(token)))

    def flush(self) -> str:
        """End the answer.

        Returns:
            What was held back: U+FFFD for a character that was never finished, else nothing.
        """
        return self._strip(self._decoder.decode(b"", final=True))

    def _strip(self, text: str) -> str:
        if self._strip_space and text:
            self._strip_space = False
            return text.removeprefix(" ")
        return text
