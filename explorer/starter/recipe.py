"""How the starter model is trained; its architecture is the preset `starter`.

A Llama of 3.7 million numbers, since that is what half an hour of two cores can teach the world of
`documents.py`: fluent stories of it, and questions about the text before them. The vocabulary is
small because a third of the numbers would else be rows of the embedding.
"""

from __future__ import annotations

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
WORLD_TOKENS = 12_000_000  # of text, in the order of the seed; training reads two thirds of it
N_STEPS = 1_900
VALIDATION_TOKENS = 120_000
BATCH_SIZE = 16
PROMPTS = ("Once upon a time", "Mia has a red ball. Who has the red ball?", "小明有一只")


def starter_run(n_steps: int | None = None) -> RunConfig:
    """The training.

    Args:
        n_steps: Fewer, for a trial; None is all.
    """
    model = get_preset("starter")
    n_steps = N_STEPS if n_steps is None else n_steps
    return RunConfig(
        name="starter",
        model=model,
        data=DataConfig(text_name="world", context=model.context_length, batch_size=BATCH_SIZE),
        optimiser=OptimiserConfig(kind="muon", learning_rate=3e-3),
        schedule=ScheduleConfig(kind="wsd", warmup_steps=100, final_share=0.0, decay_share=0.3),
        watch=WatchConfig(
            evaluate_every=max(1, n_steps // 16),
            evaluation_batches=5,
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
