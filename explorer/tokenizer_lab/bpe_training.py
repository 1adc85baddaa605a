"""Byte pairs learnt from a text, with every step kept for the page.

    compression    bytes of the text (UTF-8) for each token, after each join
    the curve      compression against the size of the vocabulary

The training itself is `models/tokenizers/bpe_trainer.py`; merges are those of the trainer of the
`tokenizers` library with the same way of cutting words and the same rule for equal counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from explorer.errors import ConfigError, Stopped, TokenizerError
from models.tokenizers.bpe_merger import MergeStep
from models.tokenizers.bpe_trainer import BpeVocabulary, iterate_merges
from models.tokenizers.bpe_words import (
    StartSymbols,
    WordCutting,
    count_words_by_parts,
    list_alphabet,
    write_symbols,
)
from models.tokenizers.byte_table import token_text_to_bytes

MOST_VOCABULARY = 32_768
MOST_SPECIAL_TOKENS = 16
MAX_TEXT_BYTES = 25 * 10**6


def _choices(kind: Any) -> dict[str, Any]:
    return {"choices": get_args(kind)}


@dataclass(frozen=True, kw_only=True)
class BpeSetup:
    """What the form of the training says.

    Args:
        vocab_size: Tokens wanted, special tokens and start symbols included.
        start: Whether joining starts from bytes or from the characters of the text.
        pre_tokenizer: How the text is cut into words.
        special_tokens: Their texts, with blanks between them.
        min_frequency: A pair that occurs less often is not joined.
    """

    vocab_size: int = field(default=320, metadata={"step": 1})
    start: str = field(default="bytes", metadata={**_choices(StartSymbols), "dial": True})
    pre_tokenizer: str = field(default="gpt2", metadata=_choices(WordCutting))
    special_tokens: str = field(default="<|endoftext|>", metadata={"text": True})
    min_frequency: int = field(default=2, metadata={"step": 1})


@dataclass(frozen=True, kw_only=True)
class BpeTraining:
    """A training and all its steps.

    Args:
        vocabulary: What was learnt.
        steps: The joins, each with the ten best pairs before it.
        n_start: Tokens that joining started from, special ones included.
        n_bytes: Bytes of the text, without special tokens.
        n_start_tokens: Tokens of the text before the first join.
        n_words: Different words, and
        n_all_words: words in all.
    """

    vocabulary: BpeVocabulary
    steps: tuple[MergeStep, ...]
    n_start: int
    n_bytes: int
    n_start_tokens: int
    n_words: int
    n_all_words: int

    @property
    def sizes(self) -> tuple[int, ...]:
        """Size of the vocabulary before the first join and after each."""
        return tuple(range(self.n_start, self.n_start + len(self.steps) + 1))

    @property
    def compression(self) -> tuple[float, ...]:
        """Bytes for each token, at each of `sizes`."""
        return (self.n_bytes / self.n_start_tokens, *(s.bytes_per_token for s in self.steps))

    def bytes_of(self, symbols: str) -> bytes:
        """The bytes that a token's text stands for; of a special token, its text."""
        plain = self.vocabulary.start == "characters" or symbols in self.vocabulary.special_tokens
        return symbols.encode() if plain else token_text_to_bytes(symbols)


@dataclass(frozen=True, kw_only=True)
class BpeProgress:
    """How far a training is.

    Args:
        phase: Whether it counts words, prepares what was counted, or joins.
        done: Characters that are counted, or joins that are made.
        total: Of how many; of joins there may be fewer in the end.
    """

    phase: Literal["counting", "preparing", "joining"]
    done: int
    total: int


def split_special_tokens(typed: str) -> tuple[str, ...]:
    """Read special tokens typed with blanks between them.

    Raises:
        ConfigError: More than can be shown.
    """
    found = tuple(typed.split())
    if len(found) > MOST_SPECIAL_TOKENS:
        problem = f"{len(found)} special tokens; choose at most {MOST_SPECIAL_TOKENS}"
        raise ConfigError(problem, code="run-setting", problem=problem)
    return found


