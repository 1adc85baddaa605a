"""What a model in training writes, and how much of it is copied from its text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from torch import nn

from explorer.datasets.translations import get_task
from explorer.datasets.verbatim import MAX_CHARACTERS, VerbatimIndex, find_copied_spans
from explorer.training.evaluate import write_sample
from explorer.training.events import CopiedSpan
from explorer.training.learner import decoder_of
from explorer.training.objectives.translation import get_translation
from explorer.training.run_config import RunConfig
from explorer.training.run_folder import RunFolder
from explorer.training.translator import translate_greedily
from models.encoder_decoder import EncoderDecoder
from models.errors import TokenizerError
from models.tokenizers import Tokenizer, load_tokenizer


class SampleWriter:
    """Writes the samples of a run.

    Args:
        run: Its files; without a tokenizer there are no samples.
        config: Its prompts, their number and temperature.
    """

    def __init__(self, run: RunFolder, config: RunConfig) -> None:
        self._config = config
        self._run = run
        self._index: VerbatimIndex | None = None
        self.tokenizer = _load_tokenizer(run)

    def write(self, model: nn.Module) -> Iterator[tuple[str, str, tuple[CopiedSpan, ...] | None]]:
        """A prompt, what the model made of it, and what of that is copied, for each prompt.

        Copies are None where they were not looked for: the text is missing or too long for it.

        Args:
            model: The model as it is now.
        """
        watch, tuning = self._config.watch, self._config.tuning
        if self._config.translation is not None:
            yield from self._translate(cast(EncoderDecoder, model))
        if self.tokenizer is None:
            return
        for i, prompt in enumerate(watch.prompts):
            text = write_sample(
                decoder_of(model),
                self.tokenizer,
                prompt,
                n_tokens=watch.sample_tokens,
                temperature=watch.temperature,
                seed=self._config.seed + i,
                special=tuning is not None and tuning.template == "chat",
            )
            yield prompt, text, self._find_copies(text)

    def count_tokens(self, text: str) -> int:
        """Tokens of what was written, without the one that ends it."""
        return 0 if self.tokenizer is None else len(self.tokenizer.encode(text))

    def _translate(self, model: EncoderDecoder) -> Iterator[tuple[str, str, None]]:
        """The prompts are sources; what is written follows the rule of the task or does not."""
        task = get_task(get_translation(self._config).task)
        for prompt in self._config.watch.prompts:
            written = translate_greedily(model, task.cut(prompt))
            yield f"{prompt} → ", task.join(written), None

    def _find_copies(self, sample: str) -> tuple[CopiedSpan, ...] | None:
        if self._index is None:
            path = self._run.text_file
            # a character is at least one byte, so a small file is surely short enough
            if not path.exists() or path.stat().st_size > MAX_CHARACTERS:
                return None
            self._index = VerbatimIndex(path.read_text(encoding="utf-8"))
        return tuple(
            CopiedSpan(start=span.start, end=span.end, source_line=span.line)
            for span in find_copied_spans(sample, self._index)
        )


def _load_tokenizer(run: RunFolder) -> Tokenizer | None:
    try:
        return load_tokenizer(run.tokenizer_folder)
    except TokenizerError as error:
        if error.code == "tokenizer-missing":
            return None
        raise
