"""From a conversation to the tokens that the model reads, whatever its template refuses.

    messages ─ as they are ─► template ─► ids
       │           └─ refused, or the system prompt is lost:
       ├─ system joins the first user turn
       ├─ turns of one speaker in a row become one
       └─ both

Gemma knows no system role, Mistral's and Gemma's templates want user and assistant in turn. What
was changed is told (`notes`), and so is what had to go because the context is full: whole turns,
the oldest first; the system prompt and the last question stay.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from explorer.errors import ConfigError, TokenizerError
from explorer.thoughts import begins_inside

if TYPE_CHECKING:
    from models.loading import LoadedModel
    from models.tokenizers import ChatTemplate

Message = Mapping[str, str]
Note = Literal["system_joined", "turns_merged"]

_BETWEEN = "\n\n"  # as Gemma 3's own template joins a system prompt to the first turn
_TAIL_TOKENS = 16  # the end of a prompt, where a template may have begun a thought
# A part of the context is kept free for the answer before turns are dropped for it.
ANSWER_SHARE = 4


@dataclass(frozen=True)
class ChatPrompt:
    """What the model reads.

    Args:
        ids: Its tokens.
        notes: What was changed so that the template takes the messages.
        n_dropped: Oldest messages that were left out because the context is full.
        starts_inside: Whether the answer begins inside a thought.
    """

    ids: tuple[int, ...]
    notes: tuple[Note, ...] = ()
    n_dropped: int = 0
    starts_inside: bool = False


def make_prompt(
    loaded: LoadedModel,
    messages: Sequence[Message],
    *,
    thinking: bool = True,
    max_new_tokens: int = 0,
) -> ChatPrompt:
    """The tokens that the model reads before it answers.

    A chat model's template lays the messages out. A base model has none and just goes on with the
    text: it gets the contents one after the other.

    Args:
        loaded: Any model.
        messages: {"role": "system" | "user" | "assistant", "content": text}, oldest first.
        thinking: Let the model think first, where its template knows the switch.
        max_new_tokens: Longest answer; room for it is made, up to a quarter of the context. 0
            drops nothing.

    Raises:
        ConfigError: Nothing was said.
        TokenizerError: The template refuses these messages, whatever is changed.
    """
    if not any(message["content"] for message in messages):
        raise ConfigError("there is no message; type one", code="text-empty")
    lay_out = _layout_of(loaded, thinking)
    ids, notes = lay_out(messages)
    n_dropped = 0
    limit = loaded.config.context_length
    free = limit - min(max_new_tokens, limit // ANSWER_SHARE)
    if max_new_tokens and len(ids) > free:
        kept = _drop_oldest(messages, lambda left: len(lay_out(left)[0]) <= free)
        n_dropped = len(messages) - len(kept)
        if n_dropped:
            ids, notes = lay_out(kept)
    tail = loaded.tokenizer.decode(ids[-_TAIL_TOKENS:])
    return ChatPrompt(tuple(ids), notes, n_dropped, begins_inside(tail))


Layout = Callable[[Sequence[Message]], tuple[list[int], tuple[Note, ...]]]


def _layout_of(loaded: LoadedModel, thinking: bool) -> Layout:
    if loaded.chat is None:
        return lambda messages: (_continue_text(loaded, messages), ())
    chat = loaded.chat.with_thinking(thinking)
    return lambda messages: _lay_out(chat, messages)


def _continue_text(loaded: LoadedModel, messages: Sequence[Message]) -> list[int]:
    text = "\n".join(message["content"] for message in messages if message["content"])
    ids = loaded.tokenizer.encode(text)
    if loaded.tokenizer.adds_bos and loaded.tokenizer.bos_id is not None:
        ids = [loaded.tokenizer.bos_id, *ids]
    return ids


def _lay_out(chat: ChatTemplate, messages: Sequence[Message]) -> tuple[list[int], tuple[Note, ...]]:
    """The first version of the messages that the template takes without losing the system."""
    problem: TokenizerError | None = None
    taken: tuple[Sequence[Message], tuple[Note, ...]] | None = None
    for changed, notes in _versions(messages):
        try:
            written = chat.render(changed)
        except TokenizerError as error:
            if error.code != "chat-template-failed":
                raise
            problem = problem or error
            continue
        taken = taken or (changed, notes)
        if _says(written, _system_of(messages)):
            return chat.encode(changed), notes or _joined_by_itself(chat, messages, written)
    if taken is None:
        assert problem is not None, "a version that was not taken was refused"
        raise problem
    return chat.encode(taken[0]), taken[1]


def _versions(
    messages: Sequence[Message],
) -> list[tuple[Sequence[Message], tuple[Note, ...]]]:
    """The messages as they are, then changed ever more."""
    versions: list[tuple[Sequence[Message], tuple[Note, ...]]] = [(messages, ())]
    joined, merged = _join_system(messages), _merge_turns(messages)
    if joined != list(messages):
        versions.append((joined, ("system_joined",)))
    if merged != list(messages):
        versions.append((merged, ("turns_merged",)))
    both = _merge_turns(joined)
    if both not in (joined, merged):
        versions.append((both, ("system_joined", "turns_merged")))
    return versions


def _system_of(messages: Sequence[Message]) -> str:
    first = messages[0]
    return first["content"] if first["role"] == "system" else ""


def _says(written: str, system: str) -> bool:
    """Whether a system prompt reached the model; templates may trim it."""
    return system.strip() in written


def _joined_by_itself(
    chat: ChatTemplate, messages: Sequence[Message], written: str
) -> tuple[Note, ...]:
    """Gemma 3's template joins a system prompt itself; the reader is told all the same."""
    joined = _join_system(messages)
    if joined == list(messages):
        return ()
    try:
        return ("system_joined",) if chat.render(joined) == written else ()
    except TokenizerError:
        return ()


def _join_system(messages: Sequence[Message]) -> list[Message]:
    """The system prompt as the beginning of the first user turn."""
    if len(messages) < 2 or messages[0]["role"] != "system" or messages[1]["role"] != "user":
        return list(messages)
    system, user, *rest = messages
    content = _BETWEEN.join(part for part in (system["content"], user["content"]) if part)
    return [{**user, "content": content}, *rest]


def _merge_turns(messages: Sequence[Message]) -> list[Message]:
    """Turns of one speaker in a row as one."""
    merged: list[Message] = []
    for message in messages:
        if merged and merged[-1]["role"] == message["role"] != "system":
            parts = (merged[-1]["content"], message["content"])
            merged[-1] = {**message, "content": _BETWEEN.join(part for part in parts if part)}
        else:
            merged.append(message)
    return merged


def _drop_oldest(
    messages: Sequence[Message], fits: Callable[[Sequence[Message]], bool]
) -> Sequence[Message]:
    """The messages without as many of the oldest turns as need be; the last turn stays."""
    n_system = int(messages[0]["role"] == "system")
    system, talk = list(messages[:n_system]), messages[n_system:]
    begins = [i for i, message in enumerate(talk) if message["role"] == "user"] or [0]
    low, high = 0, len(begins) - 1  # the turn that comes first: `high` is as short as can be
    while low < high:
        middle = (low + high) // 2
        if fits([*system, *talk[begins[middle] :]]):
            high = middle
        else:
            low = middle + 1
    return [*system, *talk[begins[high] :]] if high else messages
