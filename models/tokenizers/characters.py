r"""A tokenizer whose tokens are single characters: the simplest there is.

    "hello world"   sorted, each once   " dehlorw"   ->   ' ': 0, 'd': 1, 'e': 2, ... 'w': 7
    special tokens get the ids after them           ->   "<|endoftext|>": 8

There is no token for unknown characters. A model that was trained on such a text has never seen
one, so it could say nothing about what follows; and leaving it out would show the model another
text than was typed. So encoding a text with a character outside the vocabulary is an error that
names the character (`LibraryTokenizer` sees to it, also after saving and loading).

As a file it is a BPE without merges, which every reader of tokenizer.json knows.
"""

from collections.abc import Sequence

from models.tokenizers.library_tokenizer import LibraryTokenizer
from models.tokenizers.tokenizer import replace_lone_surrogates
from models.tokenizers.trained import (
    END_OF_TEXT,
    check_special_tokens,
    empty_training_text,
    wrap_trained,
)

SPECIAL_TOKENS = (END_OF_TEXT,)  # unless others are asked for


def train_character_tokenizer(
    text: str,
    *,
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    name: str = "characters",
) -> LibraryTokenizer:
    """Make a tokenizer of the characters that occur in a text.

    Args:
        text: The text that a model will be trained on.
        special_tokens: More tokens; `<|endoftext|>` among them begins and ends texts.
        name: What a page calls it.

    Returns:
        The tokenizer; ids are the characters in the order of Unicode, then the special tokens.

    Raises:
        TokenizerError: The text is empty, or a special token cannot be told from others.
    """
    from tokenizers import Tokenizer, decoders, models

    characters = sorted(set(replace_lone_surrogates(text)))
    if not characters:
        raise empty_training_text()
    check_special_tokens(special_tokens, characters)
    library = Tokenizer(models.BPE({character: i for i, character in enumerate(characters)}, []))
    library.decoder = decoders.Fuse()
    return wrap_trained(library, special_tokens, name=name, writing="plain")
