"""The classic 124M GPT on the-verdict, through the training engine, with the course's settings.

    GLASSBOX_DATA=... python tests/benchmarks/classic_124m.py [--steps N] [--record FILE]

Ten epochs are 90 steps: 7 to 10 minutes on two cores and 4 GB of memory. The recorded result is
`classic_124m.json`; the test `tests/explorer/training/test_classic_124m.py` takes the first steps.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
RECORD = Path(__file__).with_name("classic_124m.json")


def make_classic_run(folder: Path, text: str, n_steps: int | None = None):
    """The run: the `classic` recipe at full size, GPT-2's tokenizer, evaluated as in the course."""
    from explorer.training.prepare import RunText, make_run
    from explorer.training.run_config import WatchConfig
    from explorer.training.run_texts import TextSize, build_tokenizer, configure
    from explorer.training.setup import recommended_setup

    setup = recommended_setup("124m", recipe="classic")
    watch = WatchConfig(
        evaluate_every=5,
        evaluation_batches=5,
        sample_every=0,
        prompts=("Every effort moves you",),
        sample_tokens=50,
        save_every=0,
        keep=1,
    )

    def configure_run(*sizes: int):
        config = replace(configure(setup, TextSize(*sizes)), watch=watch)
        return config if n_steps is None else replace(config, n_steps=n_steps)

    tokenizer = build_tokenizer(setup, text)
    *_, run = make_run(folder, RunText(text=text), tokenizer, configure_run, {})
    return run


def train_classic(folder: Path, text: str, n_steps: int | None = None) -> Iterator[object]:
    """Events of the run."""
    from explorer.training.loop import train

    yield from train(make_classic_run(folder, text, n_steps).path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int)
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    sys.path.insert(0, str(ROOT))
    from explorer.cpu_share import TRAINING_SPINS, set_waiting

    set_waiting(os.environ, TRAINING_SPINS)
    import torch

    from explorer.training.events import Evaluated, Sampled, Step

    text = (Path(os.environ["GLASSBOX_DATA"]) / "the-verdict.txt").read_text(encoding="utf-8")
    begun, rows, samples, durations = time.perf_counter(), [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for event in train_classic(Path(folder), text, options.steps):
            if isinstance(event, Step):
                durations.append(event.duration_s)
            elif isinstance(event, Sampled):
                samples.append(event.text)
            elif isinstance(event, Evaluated):
                rows.append([event.step, event.training_loss, event.validation_loss])
                print(rows[-1], f"{time.perf_counter() - begun:.0f} s", flush=True)
    if options.record:
        record = {
            "script": "tests/benchmarks/classic_124m.py",
            "torch": torch.__version__,
            "machine": platform.machine(),
            "threads": torch.get_num_threads(),
            "minutes": round((time.perf_counter() - begun) / 60, 1),
            "median_step_s": sorted(durations)[len(durations) // 2],
            "step_training_validation": rows,
            "samples": samples,
        }
        options.record.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
