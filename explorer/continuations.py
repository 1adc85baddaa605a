"""A prompt written on, token by token, under given dials: for what is compared side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from explorer.errors import Stopped
from explorer.next_token import MOST_PROMPT_TOKENS, SamplingSettings, make_sampling
from explorer.prompts import read_prompt
from explorer.tokens import label_of

if TYPE_CHECKING:
    from models.interventions import Interventions
    from models.loading import LoadedModel


@dataclass(frozen=True)
class WrittenToken:
    """One token that was written.

    Args:
        id: Its id.
        label: Its text, with spaces that can be seen.
        probability: The model's own probability for it, before the dials.
        rank: 1 is the model's first choice.
    """

    id: int
    label: str
    probability: float
    rank: int


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One prompt under two settings, so far.

    Args:
        first: Written under the first.
        second: Written under the second.
        texts: What they say.
        parting: How many tokens they share at their beginning.
        finished: Whether both are complete.
    """

    first: tuple[WrittenToken, ...]
    second: tuple[WrittenToken, ...]
    texts: tuple[str, str]
    parting: int
    finished: bool


def write_on(
    loaded: LoadedModel,
    ids: Sequence[int],
    settings: SamplingSettings,
    *,
    max_new_tokens: int,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
    changes: Interventions | None = None,
) -> Iterator[WrittenToken]:
    """Write tokens until the model ends, the length is reached, or the visitor stops.

    Args:
        loaded: Any model with its tokenizer.
        ids: The prompt.
        settings: The dials and the seed.
        max_new_tokens: At most so many.
        turn: Entered for each forward pass; where several share a device, it makes them wait.
        changes: What to change in every pass.

    Raises:
        ConfigError: Impossible settings, or an empty prompt.
        ContextError: The prompt leaves the model no room.
    """
    import torch

    from models.generation import generate

    stream = generate(
        loaded.model,
        ids,
        max_new_tokens=max_new_tokens,
        sampling=make_sampling(settings),
        stop_ids=loaded.stop_ids,
        generator=torch.Generator(loaded.model.device).manual_seed(settings.seed),
        changes=changes,
        turn=turn,
    )
    try:
        for token in stream:
            if token.finish == "stop":
                return
            label = label_of(loaded.tokenizer, token.id)
            yield WrittenToken(token.id, label, token.probability, token.rank + 1)
    except Stopped:
        return


def stream_pair(
    loaded: LoadedModel,
    text: str,
    first: SamplingSettings,
    second: SamplingSettings,
    *,
    chat: bool = False,
    max_new_tokens: int = 30,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[Pair]:
    """Write one prompt on under two settings, a token of each in turn.

    Args:
        loaded: Any model with its tokenizer.
        text: The prompt.
        first: The dials of one.
        second: The dials of the other.
        chat: Whether the prompt is a message that the model answers.
        max_new_tokens: At most so many each.
        turn: Entered for each forward pass; where several share a device, it makes them wait.

    Yields:
        Both so far; the last one is finished.

    Raises:
        ConfigError: No text, or impossible settings.
        ContextError: The text is too long.
    """
    ids = read_prompt(loaded, text, chat=chat, most_tokens=MOST_PROMPT_TOKENS)
    streams = [
        write_on(loaded, ids, settings, max_new_tokens=max_new_tokens, turn=turn)
        for settings in (first, second)
    ]
    written: list[list[WrittenToken]] = [[], []]
    running = [True, True]
    while any(running):
        for which, stream in enumerate(streams):
            token = next(stream, None)
            running[which] = token is not None
            written[which] += [] if token is None else [token]
        yield _make_pair(loaded, written, finished=not any(running))


def _make_pair(loaded: LoadedModel, written: list[list[WrittenToken]], *, finished: bool) -> Pair:
    one, two = ([token.id for token in tokens] for tokens in written)
    same = zip(one, two, strict=False)
    parting = next((i for i, (a, b) in enumerate(same) if a != b), min(len(one), len(two)))
    texts = (loaded.tokenizer.decode(one), loaded.tokenizer.decode(two))
    return Pair(
        first=tuple(written[0]),
        second=tuple(written[1]),
        texts=texts,
        parting=parting,
        finished=finished,
    )


def as_chips(loaded: Any, tokens: Sequence[WrittenToken]) -> tuple[Any, ...]:
    """The written tokens in units of text, each with its probability.

    Args:
        loaded: Whose tokens they are.
        tokens: What was written.
    """
    from explorer.answer_units import compute_answer_units
    from explorer.conversation import AnswerToken

    answer = [AnswerToken(t.id, t.probability, t.rank, ()) for t in tokens]
    return compute_answer_units(loaded.tokenizer, answer)
