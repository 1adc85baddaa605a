"""Python that writes the same answer as the page, token by token, for "Copy as Python"."""

from collections.abc import Sequence
from dataclasses import replace

from explorer.chat_prompt import Message
from explorer.conversation import AnswerSettings, AnswerStep, AnswerToken, stream_answer
from explorer.snippets import make_snippet, say_load


def make_answer_snippet(
    source: str,
    messages: Sequence[Message],
    settings: AnswerSettings,
    answer: AnswerStep,
    n_start: int = 0,
) -> str:
    """A runnable snippet that prints id, probability and rank of every token, then the text.

    Args:
        source: Of the model.
        messages: What the model was given.
        settings: How it answered, the seed included.
        answer: The last step of the answer. One that was stopped is written up to the same token.
        n_start: How many of its tokens it began with, as a branch.
    """
    if answer.finish == "stopped":
        settings = replace(settings, max_new_tokens=max(1, len(answer.tokens)))
    lines = [f"    {dict(message)!r}," for message in messages]
    imports = (AnswerSettings, AnswerToken, stream_answer)
    start = [(token.id, token.probability, token.rank) for token in answer.tokens[:n_start]]
    given = f"[{AnswerToken.__name__}(*numbers, ()) for numbers in {start!r}]" if start else "[]"
    call = f"{stream_answer.__name__}({say_load(source)}, messages, settings, start=start)"
    return make_snippet(
        imports,
        "from models import load_model",
        "",
        "messages = [",
        *lines,
        "]",
        f"settings = {settings!r}",
        f"start = {given}",
        f"*_, answer = {call}",
        "for token in answer.tokens:",
        "    print(token.id, token.probability, token.rank)",
        "print(answer.text)",
    )
