"""What the form of a fine-tuning says, and the configuration that it comes to."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from explorer.training.run_config import (
    DataConfig,
    OptimiserConfig,
    RunConfig,
    ScheduleConfig,
    WatchConfig,
)
from explorer.training.run_names import clean_run_name
from explorer.training.tuning_config import (
    PoolingChoice,
    PreferenceLossName,
    Reduction,
    Template,
    TrainOn,
    Trains,
    TuningConfig,
)
from models.config import ModelConfig
from models.errors import ConfigError
from models.lora_config import ATTENTION_LAYERS, FFN_LAYERS, LoraConfig

ObjectiveName = Literal["classification", "sft", "preference"]
LoraTargets = Literal["query_value", "attention", "all_linear"]
TARGETS: Mapping[str, tuple[str, ...]] = {
    "query_value": ("q_proj", "v_proj"),
    "attention": ATTENTION_LAYERS,
    "all_linear": (*ATTENTION_LAYERS, *FFN_LAYERS),
}
EVALUATIONS, SAMPLES, CHECKPOINTS = 8, 6, 6
# Below so many examples a run is recommended that takes at least so many steps.
FEW, LEAST_STEPS = 100, 40
# Batches of an evaluation; pairs are read twice, and twice more for their scores.
EVALUATION_BATCHES, PAIR_BATCHES = 8, 4
# Above so many parameters only the newest checkpoint and the best one stay.
KEEP_ALL_PARAMETERS = 30_000_000
SAMPLE_TOKENS = 60
WARMUP_SHARE = 0.1


def _choices(kind: Any) -> dict[str, Any]:
    return {"choices": get_args(kind)}


@dataclass(frozen=True, kw_only=True)
class TuningSetup:
    """What the form says. The order of the fields is that of the form and of its API.

    Args:
        name: What to call the run; empty lets the app choose.
        trains: Which weights are trained.
        template: How question and answer become one text.
        train_on: Whether the question is learned, too.
        pooling: Which state the head of a classifier reads.
        loss: Of preferences.
        beta: Its strength.
        gamma: Of SimPO: the margin that is wanted.
        reduction: Whether log-probabilities of an answer are summed or averaged.
        epochs: Passes over the training part.
        batch_size: Examples of one forward pass.
        accumulate: Forward passes whose gradients make one step.
        learning_rate: The highest of the schedule.
        row_limit: Tokens of an example; longer ones are cut on the right.
        packing: Whether short examples share a row.
        lora_rank: Rank of the adapters.
        lora_alpha: Their scale, times the rank.
        lora_targets: Which layers get adapters.
        patience: Evaluations without a lower held-out loss that end the run; 0 is never.
        weight_decay: Share of a weight taken away per step, times the learning rate.
        seed: Of every draw.
    """

    name: str = field(default="", metadata={"text": True})
    trains: str = field(default="all", metadata={**_choices(Trains), "dial": True})
    template: str = field(default="alpaca", metadata={**_choices(Template), "dial": True})
    train_on: str = field(default="answer", metadata={**_choices(TrainOn), "dial": True})
    pooling: str = field(default="last", metadata={**_choices(PoolingChoice), "dial": True})
    loss: str = field(default="dpo", metadata={**_choices(PreferenceLossName), "dial": True})
    beta: float = field(default=0.1, metadata={"least": 0.01, "most": 2.0, "step": 0.01})
    gamma: float = field(default=0.5, metadata={"least": 0.0, "most": 3.0, "step": 0.1})
    reduction: str = field(default="sum", metadata={**_choices(Reduction), "dial": True})
    epochs: float = field(default=3.0, metadata={"least": 0.1, "most": 50.0, "step": 0.1})
    batch_size: int = field(default=8, metadata={"least": 1, "most": 64, "step": 1})
    accumulate: int = field(default=1, metadata={"least": 1, "most": 32, "step": 1})
    learning_rate: float = field(default=1e-3, metadata={})
    row_limit: int = field(default=256, metadata={"least": 8, "most": 4096, "step": 8})
    packing: bool = False
    lora_rank: int = field(default=8, metadata={"least": 1, "most": 128, "step": 1})
    lora_alpha: float = field(default=16.0, metadata={"least": 1.0, "most": 512.0, "step": 1.0})
    lora_targets: str = field(default="query_value", metadata=_choices(LoraTargets))
    patience: int = field(default=0, metadata={"least": 0, "most": 20, "step": 1})
    weight_decay: float = field(default=0.01, metadata={"least": 0.0, "most": 1.0, "step": 0.01})
    seed: int = field(default=123, metadata={"least": 0, "most": 2**31 - 1, "step": 1})


# What the three objectives start from: settings that teach the starter model within a minute.
_RECOMMENDED: Mapping[str, Mapping[str, Any]] = {
    "classification": {"epochs": 2.0, "learning_rate": 1e-3},
    # of the sample's held-out questions 83 % are answered so, with all weights 68 %
    "sft": {"trains": "lora", "lora_targets": "all_linear", "epochs": 2.0, "learning_rate": 1e-3},
    "preference": {"epochs": 0.6, "learning_rate": 3e-4},
}


def recommended_tuning(objective: str, n_training: int | None = None) -> TuningSetup:
    """Settings that the form starts from.

    Args:
        objective: Which objective.
        n_training: Examples to learn from; of few ones smaller batches are read more often, so that
            ten rows are learned, too.

    Raises:
        ConfigError: There is no such objective.
    """
    if objective not in _RECOMMENDED:
        known = ", ".join(_RECOMMENDED)
        problem = f"objective={objective!r} is unknown; choose {known}"
        raise ConfigError(problem, code="run-setting", problem=problem)
    setup = TuningSetup(**_RECOMMENDED[objective])
    if n_training is None or n_training >= FEW:
        return setup
    batch_size = max(1, min(setup.batch_size, n_training // 4))
    epochs = math.ceil(10 * LEAST_STEPS / max(1, n_training // batch_size)) / 10
    # Gradients of few rows are noisy: the square root rule of Adam (Malladi et al. 2022).
    rate = setup.learning_rate * math.sqrt(batch_size / setup.batch_size)
    return replace(
        setup,
        batch_size=batch_size,
        epochs=max(setup.epochs, epochs),
        learning_rate=float(f"{rate:.2g}"),
    )


def make_tuning_config(
    setup: TuningSetup, objective: str, *, base: str, base_name: str, labels: tuple[str, ...]
) -> TuningConfig:
    """What a fine-tuning does besides what every run does.

    Args:
        setup: What the form says.
        objective: Which objective.
        base: What the store calls the model it begins from.
        base_name: The same for the page.
        labels: Classes of a classification.

    Raises:
        ConfigError: Values that cannot be used.
    """
    is_lora = setup.trains == "lora"
    targets = TARGETS.get(setup.lora_targets, ())
    lora = LoraConfig(rank=setup.lora_rank, alpha=setup.lora_alpha, targets=targets)
    return TuningConfig(
        base=base,
        base_name=base_name,
        trains=setup.trains,  # type: ignore[arg-type]
        lora=lora if is_lora else None,
        template=setup.template,  # type: ignore[arg-type]
        train_on=setup.train_on,  # type: ignore[arg-type]
        packing=setup.packing,
        labels=labels if objective == "classification" else (),
        pooling=setup.pooling,  # type: ignore[arg-type]
        loss=setup.loss,  # type: ignore[arg-type]
        beta=setup.beta,
        gamma=setup.gamma,
        reduction=setup.reduction,  # type: ignore[arg-type]
        row_limit=setup.row_limit,
    )


def build_tuning_run(
    setup: TuningSetup,
    objective: str,
    tuning: TuningConfig,
    model: ModelConfig,
    *,
    n_training: int,
    longest: int,
    data_name: str,
    prompts: tuple[str, ...],
    n_parameters: int,
) -> RunConfig:
    """The configuration of a run.

    Args:
        setup: What the form says.
        objective: Which objective.
        tuning: What it does besides.
        model: Architecture of the model it begins from.
        n_training: Examples to learn from.
        longest: Tokens of the longest example.
        data_name: What the data set is called.
        prompts: Held-out questions that are answered while it learns.
        n_parameters: Of the model.

    Raises:
        ConfigError: A value that cannot be used.
    """
    setup = fit_batch(setup, n_training)
    steps_per_epoch = n_training // setup.batch_size // setup.accumulate
    n_steps = max(1, round(setup.epochs * steps_per_epoch))
    return RunConfig(
        name=clean_run_name(setup.name) or f"{objective} · {tuning.base_name}",
        objective=objective,
        model=model,
        data=DataConfig(
            text_name=data_name,
            context=min(longest, model.context_length),
            batch_size=setup.batch_size,
            accumulate=setup.accumulate,
        ),
        optimiser=OptimiserConfig(
            learning_rate=setup.learning_rate, beta2=0.999, weight_decay=setup.weight_decay
        ),
        schedule=ScheduleConfig(kind="linear", warmup_steps=int(WARMUP_SHARE * n_steps)),
        watch=_watch(setup, objective, n_steps, prompts, n_parameters),
        n_steps=n_steps,
        seed=setup.seed,
        tokenizer=tuning.base_name,
        tuning=tuning,
    )


def fit_batch(setup: TuningSetup, n_training: int) -> TuningSetup:
    """No step reads more examples than there are.

    Args:
        setup: What the form says.
        n_training: Examples to learn from.
    """
    batch_size = max(1, min(setup.batch_size, n_training))
    accumulate = max(1, min(setup.accumulate, n_training // batch_size))
    return replace(setup, batch_size=batch_size, accumulate=accumulate)


def _watch(
    setup: TuningSetup,
    objective: str,
    n_steps: int,
    prompts: tuple[str, ...],
    n_parameters: int,
) -> WatchConfig:
    keeps_all = n_parameters <= KEEP_ALL_PARAMETERS
    return WatchConfig(
        evaluate_every=-(-n_steps // EVALUATIONS),
        evaluation_batches=PAIR_BATCHES if objective == "preference" else EVALUATION_BATCHES,
        sample_every=-(-n_steps // SAMPLES),
        save_every=-(-n_steps // CHECKPOINTS) if keeps_all else 0,
        keep=None if keeps_all else 1,
        keep_best=True,
        patience=setup.patience,
        prompts=prompts,
        sample_tokens=SAMPLE_TOKENS,
    )
