"""What the form of a run says, and the configuration that it comes to.

    RunSetup ──build_model_config──► ModelConfig ─┐
        │                                         ├─ build_run_config ──► RunConfig
        └── steps, rates, texts, what to watch ───┘

`recommended_setup` is what the form starts from. Its "classic" recipe is the training of "Build a
Large Language Model (From Scratch)" (Raschka 2024, section 5.2): AdamW at 4e-4 without warm-up or
clipping, decay 0.1 on every weight, ten passes over a short text. A value that cannot be used is
refused here with what to do, never moved to the next one that can: a learning rate of 0 is a
question about learning rates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from explorer.tokenizer_lab.kept import KEPT_PREFIX
from explorer.training.architectures import (
    Breakage,
    Recipe,
    SizeName,
    Style,
    build_model_config,
)
from explorer.training.run_config import (
    MOST_NUMBER,
    DataConfig,
    OptimiserConfig,
    OptimiserKind,
    Precision,
    RunConfig,
    ScheduleConfig,
    ScheduleKind,
    WatchConfig,
)
from explorer.training.run_names import clean_run_name
from explorer.training.sample_texts import SAMPLE_TEXTS
from models.config import ModelConfig
from models.counting import count_parameters
from models.errors import ConfigError

TokenizerChoice = Literal["characters", "bpe", "gpt2"]
# A vocabulary of bytes is the least that byte pairs are built from.
LEAST_BPE_VOCABULARY = 257
MOST_BPE_VOCABULARY = 32_768
RATE_FACTOR = 100.0  # of the learning rate that is too high on purpose
# So many points of each kind a run has when it is over, however long it is.
EVALUATIONS, SAMPLES, CHECKPOINTS = 40, 12, 12
# But a look costs as much as some steps: at least so many lie between two, unless the run is so
# short that it would be looked at fewer times than this.
LEAST_INTERVAL, LEAST_LOOKS = 5, 8
# Above so many parameters only the newest checkpoints stay: twelve of 124M take 18 GB.
KEEP_ALL_PARAMETERS, KEPT_CHECKPOINTS = 30_000_000, 3


def _choices(kind: Any) -> dict[str, Any]:
    return {"choices": get_args(kind)}


@dataclass(frozen=True, kw_only=True)
class RunSetup:
    """What the form says. The order of the fields is that of the form and of its API.

    Args:
        name: What to call the run; empty lets the app choose.
        text: Id of a sample text, or the path of an uploaded file.
        tokenizer: What cuts it: each character a token, byte pairs learnt from this very text,
            those of GPT-2, or `kept:...`, which was made or uploaded in the Tokens tab.
        size: How large the model is.
        style: Which family it is like.
        recipe: What the settings without a control of their own are: those usual today, or those
            of the book.
        breakage: What to break on purpose.
        vocab_size: Tokens of a vocabulary learnt from the text.
        context: Tokens of a window.
        batch_size: Windows of one forward pass.
        accumulate: Forward passes whose gradients make one step.
        n_steps: Optimiser steps; 0 with `epochs`.
        epochs: Passes over the training part, where it is above 0, in place of `n_steps`.
        learning_rate: The highest of the schedule.
        schedule: How it falls.
        warmup_steps: Steps over which it rises.
        optimiser: Who turns gradients into updates.
        weight_decay: Share of a weight taken away per step, times the learning rate.
        dropout: Share of values set to 0 in training.
        seed: Of every draw.
        precision: Type of the matrix products.
        recompute: Save memory by computing activations twice.
        ema: Decay of a moving average of the weights; 0 keeps none.
    """

    name: str = field(default="", metadata={"text": True})
    text: str = field(default="village", metadata={"text": True})
    tokenizer: str = field(default="characters", metadata=_choices(TokenizerChoice))
    size: str = field(default="tiny", metadata={**_choices(SizeName), "dial": True})
    style: str = field(default="llama", metadata=_choices(Style))
    recipe: str = field(default="recommended", metadata=_choices(Recipe))
    breakage: str = field(default="none", metadata=_choices(Breakage))
    vocab_size: int = field(default=512, metadata={"step": 1})
    context: int = field(default=128, metadata={"step": 1})
    batch_size: int = field(default=16, metadata={"step": 1})
    accumulate: int = field(default=1, metadata={"step": 1})
    n_steps: int = field(default=400, metadata={"step": 1})
    epochs: float = field(default=0.0, metadata={})
    learning_rate: float = field(default=4e-3, metadata={})
    schedule: str = field(default="cosine", metadata=_choices(ScheduleKind))
    warmup_steps: int = field(default=30, metadata={"step": 1})
    optimiser: str = field(default="adamw", metadata=_choices(OptimiserKind))
    weight_decay: float = field(default=0.1, metadata={})
    dropout: float = field(default=0.0, metadata={})
    seed: int = field(default=123, metadata={"step": 1})
    precision: str = field(default="float32", metadata=_choices(Precision))
    recompute: bool = False
    ema: float = field(default=0.0, metadata={})


_BY_SIZE: Mapping[SizeName, Mapping[str, Any]] = {
    "tiny": {},
    "small": {
        "context": 256,
        "batch_size": 8,
        "n_steps": 1_000,
        "learning_rate": 2e-3,
        "warmup_steps": 50,
        "vocab_size": 1_024,
    },
    "medium": {
        "context": 256,
        "batch_size": 8,
        "n_steps": 2_000,
        "learning_rate": 1e-3,
        "warmup_steps": 100,
        "vocab_size": 2_048,
        "dropout": 0.1,
    },
    "large": {
        "context": 256,
        "batch_size": 8,
        "accumulate": 2,
        "n_steps": 3_000,
        "learning_rate": 8e-4,
        "warmup_steps": 150,
        "vocab_size": 4_096,
        "dropout": 0.1,
    },
    "124m": {
        "tokenizer": "gpt2",
        "context": 256,
        "batch_size": 4,
        "accumulate": 4,
        "n_steps": 5_000,
        "learning_rate": 6e-4,
        "warmup_steps": 300,
        "dropout": 0.1,
    },
}
_CLASSIC: Mapping[str, Any] = {
    "style": "gpt",
    "tokenizer": "gpt2",
    "context": 256,
    "batch_size": 2,
    "accumulate": 1,
    "n_steps": 0,
    "epochs": 10.0,
    "learning_rate": 4e-4,
    "schedule": "constant",
    "warmup_steps": 0,
    "optimiser": "adamw",
    "weight_decay": 0.1,
    "dropout": 0.1,
    "seed": 123,
}


def recommended_setup(size: str = "tiny", *, recipe: str = "recommended") -> RunSetup:
    """Settings that work for a size; the form starts from them.

    Args:
        size: One of `SizeName`.
        recipe: `recommended`, or `classic`.

    Raises:
        ConfigError: There is no such size or recipe.
    """
    # the names are checked where they are used first
    build_model_config("gpt", size, vocab_size=2, context=1, recipe=recipe)
    changes = {**_BY_SIZE[size], **(_CLASSIC if recipe == "classic" else {})}  # type: ignore[index]
    return replace(RunSetup(), size=size, recipe=recipe, **changes)


def check_tokenizer(setup: RunSetup) -> None:
    """Refuse a tokenizer that cannot be made.

    Raises:
        ConfigError: It is unknown, or its vocabulary cannot have this size.
    """
    known = get_args(TokenizerChoice)
    if setup.tokenizer.startswith(KEPT_PREFIX):
        return  # whether it is there is seen when it is opened
    if setup.tokenizer not in known:
        choices = ", ".join(known)
        raise ConfigError(
            f"tokenizer={setup.tokenizer!r} is unknown; choose {choices}",
            code="run-choice",
            name="tokenizer",
            found=setup.tokenizer,
            known=choices,
        )
    fits = LEAST_BPE_VOCABULARY <= setup.vocab_size <= MOST_BPE_VOCABULARY
    if setup.tokenizer == "bpe" and not fits:
        raise ConfigError(
            f"vocab_size={setup.vocab_size} is not possible: byte pairs begin with 256 bytes and "
            f"end here at {MOST_BPE_VOCABULARY}; choose {LEAST_BPE_VOCABULARY} to "
            f"{MOST_BPE_VOCABULARY}, 512 is good for a short text",
            code="run-vocabulary",
            found=setup.vocab_size,
            least=LEAST_BPE_VOCABULARY,
            most=MOST_BPE_VOCABULARY,
        )


def model_of(setup: RunSetup, vocab_size: int) -> ModelConfig:
    """The architecture that the form asks for.

    Args:
        setup: What the form says.
        vocab_size: Tokens of its tokenizer.

    Raises:
        ConfigError: Unknown names, or parts that do not go together.
    """
    return build_model_config(
        setup.style,
        setup.size,
        vocab_size=vocab_size,
        context=setup.context,
        dropout=setup.dropout,
        recipe=setup.recipe,
        breakage=setup.breakage,
    )


def build_run_config(
    setup: RunSetup,
    *,
    vocab_size: int,
    n_training_tokens: int,
    n_validation_tokens: int | None = None,
    text_name: str = "",
    prompts: tuple[str, ...] = (),
) -> RunConfig:
    """The configuration of a run.

    Args:
        setup: What the form says.
        vocab_size: Tokens of its tokenizer.
        n_training_tokens: Tokens of the training part.
        n_validation_tokens: Tokens of the held-out part; None leaves it unchecked.
        text_name: What the text is called.
        prompts: What samples go on from; none takes those of the sample text.

    Raises:
        ConfigError: A value that cannot be used, values that do not go together, or a text too
            short for the windows.
    """
    check_tokenizer(setup)
    model = model_of(setup, vocab_size)
    data = DataConfig(
        text_name=text_name or setup.text,
        context=setup.context,
        batch_size=setup.batch_size,
        accumulate=setup.accumulate,
    )
    steps_per_epoch = _count_steps(data, n_training_tokens, n_validation_tokens)
    n_steps = _plan_steps(setup, steps_per_epoch)
    if not prompts and setup.text in SAMPLE_TEXTS:
        prompts = SAMPLE_TEXTS[setup.text].prompts
    return RunConfig(
        name=clean_run_name(setup.name) or f"{setup.style} {setup.size}",
        model=model,
        data=data,
        optimiser=_optimiser(setup),
        schedule=_schedule(setup),
        watch=_watch(n_steps, count_parameters(model).unique, prompts),
        n_steps=n_steps,
        seed=setup.seed,
        precision=setup.precision,  # type: ignore[arg-type]
        recompute=setup.recompute,
        ema_decay=setup.ema or None,
        tokenizer=setup.tokenizer,
    )


def _count_steps(data: DataConfig, n_training: int, n_validation: int | None) -> int:
    """Steps of one epoch; a last batch that is not full is left out."""
    windows = _count_windows(n_training, data.context)
    per_step = data.batch_size * data.accumulate
    if windows < per_step:
        raise ConfigError(
            f"the training part has {n_training} tokens: {windows} windows of {data.context}, and "
            f"one step reads {per_step}; choose a longer text, a shorter context or a smaller "
            "batch",
            code="run-text-short",
            tokens=n_training,
            windows=windows,
            context=data.context,
            needed=per_step,
        )
    if n_validation is not None and _count_windows(n_validation, data.context) < 1:
        raise ConfigError(
            f"the held-out part has {n_validation} tokens, too few for one window of "
            f"{data.context} and the token after it; choose a longer text or a shorter context",
            code="run-no-validation",
            tokens=n_validation,
            context=data.context,
        )
    return windows // per_step


def _count_windows(n_tokens: int, context: int) -> int:
    return len(range(0, n_tokens - context, context))


def _plan_steps(setup: RunSetup, steps_per_epoch: int) -> int:
    most = MOST_NUMBER / steps_per_epoch
    if not 0 <= setup.epochs <= most:  # also NaN
        problem = (
            f"epochs={setup.epochs!r} must be from 0 (the number of steps counts) to {most:,.0f}; "
            "10 is usual for a short text"
        )
        raise ConfigError(problem, code="run-setting", problem=problem)
    n_steps = max(1, round(setup.epochs * steps_per_epoch)) if setup.epochs else setup.n_steps
    if isinstance(n_steps, int) and n_steps > MOST_NUMBER:
        problem = f"n_steps={n_steps} is too large; choose at most {MOST_NUMBER:,}"
        raise ConfigError(problem, code="run-setting", problem=problem)
    return n_steps


def _optimiser(setup: RunSetup) -> OptimiserConfig:
    rate = setup.learning_rate * (RATE_FACTOR if setup.breakage == "learning_rate" else 1.0)
    if setup.recipe == "classic":
        return OptimiserConfig(
            kind=setup.optimiser,  # type: ignore[arg-type]
            learning_rate=rate,
            beta2=0.999,  # PyTorch's default, which the book leaves
            weight_decay=setup.weight_decay,
            decay="everything",
            clip_norm=None,
        )
    return OptimiserConfig(
        kind=setup.optimiser,  # type: ignore[arg-type]
        learning_rate=rate,
        weight_decay=setup.weight_decay,
    )


def _schedule(setup: RunSetup) -> ScheduleConfig:
    warmup_steps = 0 if setup.breakage == "no_warmup" else setup.warmup_steps
    return ScheduleConfig(kind=setup.schedule, warmup_steps=warmup_steps)  # type: ignore[arg-type]


def _watch(n_steps: int, n_parameters: int, prompts: tuple[str, ...]) -> WatchConfig:
    """A very short run is looked at in every step, a long one a fixed number of times."""
    planned = n_steps if isinstance(n_steps, int) else 1  # what is wrong with it RunConfig says
    least = min(LEAST_INTERVAL, max(1, planned // LEAST_LOOKS))
    keeps_all = n_parameters <= KEEP_ALL_PARAMETERS
    return WatchConfig(
        evaluate_every=max(least, planned // EVALUATIONS),
        sample_every=max(least, planned // SAMPLES),
        save_every=max(least, planned // CHECKPOINTS),
        keep=None if keeps_all else KEPT_CHECKPOINTS,
        prompts=prompts,
        sample_tokens=100,
    )
