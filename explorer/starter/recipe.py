"""How the starter model is trained; its architecture is the preset `starter`.

A Llama of 3.7 million numbers, since that is what an hour of two cores can teach the world of
`documents.py`: fluent stories of it, and questions about the text before them. The vocabulary is
small because a third of the numbers would else be rows of the embedding.

Three runs, each from the weights of the one before. Two short ones read nothing but rows that
repeat, each a window of 32 tokens that is never seen again: of a few words first, then of all.
There the heads that copy form within some hundred updates, which in stories alone they did not in
two thousand; with longer windows, with rows seen twice or with all words at once it takes many
times longer. The third reads the world, once. Batches are small: with Muon, whose updates have one
size whatever the gradient, the number of updates counts more than the tokens behind each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from explorer.starter.documents import KINDS
from explorer.training.run_config import (
    DataConfig,
    OptimiserConfig,
    RunConfig,
    ScheduleConfig,
    WatchConfig,
)
from models.registry import get_preset

SEED = 2026
SEPARATOR = "<|endoftext|>"
TOKENIZER_CHARACTERS = 6_000_000  # more text changes no merge that matters, and takes longer
VALIDATION_TOKENS = 120_000
PROMPTS = ("Once upon a time", "Mia has a red ball. Who has the red ball?", "小明有一只")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """One run of the recipe.

    Args:
        name: What it is called.
        kinds: Kinds of documents that it reads.
        language: Their language: en, zh or both.
        context: Tokens of a window.
        batch_size: Windows of a step.
        n_steps: Optimiser steps.
        learning_rate: The highest.
        schedule: How the learning rate goes.
    """

    name: str
    kinds: tuple[str, ...]
    language: str
    context: int
    batch_size: int
    n_steps: int
    learning_rate: float
    schedule: ScheduleConfig

    @property
    def n_tokens(self) -> int:
        """Tokens that it reads."""
        return self.n_steps * self.batch_size * self.context


_CONSTANT = ScheduleConfig(kind="constant", warmup_steps=50)
STAGES = (
    Stage(
        name="first_rows",
        kinds=("first_rows",),
        language="en",
        context=32,
        batch_size=24,
        n_steps=350,
        learning_rate=1e-2,
        schedule=_CONSTANT,
    ),
    Stage(
        name="short_rows",
        kinds=("short_rows",),
        language="en",
        context=32,
        batch_size=24,
        n_steps=500,
        learning_rate=1e-2,
        schedule=_CONSTANT,
    ),
    Stage(
        name="world",
        kinds=KINDS,
        language="both",
        context=256,
        batch_size=4,
        n_steps=5_500,
        learning_rate=6e-3,
        schedule=ScheduleConfig(kind="cosine", warmup_steps=50, final_share=0.0),
    ),
)


def starter_run(stage: Stage = STAGES[-1], n_steps: int | None = None) -> RunConfig:
    """The training of one stage.

    Args:
        stage: One of `STAGES`.
        n_steps: Fewer, for a trial; None is all.
    """
    n_steps = stage.n_steps if n_steps is None else n_steps
    return RunConfig(
        name=f"starter {stage.name}",
        model=get_preset("starter"),
        data=DataConfig(
            text_name=stage.name,
            context=stage.context,
            batch_size=stage.batch_size,
            shuffle=False,
        ),
        optimiser=OptimiserConfig(kind="muon", learning_rate=stage.learning_rate),
        schedule=stage.schedule,
        watch=WatchConfig(
            evaluate_every=max(1, n_steps // 12),
            evaluation_batches=20,
            sample_every=max(1, n_steps // 10),
            save_every=max(1, n_steps // 10),
            prompts=PROMPTS,
            sample_tokens=60,
            keep=2,
        ),
        n_steps=n_steps,
        seed=SEED,
        precision="bfloat16",
        tokenizer="byte pairs of the world",
    )
