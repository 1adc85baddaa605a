"""How the starter model is trained; its architecture is the preset `starter`.

A Llama of 3.7 million numbers, since that is what half an hour of two cores can teach the world of
`documents.py`: fluent stories of it, and questions about the text before them. The vocabulary is
small because a third of the numbers would else be rows of the embedding.

Two runs, the second from the weights of the first. The first reads the world alone, and learns to
look one token back. The second reads the world among rows of random tokens that are repeated: heads
form that look behind an earlier copy of the token, which the world alone did not bring about. They
form within some hundred steps there, and not at all from weights that have read nothing.
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
# The second run. Its windows are short: a batch holds more rows, and two copies still fit.
COPYING_SEED = 2027
COPYING_TOKENS = 3_400_000
COPYING_STEPS = 2_500
COPYING_CONTEXT = 128
COPYING_BATCH_SIZE = 10
ROWS_SHARE = 0.4  # of its tokens
PROMPTS = ("Once upon a time", "Mia has a red ball. Who has the red ball?", "小明有一只")


def starter_run(n_steps: int | None = None) -> RunConfig:
    """The first run: it learns the world.

    Args:
        n_steps: Fewer, for a trial; None is all.
    """
    context = get_preset("starter").context_length
    data = DataConfig(text_name="world", context=context, batch_size=BATCH_SIZE)
    return _make_run("starter", data, N_STEPS if n_steps is None else n_steps)


def copying_run(n_steps: int | None = None) -> RunConfig:
    """The second run: it learns to copy.

    Args:
        n_steps: Fewer, for a trial; None is all.
    """
    data = DataConfig(
        text_name="world and rows", context=COPYING_CONTEXT, batch_size=COPYING_BATCH_SIZE
    )
    return _make_run("starter copying", data, COPYING_STEPS if n_steps is None else n_steps)


def _make_run(name: str, data: DataConfig, n_steps: int) -> RunConfig:
    return RunConfig(
        name=name,
        model=get_preset("starter"),
        data=data,
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
