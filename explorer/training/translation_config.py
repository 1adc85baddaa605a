"""What decides the training of an encoder-decoder besides what decides any run. No torch here."""

from __future__ import annotations

from dataclasses import dataclass

from models.config import ModelConfig
from models.encoder_decoder_config import EncoderDecoderConfig
from models.errors import ConfigError

LEAST_PAIRS = 8
TRANSLATOR_FILE = "translator.json"  # in a checkpoint, it says that this is an encoder-decoder


@dataclass(frozen=True, kw_only=True)
class TranslationConfig:
    """The encoder, and the pairs to learn from; the decoder is the run's own model.

    Args:
        task: Key of the toy translation; see `explorer/datasets/translations.py`.
        encoder: Reads the sources; it shares its embedding with the decoder.
        n_training: Pairs to learn from.
        n_validation: Further pairs, all different from those, that it is only measured on.
    """

    task: str
    encoder: ModelConfig
    n_training: int
    n_validation: int

    def __post_init__(self) -> None:
        for name in ("n_training", "n_validation"):
            value = getattr(self, name)
            if value < LEAST_PAIRS:
                problem = f"{name}={value!r} must be at least {LEAST_PAIRS}"
                raise ConfigError(problem, code="run-setting", problem=problem)

    def both_stacks(self, decoder: ModelConfig) -> EncoderDecoderConfig:
        """The whole model.

        Args:
            decoder: The run's own model.

        Raises:
            ConfigError: The two do not go together.
        """
        return EncoderDecoderConfig(encoder=self.encoder, decoder=decoder, shared_embedding=True)
