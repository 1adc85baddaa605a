"""Quality of attention variants after the same short training.

    python -m tests.benchmarks.attention_variants [--steps 300] [--seeds 2]

Five small models that differ in their attention alone (explorer/attention_lab/variants.py) read the
same windows of the same text in the same order, for each seed. What is recorded is the mean loss on
the held-out part, with the parameters and what each keeps in its cache. The result goes to
assets/recorded/attention_variants.json, which the Attention tab shows.
"""

import argparse
import json
import statistics
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

from explorer.attention_lab.recorded import RECORDED
from explorer.attention_lab.variants import (
    VARIANTS,
    VariantSettings,
    build_variant_config,
    compute_variants,
)
from explorer.training.events import Evaluated
from explorer.training.loop import train
from explorer.training.prepare import RunText, make_run
from explorer.training.run_config import (
    DataConfig,
    OptimiserConfig,
    RunConfig,
    ScheduleConfig,
    WatchConfig,
)
from models import count_parameters
from models.tokenizers.characters import train_character_tokenizer

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "assets" / "samples" / "village.txt"
CONTEXT, BATCH_SIZE, RATE = 64, 16, 2e-3
SIZES = VariantSettings(
    d_model=96,
    n_heads=6,
    n_groups=2,
    d_head=16,
    latent=32,
    rotary=8,
    window=16,
    n_layers=3,
    context=CONTEXT * 2,
)


def describe_run(variant: str, vocab_size: int, steps: int, seed: int) -> RunConfig:
    """The training of one variant."""
    base = build_variant_config(variant, SIZES)
    model = replace(
        base,
        vocab_size=vocab_size,
        context_length=CONTEXT,
        ffn=replace(base.ffn, d_ff=256),
        tied_head=True,
    )
    return RunConfig(
        name=variant,
        model=model,
        data=DataConfig(context=CONTEXT, batch_size=BATCH_SIZE),
        optimiser=OptimiserConfig(learning_rate=RATE),
        schedule=ScheduleConfig(kind="cosine", warmup_steps=20),
        watch=WatchConfig(
            evaluate_every=steps,
            evaluation_batches=20,
            sample_every=steps,
            prompts=(),
            save_every=steps,
        ),
        n_steps=steps,
        seed=seed,
        tokenizer="characters",
    )


def train_one(folder: Path, variant: str, steps: int, seed: int) -> tuple[float, int]:
    """Validation loss after the last step, and the number of parameters."""
    text = TEXT.read_text(encoding="utf-8")
    *_, run = make_run(
        folder,
        RunText(text=text),
        train_character_tokenizer(text),
        lambda vocab_size, *_: describe_run(variant, vocab_size, steps, seed),
        {"owner": "local"},
    )
    losses = [e.validation_loss for e in train(run.path) if isinstance(e, Evaluated)]
    return losses[-1], count_parameters(run.read_config().model).unique


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    kept = {variant.name: variant.kept_per_token for variant in compute_variants(SIZES)}
    runs = []
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            found = [
                train_one(Path(folder), variant, asked.steps, seed) for seed in range(asked.seeds)
            ]
        losses = [loss for loss, _ in found]
        runs.append(
            {
                "variant": variant,
                "validation_loss": statistics.mean(losses),
                "losses": losses,
                "parameters": found[0][1],
                "kept_per_token": kept[variant],
            }
        )
        print(f"{variant:8} {runs[-1]['validation_loss']:.4f}  {losses}", flush=True)
    RECORDED.mkdir(parents=True, exist_ok=True)
    result = {
        "script": Path(__file__).relative_to(ROOT).as_posix(),
        "steps": asked.steps,
        "seeds": asked.seeds,
        "context": CONTEXT,
        "batch_size": BATCH_SIZE,
        "sizes": vars(SIZES),
        "torch": torch.__version__,
        "runs": runs,
    }
    path = RECORDED / "attention_variants.json"
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
