"""What the form of a toy translation says, and the configuration that it comes to. No torch here.

Sizes and rates are such that each task is learned within a minute or two on two cores; the model is
the `transformer-tiny` of `models/encoder_decoder_config.py`, the base model made small.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from explorer.datasets.translations import TASKS, ToyTask, draw_pairs, get_task
from explorer.training.run_config import (
    DataConfig,
    OptimiserConfig,
    RunConfig,
    ScheduleConfig,
    WatchConfig,
)
from explorer.training.run_names import clean_run_name
from explorer.training.translation_config import TranslationConfig
from models.config import FULL, AttentionConfig, DropoutConfig, ModelConfig
from models.encoder_decoder_config import ENCODER_DECODERS

TRANSLATION = "translation"  # key of the objective
N_VALIDATION = 512
BATCH_SIZE = 128
EVALUATIONS, CHECKPOINTS = 10, 10
N_PROMPTS = 4
D_HEAD = 16


@dataclass(frozen=True, kw_only=True)
class TranslationSetup:
    """What the form says. The order of the fields is that of the form and of its API.

    Args:
        task: Key of the toy translation.
        n_steps: Optimiser steps.
        n_training: Pairs to learn from.
        n_layers: Blocks of the encoder, and of the decoder.
        d_model: Width of both streams; a head is 16 wide.
        learning_rate: The highest of the schedule.
        seed: Of every draw.
    """

    task: str = field(default="numbers", metadata={"choices": tuple(TASKS), "dial": True})
    n_steps: int = field(default=400, metadata={"least": 20, "most": 5_000, "step": 20})
    n_training: int = field(default=8_000, metadata={"least": 200, "most": 20_000, "step": 200})
    n_layers: int = field(default=2, metadata={"least": 1, "most": 4, "step": 1})
    d_model: int = field(default=64, metadata={"least": 32, "most": 128, "step": 32})
    learning_rate: float = field(default=2e-3, metadata={})
    seed: int = field(default=123, metadata={"least": 0, "most": 2**31 - 1, "step": 1})


def build_translation_model(task: ToyTask, n_layers: int, d_model: int) -> ModelConfig:
    """One stack, encoder and decoder alike: the 2017 model made small, without dropout.

    Args:
        task: Gives vocabulary and length.
        n_layers: Blocks.
        d_model: Width.
    """
    n_heads = d_model // D_HEAD
    tiny = ENCODER_DECODERS["transformer-tiny"].decoder
    return replace(
        tiny,
        vocab_size=task.vocab_size,
        context_length=max(task.longest) + 1,  # a start or an end
        d_model=d_model,
        layer_types=(FULL,) * n_layers,
        attention=AttentionConfig(n_heads=n_heads, n_kv_heads=n_heads, d_head=D_HEAD),
        ffn=replace(tiny.ffn, d_ff=4 * d_model),
        embedding_scale=d_model**0.5,  # section 3.4
        dropout=DropoutConfig(),  # each pair is seen a dozen times: there is little to overfit
    )


def build_translation_run(setup: TranslationSetup) -> RunConfig:
    """The configuration of a run.

    Args:
        setup: What the form says.

    Raises:
        ConfigError: A value that cannot be used.
    """
    task = get_task(setup.task)
    model = build_translation_model(task, setup.n_layers, setup.d_model)
    n_steps = setup.n_steps
    return RunConfig(
        name=clean_run_name(setup.task),
        objective=TRANSLATION,
        model=model,
        data=DataConfig(text_name=setup.task, context=model.context_length, batch_size=BATCH_SIZE),
        optimiser=OptimiserConfig(
            learning_rate=setup.learning_rate, beta2=0.98, eps=1e-9, weight_decay=0.0
        ),  # section 5.3, but for the rate
        schedule=ScheduleConfig(kind="cosine", warmup_steps=n_steps // 10, final_share=0.02),
        watch=WatchConfig(
            prompts=_prompts(task, setup),
            evaluate_every=max(1, n_steps // EVALUATIONS),
            evaluation_batches=N_VALIDATION // BATCH_SIZE,
            sample_every=max(1, n_steps // EVALUATIONS),
            save_every=max(1, n_steps // CHECKPOINTS),
            keep=3,
        ),
        n_steps=n_steps,
        seed=setup.seed,
        translation=TranslationConfig(
            task=setup.task,
            encoder=model,
            n_training=setup.n_training,
            n_validation=N_VALIDATION,
        ),
    )


def _prompts(task: ToyTask, setup: TranslationSetup) -> tuple[str, ...]:
    """Held-out sources that are translated while it learns."""
    pairs = draw_pairs(task, setup.n_training + N_VALIDATION, setup.seed)
    return tuple(pair.source for pair in pairs[-N_PROMPTS:])
