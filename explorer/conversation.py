"""A conversation with a model, and its answers token by token.

    messages ─ chat template ─► prompt ids ─ generate ─► token ─► text (whole characters only)
               (chat_prompt.py)     ▲                     └─► probability, rank, entropy, what else
                                    └─ tokens of a branch that are given, the last one chosen

An answer is a generator of frozen `AnswerStep`s. Text is held back while its last character is
incomplete: a Chinese character or an emoji may be three tokens, and half of one is not text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

from explorer.chat_prompt import ChatPrompt, Message, make_prompt
from explorer.errors import ConfigError, Stopped

if TYPE_CHECKING:
    from explorer.answer_memory import AnswerMemory
    from models.generation import Alternative, Token
    from models.loading import LoadedModel
    from models.sampling import SamplingConfig
    from models.tokenizers import StreamDecoder

Finish = Literal["stop", "length", "context", "stopped"]


@dataclass(frozen=True, kw_only=True)
class AnswerSettings:
    """How an answer is written. The metadata of each field describes its control on the page.

    Args:
        temperature: 0 takes the most probable token each time.
        top_k: Keep the k most probable tokens; 0 keeps all.
        top_p: Keep the most probable tokens until their probabilities reach it.
        min_p: Keep tokens at least this times as probable as the first.
        repetition_penalty: Above 1, tokens already in the text become less probable.
        max_new_tokens: Longest answer, in tokens.
        seed: Of the draws: the same seed, settings and messages give the same answer.
        thinking: Let the model think before it answers; only where its template knows the switch.
    """

    temperature: float = field(default=0.7, metadata={"least": 0.0, "most": 2.0, "step": 0.05})
    top_k: int = field(default=50, metadata={"least": 0, "most": 200, "step": 1})
    top_p: float = field(default=0.95, metadata={"least": 0.05, "most": 1.0, "step": 0.01})
    min_p: float = field(default=0.0, metadata={"least": 0.0, "most": 0.5, "step": 0.01})
    repetition_penalty: float = field(
        default=1.0, metadata={"least": 1.0, "most": 2.0, "step": 0.05}
    )
    max_new_tokens: int = field(default=256, metadata={"least": 1, "most": 2048, "step": 1})
    seed: int = field(default=0, metadata={"least": 0, "most": 2**31 - 1, "step": 1})
    thinking: bool = True  # the default of the templates that know it


@dataclass(frozen=True)
class AnswerToken:
    """One token of an answer.

    Args:
        id: Its id; -1 where a server tells texts alone.
        probability: The model's own probability for it, before temperature and filters.
        rank: 1 is the token that the model found most probable.
        alternatives: (label, probability) of the most probable tokens, best first.
        alternative_ids: Their ids; empty where a server tells none.
        entropy_nats: Of the model's own distribution; None where a server tells none.
        kept: (label, probability) of the most probable tokens after temperature and filters.
        n_kept: How many tokens the filters left; None where a server tells none.
        chosen: Whether the reader put it here, and no model.
        text: What it says, where there is no id to look it up by.
    """

    id: int
    probability: float
    rank: int
    alternatives: tuple[tuple[str, float], ...]
    alternative_ids: tuple[int, ...] = ()
    entropy_nats: float | None = None
    kept: tuple[tuple[str, float], ...] = ()
    n_kept: int | None = None
    chosen: bool = False
    text: str = ""


@dataclass(frozen=True)
class AnswerStep:
    """An answer so far.

    Args:
        text: Its text, whole characters only.
        tokens: Its tokens, without the one that ended it.
        prompt: What the model read first.
        context_length: Tokens that the model can read in all.
        first_token_s: Seconds from asking to the first token; None before it.
        tokens_per_s: Speed after the first token; None before the second.
        finish: None while it goes on; `stop` the model ended it, `length` as long as allowed,
            `context` the model cannot read further, `stopped` the reader pressed Stop.
        n_reused: Tokens that were known from an earlier answer and not read again.
    """

    text: str
    tokens: tuple[AnswerToken, ...]
    prompt: ChatPrompt
    context_length: int
    first_token_s: float | None
    tokens_per_s: float | None
    finish: Finish | None
    n_reused: int = 0

    @property
    def n_prompt_tokens(self) -> int:
        """Tokens that the model read first."""
        return len(self.prompt.ids)


@dataclass(frozen=True)
class AnswerShare:
    """What an answer shares with others on the same device.

    Args:
        turn: Entered for each forward pass; where several share a device, it makes them wait. May
            raise `Stopped`.
        memory: Keeps what was read for the next answer; None reads everything each time.
        key: Whose it is, in that memory.
    """

    turn: Callable[[], AbstractContextManager[object]] = nullcontext
    memory: AnswerMemory | None = None
    key: str = ""


def choose_alternative(token: AnswerToken, alternative: int) -> AnswerToken:
    """The token that could have come instead, as the reader's choice.

    Args:
        token: A token of an answer.
        alternative: Its place among the alternatives, from 0.

    Raises:
        ConfigError: There is no such alternative.
    """
    if not 0 <= alternative < len(token.alternative_ids):
        raise ConfigError(
            f"alternative {alternative} was asked for, and this token has "
            f"{len(token.alternative_ids)}; give one of them, counted from 0",
            code="chat-no-alternative",
            asked=alternative,
            count=len(token.alternative_ids),
        )
    return replace(
        token,
        id=token.alternative_ids[alternative],
        probability=token.alternatives[alternative][1],
        rank=alternative + 1,
        chosen=True,
    )


def encode_prompt(
    loaded: LoadedModel, messages: Sequence[Message], *, thinking: bool = True
) -> list[int]:
    """The tokens that the model reads before it answers.

    Raises:
        ConfigError: Nothing was said.
        TokenizerError: The template refuses these messages.
    """
    return list(make_prompt(loaded, messages, thinking=thinking).ids)


def stream_answer(
    loaded: LoadedModel,
    messages: Sequence[Message],
    settings: AnswerSettings | None = None,
    *,
    stopped: Callable[[], bool] = lambda: False,
    share: AnswerShare | None = None,
    start: Sequence[AnswerToken] = (),
) -> Iterator[AnswerStep]:
    """Answer the last message, token by token.

    Args:
        loaded: Any model.
        messages: {"role": "system" | "user" | "assistant", "content": text}, oldest first.
        settings: Sampling and length; None takes the defaults.
        stopped: Asked before each forward pass; True ends the answer with what there is.
        share: What it shares with other answers; None is alone.
        start: Tokens that the answer begins with: a branch of another answer. The draws begin
            behind them, with the seed.

    Yields:
        A step after each token; the last one has `finish`.

    Raises:
        ConfigError: Nothing was said, or impossible settings.
        ContextError: The messages leave no room for an answer.
        TokenizerError: The template refuses these messages.
        WeightError: The model's scores are no numbers.
    """
    from models.tokenizers import StreamDecoder

    settings, share = settings or AnswerSettings(), share or AnswerShare()
    n_new = max(1, settings.max_new_tokens - len(start))
    prompt = make_prompt(
        loaded, messages, thinking=settings.thinking, max_new_tokens=len(start) + n_new
    )
    answer = _Answer(loaded, StreamDecoder(loaded.tokenizer), prompt)
    for token in start:
        answer.push(token)
    yield from _write(loaded, settings, answer, n_new, stopped, share)


def _write(
    loaded: LoadedModel,
    settings: AnswerSettings,
    answer: _Answer,
    n_new: int,
    stopped: Callable[[], bool],
    share: AnswerShare,
) -> Iterator[AnswerStep]:
    """The steps of an answer; what was read is kept, however it ends."""
    import torch

    from models.generation import generate

    model, ids, cache = loaded.model, answer.ids(), None
    if share.memory is not None:
        cache = share.memory.take(share.key, model, ids, n_new)
        answer.n_reused = int(cache.lengths[0])
    stream = generate(
        model,
        ids,
        max_new_tokens=n_new,
        sampling=_sampling(settings),
        stop_ids=stop_ids_of(loaded),
        generator=torch.Generator(model.device).manual_seed(settings.seed),
        cache=cache,
        turn=share.turn,
    )
    try:
        while not stopped():
            try:
                token = next(stream)
            except Stopped:
                break
            step = answer.add(token)
            yield step
            if step.finish is not None:
                return
        yield answer.step("stopped")
    finally:
        stream.close()
        if share.memory is not None and cache is not None:
            share.memory.keep(share.key, model, answer.ids(), cache)


def stop_ids_of(loaded: LoadedModel) -> frozenset[int]:
    """Tokens that end an answer: those that its files name, and what its template writes there."""
    return loaded.stop_ids | (loaded.chat.end_ids if loaded.chat else frozenset())


def _sampling(settings: AnswerSettings) -> SamplingConfig:
    from models.sampling import SamplingConfig

    return SamplingConfig(
        temperature=settings.temperature,
        top_k=settings.top_k,
        top_p=settings.top_p,
        min_p=settings.min_p,
        repetition_penalty=settings.repetition_penalty,
    )


class _Answer:
    """An answer as it grows."""

    def __init__(self, loaded: LoadedModel, decoder: StreamDecoder, prompt: ChatPrompt) -> None:
        self._tokenizer = loaded.tokenizer
        self._decoder = decoder
        self._prompt = prompt
        self._context_length = loaded.config.context_length
        self._asked_at = time.perf_counter()
        self._first_at: float | None = None
        self._text = ""
        self._tokens: list[AnswerToken] = []
        self._n_given = 0
        self._labels: dict[int, str] = {}  # the same few tokens come up again and again
        self.n_reused = 0

    def ids(self) -> list[int]:
        """Prompt and answer as one text."""
        return [*self._prompt.ids, *(token.id for token in self._tokens)]

    def push(self, token: AnswerToken) -> None:
        """Begin with a token that is given."""
        self._text += self._decoder.push(token.id)
        self._tokens.append(token)
        self._n_given += 1

    def add(self, token: Token) -> AnswerStep:
        if self._first_at is None:
            self._first_at = time.perf_counter()
        if token.finish != "stop":  # the token that ends an answer is not part of its text
            self._text += self._decoder.push(token.id)
            self._tokens.append(self._describe(token))
        return self.step(token.finish)

    def step(self, finish: Finish | None) -> AnswerStep:
        if finish is not None:
            self._text += self._decoder.flush()
        return AnswerStep(
            text=self._text,
            tokens=tuple(self._tokens),
            prompt=self._prompt,
            context_length=self._context_length,
            first_token_s=None if self._first_at is None else self._first_at - self._asked_at,
            tokens_per_s=self._speed(),
            finish=finish,
            n_reused=self.n_reused,
        )

    def _speed(self) -> float | None:
        n_written = len(self._tokens) - self._n_given
        if self._first_at is None or n_written < 2:
            return None
        passed_s = time.perf_counter() - self._first_at
        return (n_written - 1) / passed_s if passed_s > 0 else None

    def _describe(self, token: Token) -> AnswerToken:
        return AnswerToken(
            id=token.id,
            probability=token.probability,
            rank=token.rank + 1,
            alternatives=self._label(token.alternatives),
            alternative_ids=tuple(other.id for other in token.alternatives),
            entropy_nats=token.entropy_nats,
            kept=self._label(token.kept),
            n_kept=token.n_kept,
        )

    def _label(self, others: Sequence[Alternative]) -> tuple[tuple[str, float], ...]:
        from explorer.tokens import label_of

        for other in others:
            if other.id not in self._labels:
                self._labels[other.id] = label_of(self._tokenizer, other.id)
        return tuple((self._labels[other.id], other.probability) for other in others)
