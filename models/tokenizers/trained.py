"""What tokenizers trained here share: their special tokens, and how they become a `Tokenizer`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from models.errors import TokenizerError
from models.tokenizers.library_tokenizer import LibraryTokenizer, TokenWriting

if TYPE_CHECKING:
    import tokenizers

END_OF_TEXT = "<|endoftext|>"


def check_special_tokens(special_tokens: Sequence[str], tokens: Collection[str]) -> None:
    """Refuse special tokens that could not be told from each other or from other tokens.

    Args:
        special_tokens: Their texts.
        tokens: The other tokens.

    Raises:
        TokenizerError: One is empty, given twice, another token, or a part of another one.
    """
    for i, special in enumerate(special_tokens):
        others = [*special_tokens[:i], *special_tokens[i + 1 :]]
        inside = next((other for other in others if special in other), None)
        if not special or inside is not None or special in tokens:
            problem = f"stands inside {inside!r}" if inside else "is empty or an ordinary token"
            raise TokenizerError(
                f"the special token {special!r} cannot be told from others: it {problem}; choose "
                f"another text, such as {END_OF_TEXT!r}",
                code="tokenizer-special-unusable",
                token=special,
            )


def empty_training_text() -> TokenizerError:
    """The error for a text that no tokenizer can be made from."""
    return TokenizerError(
        "a tokenizer is made from a text, but this one is empty; give the text that the model will "
        "be trained on",
        code="tokenizer-text-empty",
    )


def wrap_trained(
    library: tokenizers.Tokenizer,
    special_tokens: Sequence[str],
    *,
    name: str,
    writing: TokenWriting,
) -> LibraryTokenizer:
    """Add special tokens and make a `Tokenizer`.

    Args:
        library: The vocabulary, which may hold the special tokens already.
        special_tokens: Their texts; those that are new get the next ids.
        name: What a page calls it.
        writing: How its tokens are written as text.

    Returns:
        The tokenizer. As with GPT-2, `<|endoftext|>` both begins and ends a text.
    """
    from tokenizers import AddedToken

    added = [AddedToken(text, special=True, normalized=False) for text in special_tokens]
    library.add_special_tokens(added)
    end = library.token_to_id(END_OF_TEXT) if END_OF_TEXT in special_tokens else None
    return LibraryTokenizer(library, name=name, writing=writing, bos_id=end, eos_id=end)
