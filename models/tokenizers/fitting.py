"""Whether a tokenizer belongs to a model: each token needs a row in the model's embedding."""

from models.errors import TokenizerError
from models.tokenizers.tokenizer import Tokenizer


def fit_tokenizer(tokenizer: Tokenizer, n_rows: int) -> Tokenizer:
    """The tokenizer without tokens that its model cannot read.

    Args:
        tokenizer: As its files describe it.
        n_rows: Rows of the embedding. There may be more rows than tokens: models are often padded.

    Returns:
        The same tokenizer, or one without special tokens at its end that have no row: Gemma 3's
        smaller models have none for the token that stands for a picture.

    Raises:
        TokenizerError: Other tokens have no row, so that it is not this model's tokenizer.
    """
    if tokenizer.vocab_size <= n_rows:
        return tokenizer
    smaller = tokenizer.without_special_from(n_rows)
    if smaller is None:
        raise TokenizerError(
            f"the tokenizer has {tokenizer.vocab_size} tokens, the model only {n_rows}; use the "
            "tokenizer that belongs to the model",
            code="tokenizer-too-large",
            tokens=tokenizer.vocab_size,
            rows=n_rows,
        )
    return smaller
