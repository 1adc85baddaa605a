"""A typed conversation through the model's own chat template.

    user: Hello              {"role": "user", "content": "Hello"}
    assistant: Hi!     ->    {"role": "assistant", "content": "Hi!"}
    more of it               (a line without a role goes on with the message above)

Special tokens typed inside a message stay text, as in a real conversation.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from explorer.errors import TokenizerError
from explorer.snippets import make_snippet, say_load, say_text
from explorer.tokens import TokenPieces, count_pieces
from models.tokenizers.tokenizer import replace_lone_surrogates

if TYPE_CHECKING:
    from models.loading import LoadedModel

_TURN = re.compile(r"^(system|user|assistant): ?", re.MULTILINE)


def read_conversation(text: str) -> list[dict[str, str]]:
    """Read messages typed with their role in front; a text without one is a user's message.

    Args:
        text: What was typed.
    """
    pieces = _TURN.split(text)
    messages = [{"role": "user", "content": pieces[0].strip()}] if pieces[0].strip() else []
    turns = zip(pieces[1::2], pieces[2::2], strict=True)
    return [*messages, *({"role": role, "content": said.strip()} for role, said in turns)]


def compute_chat_pieces(loaded: LoadedModel, text: str, *, limit: int = 1000) -> TokenPieces:
    """Cut a conversation as the model would read it, with the start of its answer.

    Args:
        loaded: A chat model.
        text: As for `read_conversation`.
        limit: As for `compute_token_pieces`.

    Raises:
        TokenizerError: The model has no template, refuses the conversation, or nothing was typed.
    """
    if loaded.chat is None:
        raise TokenizerError(
            f"{loaded.info.name} is a base model and has no chat template; choose a model that "
            "chats, such as SmolLM2-135M-Instruct",
            code="chat-no-template",
            model=loaded.info.name,
        )
    messages = read_conversation(replace_lone_surrogates(text))
    if not messages:
        raise TokenizerError("there is no message; type one", code="text-empty")
    return count_pieces(
        loaded.tokenizer, loaded.chat.render(messages), loaded.chat.encode(messages), limit=limit
    )


def make_chat_snippet(source: str, text: str) -> str:
    """Python that gives the same ids."""
    return make_snippet(
        (compute_chat_pieces,),
        "from models import load_model",
        "",
        f"pieces = {compute_chat_pieces.__name__}({say_load(source)}, {say_text(text)})",
        "print(pieces.n_tokens, pieces.ids)",
    )
