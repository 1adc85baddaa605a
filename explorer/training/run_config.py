"""Everything that decides a run, as frozen values that become `config.json` of its folder.

Two runs with the same configuration, text and tokenizer on the same kind of machine give the same
numbers. No torch here: the page makes and shows configurations without loading it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, get_args

from explorer.training.translation_config import TranslationConfig
from explorer.training.tuning_config import TuningConfig
from models.config import ModelConfig
from models.costs import count_operations
from models.counting import count_parameters
from models.encoder_decoder_config import count_encoder_decoder
from models.errors import ConfigError

OptimiserKind = Literal["adamw", "muon"]
DecayRule = Literal["matrices", "everything"]
ScheduleKind = Literal["constant", "linear", "cosine", "wsd"]
Precision = Literal["float32", "bfloat16"]
MOST_NUMBER = 2**31 - 1  # what config.json is read with
MOST_LEARNING_RATE = 100.0  # an absurd rate is a lesson, one that overflows float32 is not


def _require(ok: bool, message: str, **facts: object) -> None:
    if not ok:
        raise ConfigError(message, code="run-setting", problem=message, **facts)


def _require_whole(name: str, value: object, least: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    _require(
        whole and least <= value <= MOST_NUMBER,  # type: ignore[operator]
        f"{name}={value!r} must be a whole number from {least} to {MOST_NUMBER:,}",
    )


def _require_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    _require(value in choices, f"{name}={value!r} is unknown; choose {', '.join(choices)}")


@dataclass(frozen=True, kw_only=True)
class OptimiserConfig:
    """How gradients become updates; see `optimisers.py`.

    Args:
        kind: AdamW (Loshchilov & Hutter 2019) for all, or Muon (Jordan et al. 2024) for the
            matrices of the blocks and AdamW for the rest.
        learning_rate: The highest of the schedule.
        beta1: Decay of the mean of gradients.
        beta2: Decay of the mean of their squares.
        eps: Added to the root of the second.
        weight_decay: Share of a weight taken away per step, times the learning rate.
        decay: Which weights it is taken from: matrices and embeddings without norms and biases,
            or everything.
        clip_norm: Gradients are scaled down to this norm; None leaves them.
    """

    kind: OptimiserKind = "adamw"
    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.95
    eps: float = 1e-8
    weight_decay: float = 0.1
    decay: DecayRule = "matrices"
    clip_norm: float | None = 1.0

    def __post_init__(self) -> None:
        _require_choice("optimiser", self.kind, get_args(OptimiserKind))
        _require_choice("decay", self.decay, get_args(DecayRule))
        _require(
            0 < self.learning_rate <= MOST_LEARNING_RATE,
            f"learning_rate={self.learning_rate!r} must be above 0 (nothing would be learned) and "
            f"at most {MOST_LEARNING_RATE:g}; 0.001 is usual for a small model",
        )
        for name in ("beta1", "beta2"):
            _require(
                0 <= getattr(self, name) < 1,
                f"{name}={getattr(self, name)!r} must be at least 0 and below 1",
            )
        _require(0 < self.eps < 1, f"eps={self.eps!r} must lie between 0 and 1; try 1e-8")
        _require(
            0 <= self.weight_decay < math.inf, f"weight_decay={self.weight_decay!r} is below 0"
        )
        if self.clip_norm is not None:
            _require(self.clip_norm > 0, f"clip_norm={self.clip_norm!r} must be above 0, or None")


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """The learning rate over the steps, as a share of the highest; see `schedules.py`.

    Args:
        kind: Constant; linear or cosine fall to `final_share`; `wsd` (warm-up, stable, decay;
            Hu et al. 2024, arXiv 2404.06395) stays up and falls at the end.
        warmup_steps: Steps over which it rises from 0.
        final_share: Share of the highest rate that is left at the end.
        decay_share: With `wsd`, the share of all steps in which it falls.
    """

    kind: ScheduleKind = "cosine"
    warmup_steps: int = 0
    final_share: float = 0.1
    decay_share: float = 0.2

    def __post_init__(self) -> None:
        _require_choice("schedule", self.kind, get_args(ScheduleKind))
        _require_whole("warmup_steps", self.warmup_steps, 0)
        for name in ("final_share", "decay_share"):
            share = getattr(self, name)
            _require(0 <= share <= 1, f"{name}={share!r} must lie between 0 and 1")


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """How the text becomes batches.

    Args:
        text_name: What the text is called, for the page.
        context: Tokens of a window.
        batch_size: Windows of one forward pass.
        accumulate: Forward passes whose gradients make one step.
        stride: Tokens from one window to the next; None is `context`, so that none overlap.
        shuffle: Whether each epoch visits the windows in an order of its own.
        validation_share: Share of the characters, at the end of the text, that is held out.
    """

    text_name: str = ""
    context: int
    batch_size: int
    accumulate: int = 1
    stride: int | None = None
    shuffle: bool = True
    validation_share: float = 0.1

    def __post_init__(self) -> None:
        _require_whole("context", self.context, 1)
        _require_whole("batch_size", self.batch_size, 1)
        _require_whole("accumulate", self.accumulate, 1)
        if self.stride is not None:
            _require_whole("stride", self.stride, 1)
        _require(
            0 < self.validation_share < 1,
            f"validation_share={self.validation_share!r} must lie between 0 and 1; 0.1 is usual",
        )

    @property
    def tokens_per_step(self) -> int:
        """Tokens that one optimiser step reads."""
        return self.context * self.batch_size * self.accumulate


@dataclass(frozen=True, kw_only=True)
class WatchConfig:
    """What is looked at during a run, and how often; 0 is never, the end apart.

    Args:
        evaluate_every: Steps between two evaluations.
        evaluation_batches: Batches of each part that they read; None is all.
        sample_every: Steps between two samples.
        prompts: What samples go on from.
        sample_tokens: Length of a sample.
        temperature: Of its draws; 0 takes the likeliest token.
        save_every: Steps between two checkpoints.
        keep: Newest checkpoints that stay on the disk; None keeps all.
        keep_best: Whether the weights with the lowest held-out loss so far are saved, and stay.
        patience: Evaluations in a row without a lower held-out loss that end the run; 0 is never.
    """

    evaluate_every: int = 20
    evaluation_batches: int | None = 8
    sample_every: int = 50
    prompts: tuple[str, ...] = ()
    sample_tokens: int = 40
    temperature: float = 0.0
    save_every: int = 100
    keep: int | None = None
    keep_best: bool = False
    patience: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "prompts", tuple(self.prompts))
        for name in ("evaluate_every", "sample_every", "save_every", "patience"):
            _require_whole(name, getattr(self, name), 0)
        _require_whole("sample_tokens", self.sample_tokens, 1)
        for name in ("evaluation_batches", "keep"):
            if getattr(self, name) is not None:
                _require_whole(name, getattr(self, name), 1)
        _require(self.temperature >= 0, f"temperature={self.temperature!r} is below 0")


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run.

    Args:
        name: As the page shows it.
        objective: Key of the objective; see `objectives/`.
        model: Architecture; its context must reach as far as the windows. Of an encoder-decoder the
            decoder.
        data: Text and batches.
        optimiser: Updates.
        schedule: Learning rate.
        watch: Evaluations, samples, checkpoints.
        n_steps: Optimiser steps.
        seed: Of every draw: weights, order of the windows, dropout, samples.
        precision: Type of the matrix products; weights and their updates stay in float32.
        recompute: Save memory: activations inside a block are computed again in the backward pass
            (gradient checkpointing; Chen et al. 2016, arXiv 1604.06174).
        balance_weight: With experts, what their balance counts beside the loss, so that routers do
            not send everything to a few; see `expert_balance.py`. 0 leaves them to themselves; 0.01
            is the value of Fedus et al. 2021 (arXiv 2101.03961).
        ema_decay: Keeps a moving average of the weights with this decay, which evaluations and
            samples use; None keeps none.
        device: `auto` is the first there is of cuda, mps and cpu.
        n_threads: CPU threads; the last bits of a sum depend on them. 0 takes what the machine has.
        tokenizer: What cut the text, for the page; its files are in the run folder.
        versions: Package -> version of whoever made the configuration.
        tuning: What a fine-tuning does besides; None for a run that begins from nothing.
        translation: The encoder and the pairs of a toy translation; None for a decoder alone.
    """

    name: str
    objective: str = "pretrain"
    model: ModelConfig
    data: DataConfig
    optimiser: OptimiserConfig = OptimiserConfig()
    schedule: ScheduleConfig = ScheduleConfig()
    watch: WatchConfig = WatchConfig()
    n_steps: int
    seed: int = 123
    precision: Precision = "float32"
    recompute: bool = False
    balance_weight: float = 0.01
    ema_decay: float | None = None
    device: str = "auto"
    n_threads: int = 0
    tokenizer: str = ""
    versions: tuple[tuple[str, str], ...] = field(default=())
    tuning: TuningConfig | None = None
    translation: TranslationConfig | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "versions", tuple((a, b) for a, b in self.versions))
        _require_whole("n_steps", self.n_steps, 1)
        _require_whole("seed", self.seed, 0)
        _require_whole("n_threads", self.n_threads, 0)
        _require_choice("precision", self.precision, get_args(Precision))
        _require(
            self.data.context <= self.model.context_length,
            f"windows of {self.data.context} tokens do not fit into the model's context of "
            f"{self.model.context_length}; shorten the windows or give the model more context",
        )
        _require(
            0 <= self.balance_weight < math.inf,
            f"balance_weight={self.balance_weight!r} is below 0; 0.01 is usual",
        )
        if self.ema_decay is not None:
            _require(
                0 < self.ema_decay < 1,
                f"ema_decay={self.ema_decay!r} must lie between 0 and 1; 0.999 is usual",
            )
            _require(self.tuning is None, "a fine-tuning keeps no average; leave ema_decay out")

    @property
    def n_parameters(self) -> int:
        """Numbers that the whole model has; tied copies count once."""
        if self.translation is None:
            return count_parameters(self.model).unique
        return count_encoder_decoder(self.translation.both_stacks(self.model)).unique

    @property
    def forward_operations(self) -> int:
        """Floating-point operations of the forward pass for one token, amid a window.

        Of two stacks 2 for each parameter: a token of the target passes the decoder, and about one
        of the source the encoder.
        """
        if self.translation is not None:
            return 2 * self.n_parameters
        return count_operations(self.model, (self.data.context + 1) // 2).total

    @property
    def balances_experts(self) -> bool:
        """Whether the balance of experts is learned."""
        return self.model.moe is not None and self.balance_weight > 0