def train_steps(
    text: str, setup: BpeSetup, *, cancelled: Callable[[], bool] = lambda: False
) -> Iterator[BpeProgress | BpeTraining]:
    """Train, saying again and again how far it is; the last value is the training.

    Args:
        text: What to learn from.
        setup: How.
        cancelled: Asked after each part of the text and after each join; True ends it.

    Raises:
        TokenizerError: The text is empty or too long, or the vocabulary too small.
        ConfigError: A setting cannot be used.
        Stopped: `cancelled` became true.
    """
    special = _check(text, setup)
    words: Counter[str] = Counter()
    for done in count_words_by_parts([text], words, setup.pre_tokenizer, special):  # type: ignore[arg-type]
        _stop_if(cancelled)
        yield BpeProgress(phase="counting", done=done, total=len(text))
    yield BpeProgress(phase="preparing", done=0, total=0)
    symbols = write_symbols(words, setup.start)  # type: ignore[arg-type]
    alphabet = list_alphabet(symbols, setup.start)  # type: ignore[arg-type]
    most = setup.vocab_size - len(special) - len(alphabet)
    steps: list[MergeStep] = []
    for step in iterate_merges(
        words,
        vocab_size=setup.vocab_size,
        special_tokens=special,
        start=setup.start,  # type: ignore[arg-type]
        min_frequency=setup.min_frequency,
    ):
        _stop_if(cancelled)
        steps.append(step)
        yield BpeProgress(phase="joining", done=len(steps), total=most)
    tokens = [*special, *alphabet, *(step.new_token for step in steps)]
    yield BpeTraining(
        vocabulary=BpeVocabulary(
            vocab={token: i for i, token in enumerate(tokens)},
            merges=tuple(step.pair for step in steps),
            special_tokens=special,
            start=setup.start,  # type: ignore[arg-type]
            pre_tokenizer=setup.pre_tokenizer,  # type: ignore[arg-type]
            asked_size=setup.vocab_size,
        ),
        steps=tuple(steps),
        n_start=len(special) + len(alphabet),
        n_bytes=sum(len(word.encode()) * n for word, n in words.items()),
        n_start_tokens=sum(len(word) * n for word, n in symbols.items()),
        n_words=len(words),
        n_all_words=sum(words.values()),
    )


def _stop_if(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise Stopped("the training of a tokenizer was stopped")


def train_recorded(text: str, setup: BpeSetup) -> BpeTraining:
    """Train, and give the whole training.

    Args:
        text: What to learn from.
        setup: How.

    Raises:
        ExplorerError: As for `train_steps`.
    """
    *_, training = train_steps(text, setup)
    assert isinstance(training, BpeTraining)
    return training


def _check(text: str, setup: BpeSetup) -> tuple[str, ...]:
    for name, value, kind in (
        ("start", setup.start, StartSymbols),
        ("pre_tokenizer", setup.pre_tokenizer, WordCutting),
    ):
        if value not in get_args(kind):
            known = ", ".join(get_args(kind))
            problem = f"{name}={value!r} is unknown; choose {known}"
            raise ConfigError(problem, code="run-choice", name=name, found=value, known=known)
    for name, number, most in (
        ("vocab_size", setup.vocab_size, MOST_VOCABULARY),
        ("min_frequency", setup.min_frequency, 10**9),
    ):
        if not isinstance(number, int) or not 1 <= number <= most:
            problem = f"{name}={number!r} must be a whole number from 1 to {most:,}"
            raise ConfigError(problem, code="run-setting", problem=problem)
    if not text.strip():
        raise TokenizerError(
            "a tokenizer is made from a text, but this one is empty or blank; type one, or choose "
            "a sample",
            code="tokenizer-text-empty",
        )
    return split_special_tokens(setup.special_tokens)
