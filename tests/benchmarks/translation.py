"""Seconds until the 2017 Transformer translates each toy task, with the settings of the form.

    python -m tests.benchmarks.translation [--threads 2]

A whole run as the page makes it: evaluations, samples and checkpoints are in it; importing torch is
not. Prints for each task the time, that of the processor, and the share of held-out texts that come
out right as a whole (95 % within 2 minutes is wanted).
"""

import argparse
import tempfile
import time
from pathlib import Path

import torch

from explorer.datasets.translations import TASKS
from explorer.training.events import Scored
from explorer.training.loop import train
from explorer.training.new_translation import make_translation_run
from explorer.training.translation_setup import TranslationSetup


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    torch.set_num_threads(parser.parse_args().threads)
    with tempfile.TemporaryDirectory() as folder:
        for task in TASKS:
            run = make_translation_run(Path(folder), TranslationSetup(task=task), {})
            begun, worked = time.perf_counter(), time.process_time()
            scores = [e.value for e in train(run.path) if isinstance(e, Scored)]
            took_s = time.perf_counter() - begun
            worked_s = time.process_time() - worked
            told = f"{took_s:.1f} s ({worked_s:.1f} s of processor time)"
            print(f"{task}: {told}, {scores[-1]:.1%} right", flush=True)


if __name__ == "__main__":
    main()
