"""SmolLM2-135M-Instruct fine-tuned on real data: instructions with LoRA, and the SMS collection.

    export OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=2000      # as the trainings of the app wait
    GLASSBOX_DATA=FOLDER python -m tests.benchmarks.fine_tuning_real [instructions] [sms]

The folder holds `instruction-data.json` (1,100 instructions) and `SMSSpamCollection.tsv`. Wanted:
after 100 steps of LoRA the validation loss is at least 0.3 lower; with the last block trained at
least 95 % of the balanced test part of the SMS collection is put into its class.
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

from explorer.datasets.splits import Parts
from explorer.training.events import Evaluated, Failed
from explorer.training.loop import train
from explorer.training.new_tuning import make_tuning_run
from explorer.training.tuning_setup import TuningSetup
from explorer.tuning_data import DataSets, DataSettings
from models import load_model
from tests.benchmarks.fine_tuning import score

SOURCE = "smollm2-135m-instruct"
# As the book that the instructions come from: 935 to learn from, 55 to look at, 110 kept apart.
INSTRUCTIONS = DataSettings(data="upload", shuffle=False, training=0.85, validation=0.05)
SMS = DataSettings(data="upload", balance=True)
LORA = TuningSetup(trains="lora", lora_targets="all_linear", batch_size=4, learning_rate=1e-3)
N_STEPS = 100
LAST_BLOCK = TuningSetup(trains="last_block", epochs=1.0, learning_rate=1e-3, row_limit=128)


def measure(objective: str, parts: Parts, setup: TuningSetup) -> tuple[str, float]:
    """Train once, and say what came of it.

    Returns:
        Losses at each evaluation, seconds, and for classes the accuracy on the test part.
    """
    loaded = load_model(SOURCE)
    with tempfile.TemporaryDirectory() as folder:
        about = {"base": SOURCE, "base_name": SOURCE, "data_name": objective, "about": {}}
        run = make_tuning_run(Path(folder), setup, objective, parts, loaded, **about)
        begun, losses = time.perf_counter(), {}
        for event in train(run.path):
            if isinstance(event, Failed):
                raise RuntimeError(event)
            if isinstance(event, Evaluated):
                losses[event.step] = event.validation_loss
                print(f"step {event.step}: {event.validation_loss:.3f}", flush=True)
        seconds = time.perf_counter() - begun
        last = run.checkpoint(run.checkpoint_steps()[-1])
        said = f"validation loss {losses[0]:.3f} -> {losses[max(losses)]:.3f}"
        if objective == "classification":
            tuning = run.read_config().tuning
            right = score(objective, load_model(last), parts.test, tuning, last)
            said += f", test accuracy {100 * right:.1f} % of {len(parts.test)}"
    return said, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="instructions, sms")
    options = parser.parse_args()
    data = Path(os.environ["GLASSBOX_DATA"])
    for what in options.what or ("instructions", "sms"):
        if what == "sms":
            view = DataSets().view(SMS, str(data / "SMSSpamCollection.tsv"))
            said, seconds = measure("classification", view.parts, LAST_BLOCK)
        else:
            view = DataSets().view(INSTRUCTIONS, str(data / "instruction-data.json"))
            epochs = N_STEPS * LORA.batch_size / len(view.parts.training)
            setup = TuningSetup(**{**vars(LORA), "epochs": epochs})
            said, seconds = measure("sft", view.parts, setup)
        print(f"{what}: {said} in {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    main()
