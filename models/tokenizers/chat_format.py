r"""Well-known chat formats, for instruct models whose files bring no template.

Older checkpoints, and those in Meta's own layout, keep the format of a conversation in a paper or
a program, not beside the weights. A family lists the formats of its models. One of them is used
only if all of this holds, and a page can tell so by `ChatTemplate.format_name`:

1. The files bring no template.
2. The tokenizer has the special tokens that the format needs, and none that it must not have.
3. The model says that it was trained to chat. Either its name has the word "instruct", "chat" or
   "it" in it (`Llama-2-7b-chat-hf`, `gemma-3-1b-it`), or its files name the end of a turn, such as
   `<|eot_id|>`, as a token to stop at. A vocabulary alone says nothing: base models have the same.

Otherwise the model counts as a base model, which continues a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.tokenizers.tokenizer import Tokenizer

_INSTRUCT_NAME = re.compile(r"(?<![a-z0-9])(instruct|chat|it)(?![a-z0-9])", re.IGNORECASE)


@dataclass(frozen=True)
class ChatFormat:
    """One way to write a conversation.

    Attributes:
        name: As shown on the page.
        source: Who published it.
        template: The Jinja template.
        needs: Special tokens that the vocabulary must have.
        lacks: Special tokens that it must not have, as another format uses them.
        marks_word_starts: Whether the vocabulary puts a space before the first word of a text;
            None if the format does not care.
        ends: Special tokens, besides the end of a text, that end an answer.
    """

    name: str
    source: str
    template: str
    needs: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    marks_word_starts: bool | None = None
    ends: tuple[str, ...] = ()

    def end_ids(self, tokenizer: Tokenizer) -> frozenset[int]:
        """The ids of `ends`."""
        return frozenset(tokenizer.special_tokens[text] for text in self.ends)

    def fits(self, tokenizer: Tokenizer) -> bool:
        """Whether a vocabulary can write it."""
        special = tokenizer.special_tokens.keys()
        return (
            special >= {*self.needs, *self.ends}
            and special.isdisjoint(self.lacks)
            and self.marks_word_starts in (None, tokenizer.strips_first_space)
        )


def choose_chat_format(
    formats: Sequence[ChatFormat],
    tokenizer: Tokenizer,
    *,
    names: Iterable[str],
    stop_ids: frozenset[int],
) -> ChatFormat | None:
    """The format of an instruct model whose files bring no template.

    Args:
        formats: Those of its family.
        tokenizer: Its tokenizer.
        names: What the model is called, by its folder, repository or file.
        stop_ids: Tokens that its files name as the end of an answer.

    Returns:
        The first format that fits, or None for what has to count as a base model.
    """
    named = any(_INSTRUCT_NAME.search(name) for name in names)
    for chat_format in formats:
        if chat_format.fits(tokenizer) and (named or chat_format.end_ids(tokenizer) & stop_ids):
            return chat_format
    return None


CHATML = ChatFormat(
    name="ChatML",
    source="OpenAI 2023; Qwen 2 and 3, SmolLM2, Olmo 3",
    template=(
        "{% for message in messages %}"
        "{{ '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}"
        "{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
    needs=("<|im_start|>", "<|im_end|>"),
    ends=("<|im_end|>",),
)
