"""A conversation with a model, and its answers token by token.

    messages ─ chat template ─► prompt ids ─ generate ─► token ─► text (whole characters only)
                                                          └─► probability, rank, alternatives

An answer is a generator of frozen `AnswerStep`s. Text is held back while its last character is
incomplete: a Chinese character or an emoji may be three tokens, and half of one is not text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from explorer.errors import ConfigError, Stopped

if TYPE_CHECKING:
    from models.generation import Token
    from models.loading import LoadedModel
    from models.sampling import SamplingConfig
    from models.tokenizers import StreamDecoder, Tokenizer

Finish = Literal["stop", "length", "context", "stopped"]
Message = Mapping[str, str]


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
        id: Its id.
        probability: The model's own probability for it, before temperature and filters.
        rank: 1 is the token that the model found most probable.
        alternatives: (label, probability) of the most probable tokens, best first.
    """

    id: int
    probability: float
    rank: int
    alternatives: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class AnswerStep:
    """An answer so far.

    Args:
        text: Its text, whole characters only.
        tokens: Its tokens, without the one that ended it.
        n_prompt_tokens: Tokens that the model read first.
        context_length: Tokens that the model can read in all.
        first_token_s: Seconds from asking to the first token; None before it.
        tokens_per_s: Speed after the first token; None before the second.
        finish: None while it goes on; `stop` the model ended it, `length` as long as allowed,
            `context` the model cannot read further, `stopped` the reader pressed Stop.
    """

    text: str
    tokens: tuple[AnswerToken, ...]
    n_prompt_tokens: int
    context_length: int
    first_token_s: float | None
    tokens_per_s: float | None
    finish: Finish | None


def encode_prompt(
    loaded: LoadedModel, messages: Sequence[Message], *, thinking: bool = True
) -> list[int]:
    """The tokens that the model reads before it answers.

    A chat model's template lays the messages out. A base model has none and just goes on with the
    text: it gets the contents one after the other.

    Raises:
        ConfigError: Nothing was said.
        TokenizerError: The template refuses these messages.
    """
    if not any(message["content"] for message in messages):
        raise ConfigError("there is no message; type one", code="text-empty")
    if loaded.chat is not None:
        return loaded.chat.with_thinking(thinking).encode(messages)
    text = "\n".join(message["content"] for message in messages if message["content"])
    ids = loaded.tokenizer.encode(text)
    if loaded.tokenizer.adds_bos and loaded.tokenizer.bos_id is not None:
        ids = [loaded.tokenizer.bos_id, *ids]
    return ids


def stream_answer(
    loaded: LoadedModel,
    messages: Sequence[Message],
    settings: AnswerSettings | None = None,
    *,
    stopped: Callable[[], bool] = lambda: False,
    turn: Callable[[], AbstractContextManager[object]] = nullcontext,
) -> Iterator[AnswerStep]:
    """Answer the last message, token by token.

    Args:
        loaded: Any model.
        messages: {"role": "system" | "user" | "assistant", "content": text}, oldest first.
        settings: Sampling and length; None takes the defaults.
        stopped: Asked before each forward pass; True ends the answer with what there is.
        turn: Entered for each forward pass; where several share a device, it makes them wait.
            May raise `Stopped`.

    Yields:
        A step after each token; the last one has `finish`.

    Raises:
        ConfigError: Nothing was said, or impossible settings.
        ContextError: The messages leave no room for an answer.
        TokenizerError: The template refuses these messages.
    """
    import torch

    from models.generation import generate
    from models.tokenizers import StreamDecoder

    settings = settings or AnswerSettings()
    prompt = encode_prompt(loaded, messages, thinking=settings.thinking)
    answer = _Answer(loaded.tokenizer, StreamDecoder(loaded.tokenizer), len(prompt), loaded)
    stream = generate(
        loaded.model,
        prompt,
        max_new_tokens=settings.max_new_tokens,
        sampling=_sampling(settings),
        stop_ids=loaded.stop_ids,
        generator=torch.Generator(loaded.model.device).manual_seed(settings.seed),
        turn=turn,
    )
    while not stopped():
        try:
            token = next(stream)
        except Stopped:
            break
        step = answer.add(token)
        yield step
        if step.finish is not None:
            return
    stream.close()
    yield answer.step("stopped")


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

    def __init__(
        self, tokenizer: Tokenizer, decoder: StreamDecoder, n_prompt: int, loaded: LoadedModel
    ) -> None:
        self._tokenizer = tokenizer
        self._decoder = decoder
        self._n_prompt = n_prompt
        self._context_length = loaded.config.context_length
        self._asked_at = time.perf_counter()
        self._first_at: float | None = None
        self._text = ""
        self._tokens: list[AnswerToken] = []

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
            n_prompt_tokens=self._n_prompt,
            context_length=self._context_length,
            first_token_s=None if self._first_at is None else self._first_at - self._asked_at,
            tokens_per_s=self._speed(),
            finish=finish,
        )

    def _speed(self) -> float | None:
        if self._first_at is None or len(self._tokens) < 2:
            return None
        passed_s = time.perf_counter() - self._first_at
        return (len(self._tokens) - 1) / passed_s if passed_s > 0 else None

    def _describe(self, token: Token) -> AnswerToken:
        from explorer.tokens import label_of

        return AnswerToken(
            id=token.id,
            probability=token.probability,
            rank=token.rank + 1,
            alternatives=tuple(
                (label_of(self._tokenizer, a.id), a.probability) for a in token.alternatives
            ),
        )
