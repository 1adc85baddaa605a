"""Tiny models with a tokenizer whose ids are bytes, cut to their vocabulary."""

from dataclasses import replace

import pytest

from models import load_model
from models.tokenizers import Tokenizer


class LetterTokenizer(Tokenizer):
    """A letter a token."""

    def _encode(self, text, special):
        return [byte % 97 for byte in text.encode()]

    def _token_bytes(self, token):
        return bytes([token])


def open_tiny(folder):
    """A golden model that reads letters."""
    return replace(
        load_model(folder),
        tokenizer_or_error=LetterTokenizer(name="letters", vocab_size=97, special_tokens={}),
    )


@pytest.fixture(scope="module")
def llama(golden_folder):
    """Two layers, six heads, three of keys."""
    return open_tiny(golden_folder / "llama")


@pytest.fixture(scope="module")
def gemma(golden_folder):
    """With a window in some layers."""
    return open_tiny(golden_folder / "gemma3_text")


@pytest.fixture(scope="module")
def moe(golden_folder):
    """One layer of five experts, two at work."""
    return open_tiny(golden_folder / "qwen3_moe")
