"""A typed text as the ids that a model reads: as it stands, or as a message in a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from explorer.conversation import encode_prompt
from explorer.errors import ConfigError, ContextError

if TYPE_CHECKING:
    from models.loading import LoadedModel


def read_prompt(
    loaded: LoadedModel, text: str, *, chat: bool = False, most_tokens: int | None = None
) -> list[int]:
    """The ids of a prompt, with what stands in front of every text for this model.

    Args:
        loaded: Any model.
        text: What was typed.
        chat: Whether it is a message that the model answers, laid out by its template; a model
            without one reads the text as it stands.
        most_tokens: Refuse longer prompts; None allows all that the model can read.

    Raises:
        ConfigError: There is no text.
        ContextError: There are more tokens than that.
        TokenizerError: The model has no tokenizer, or its template refuses the message.
    """
    if not text:
        raise ConfigError("there is no text; type some", code="text-empty")
    if chat:
        ids = encode_prompt(loaded, [{"role": "user", "content": text}])
    else:
        tokenizer = loaded.tokenizer
        ids = tokenizer.encode(text)
        if tokenizer.adds_bos and tokenizer.bos_id is not None:
            ids = [tokenizer.bos_id, *ids]
    context = loaded.config.context_length
    limit = min(most_tokens or context, context)
    if len(ids) > limit:
        raise ContextError(
            f"the text has {len(ids)} tokens, and at most {limit} are read here; shorten it",
            code="context-too-long" if limit == context else "text-too-long-here",
            asked=len(ids),
            limit=limit,
        )
    return ids
