"""Tiny recorded checkpoints with a tokenizer whose ids are letters, cut to their vocabulary."""

from dataclasses import replace

from models import load_model
from models.tokenizers import Tokenizer


class LetterTokenizer(Tokenizer):
    """A token a byte, modulo the vocabulary."""

    def _encode(self, text, special):
        return [byte % self.vocab_size for byte in text.encode()]

    def _token_bytes(self, token):
        return bytes([token])


def load_lettered(folder):
    """The checkpoint in that folder, with letters as tokens."""
    loaded = load_model(folder)
    tokenizer = LetterTokenizer(
        name="letters", vocab_size=min(97, loaded.config.vocab_size), special_tokens={}
    )
    return replace(loaded, tokenizer_or_error=tokenizer)
