"""What fine-tuning the starter model comes to: time, and scores on the part that is kept apart.

    export OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=2000      # as the app's trainings wait
    python -m tests.benchmarks.fine_tuning [messages] [instructions] [preferences] [--epochs N] ...

Trains on the samples with the settings that the form starts from, as a user does who only presses
Start, and scores base and best checkpoint on the whole test part. Wanted, on two cores: messages at
least 95 % accuracy within 60 s; instructions from under 20 % exact answers to over 70 % within
120 s; preferences over 85 % within 60 s.
"""

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from explorer.datasets.examples import Example
from explorer.datasets.splits import Parts
from explorer.training.events import Evaluated, Failed
from explorer.training.learner import load_class_head
from explorer.training.loop import train
from explorer.training.new_tuning import make_tuning_run
from explorer.training.run_folder import RunFolder
from explorer.training.tuning_config import TuningConfig
from explorer.training.tuning_setup import TuningSetup, recommended_tuning
from explorer.tuning_data import SAMPLES, DataSets, DataSettings
from explorer.tuning_scores import ask_for_label, measure_answers, score_answers, score_classes
from models import load_model
from models.loading import LoadedModel

CHANGEABLE = ("epochs", "learning_rate", "batch_size")


def train_run(run: RunFolder) -> tuple[float, float, int]:
    """Train a run.

    Returns:
        Seconds, with evaluations, samples and checkpoints; the same of the processor, which other
        work on the machine does not lengthen; and the step of the best checkpoint.
    """
    begun, begun_cpu = time.perf_counter(), time.process_time()
    losses = {}
    for event in train(run.path):
        if isinstance(event, Failed):
            raise RuntimeError(event)
        if isinstance(event, Evaluated):
            losses[event.step] = event.validation_loss
    seconds = time.perf_counter() - begun, time.process_time() - begun_cpu
    kept = [step for step in losses if step in run.checkpoint_steps()]
    return *seconds, min(kept, key=lambda step: losses[step])


def score(
    objective: str,
    loaded: LoadedModel,
    examples: tuple[Example, ...],
    tuning: TuningConfig,
    checkpoint: Path | None,
) -> float:
    """Share of the test part that a model gets right; `checkpoint` is None for the base."""
    if objective == "sft":
        return score_answers(loaded, examples, tuning).exact_match
    if objective == "preference":
        sides = (
            measure_answers(loaded, examples, answers, tuning)
            for answers in ([e.answer for e in examples], [e.rejected for e in examples])
        )
        return sum(c[0] > r[0] for c, r in zip(*sides, strict=True)) / len(examples)
    if checkpoint is None:
        guesses = ask_for_label(loaded, examples, tuning)
        return sum(g == e.label for g, e in zip(guesses, examples, strict=True)) / len(examples)
    head = load_class_head(checkpoint, loaded)
    return score_classes(head, examples, limit=tuning.row_limit).accuracy


def measure(
    source: str, objective: str, parts: Parts, setup: TuningSetup, *, name: str
) -> dict[str, float]:
    """Train and score once.

    Args:
        source: The model it begins from.
        objective: What is learned.
        parts: The data.
        setup: The settings.
        name: Of the data.
    """
    loaded = load_model(source)
    with tempfile.TemporaryDirectory() as folder:
        about = {"base": source, "base_name": source, "data_name": name, "about": {}}
        run = make_tuning_run(Path(folder), setup, objective, parts, loaded, **about)
        seconds, cpu_s, step = train_run(run)
        tuning = run.read_config().tuning
        checkpoint = run.checkpoint(step)
        before = score(objective, loaded, parts.test, tuning, None)
        after = score(objective, load_model(checkpoint), parts.test, tuning, checkpoint)
    return {"before": before, "after": after, "seconds": seconds, "cpu_s": cpu_s, "step": step}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", help=", ".join(SAMPLES))
    for name in CHANGEABLE:
        parser.add_argument(f"--{name.replace('_', '-')}", type=float)
    options = parser.parse_args()
    for data in options.data or SAMPLES:
        view = DataSets().view(DataSettings(data=data))
        changes = {n: getattr(options, n) for n in CHANGEABLE if getattr(options, n) is not None}
        if "batch_size" in changes:
            changes["batch_size"] = int(changes["batch_size"])
        setup = replace(recommended_tuning(view.objective), **changes)
        found = measure("starter", view.objective, view.parts, setup, name=view.name)
        print(
            f"{data}: {100 * found['before']:.1f} % -> {100 * found['after']:.1f} % in "
            f"{found['seconds']:.0f} s ({found['cpu_s']:.0f} s of one core), best step "
            f"{found['step']:.0f}; counting words {100 * view.baseline:.1f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
