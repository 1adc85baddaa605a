"""The token that an analysis follows: a word of the reader's choice, or the model's own answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from explorer.errors import ConfigError
from explorer.tokens import label_of

if TYPE_CHECKING:
    from models.loading import LoadedModel


@dataclass(frozen=True)
class Target:
    """A token to follow.

    Args:
        id: Its id.
        label: Its text, with spaces that can be seen.
        n_tokens: Tokens that the word is; of several, `id` is the first.
        chosen: Whether a reader chose it; else it is the model's own answer.
    """

    id: int
    label: str
    n_tokens: int
    chosen: bool


def find_target(loaded: LoadedModel, word: str) -> Target:
    """The first token of a word.

    A space stands in front where that makes no more tokens of it: words follow others. A special
    token, such as one that ends a text, is itself.

    Raises:
        ConfigError: There is no word.
        TokenizerError: The model has no tokenizer.
    """
    tokenizer = loaded.tokenizer
    if word in tokenizer.special_tokens:
        special = tokenizer.special_tokens[word]
        return Target(special, label_of(tokenizer, special), 1, True)
    bare = tokenizer.encode(word)
    spaced = tokenizer.encode(" " + word.lstrip(" "))
    ids = spaced if len(spaced) <= len(bare) else bare
    if not word.strip() or not ids:
        raise ConfigError("there is no word to follow; type one", code="target-empty")
    return Target(ids[0], label_of(tokenizer, ids[0]), len(ids), True)


def own_answer(loaded: LoadedModel, token: int) -> Target:
    """The model's own answer as the token to follow."""
    return Target(token, label_of(loaded.tokenizer, token), 1, False)


def place_in(position: int, n_tokens: int) -> int:
    """The position counted from 0; negative ones count from the end.

    Raises:
        ConfigError: There is no such token.
    """
    if not -n_tokens <= position < n_tokens:
        raise ConfigError(
            f"there is no token {position} in a text of {n_tokens}; choose 0 to {n_tokens - 1}",
            code="index-range-token",
            index=position,
            last=n_tokens - 1,
        )
    return position % n_tokens
