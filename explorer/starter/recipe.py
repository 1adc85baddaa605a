"""How the starter model is trained; its architecture is the preset `starter`.

A Llama of 3.7 million numbers, since that is what half an hour of two cores can teach the world of
`documents.py`: fluent stories of it, and questions about the text before them. The vocabulary is
small because a third of the numbers would else be rows of the embedding.

The text opens with repetition alone: rows said again, pairs asked again, stories told again. There
half of all tokens can be known from an earlier copy, so that heads which look one token back, and
behind a copy, form early; what follows is learned with them. In the mixed text alone, where a tenth
repeats, and at a third of this rate, they had not formed after a thousand steps.
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
OPENING_TOKENS = 500_000
OPENING_KINDS = ("echo", "pairs", "retelling")
TRAINING_TOKENS = 6_000_000  # with the opening
SPARE_TEXT = 1.05  # tokens are foreseen from characters; a second epoch would open again
VALIDATION_TOKENS = 120_000
BATCH_SIZE = 16
PROMPTS = ("Once upon a time", "Mia has a red ball. Who has the red ball?", "小明有一只")


def starter_run(n_steps: int | None = None) -> RunConfig:
    """The training.

    Args:
        n_steps: Fewer, for a trial; None is all.
    """
    model = get_preset("starter")
    planned = TRAINING_TOKENS // (BATCH_SIZE * model.context_length)
    n_steps = planned if n_steps is None else n_steps
    return RunConfig(
        name="starter",
        model=model,
        data=DataConfig(
            text_name="world",
            context=model.context_length,
            batch_size=BATCH_SIZE,
            shuffle=False,  # documents come in random order anyway, the opening first
        ),
        # on random rows read twice, induction heads formed in 150 steps at 0.01, not at 0.003
        optimiser=OptimiserConfig(kind="muon", learning_rate=1e-2),
        schedule=ScheduleConfig(kind="wsd", warmup_steps=60, final_share=0.0, decay_share=0.3),
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
