"""Milliseconds a token with the app's threads, with others, with one: alone and in company.

    python -m tests.benchmarks.threads [--seconds 8]

Each line is one process that decodes with SmolLM2-135M-Instruct (the starter where it is not here)
beside nothing, beside a busy loop on one core, and beside a training of the starter that has
stepped back as the app's trainings do. Recorded results are in results.md.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from explorer.cpu_share import (
    APP_SPINS,
    SPIN_VARIABLE,
    THREADS_VARIABLE,
    TRAINING_SPINS,
    WAIT_VARIABLE,
    FreeCores,
)

POLICIES = {
    "as the app": {WAIT_VARIABLE: "PASSIVE", SPIN_VARIABLE: APP_SPINS},
    "all cores, sleeping": {WAIT_VARIABLE: "PASSIVE", THREADS_VARIABLE: str(os.cpu_count())},
    "all cores, spinning": {WAIT_VARIABLE: "ACTIVE", THREADS_VARIABLE: str(os.cpu_count())},
    "one thread": {THREADS_VARIABLE: "1"},
}
COMPANY = ("nothing", "a busy loop", "a training")
OWN = (WAIT_VARIABLE, SPIN_VARIABLE, THREADS_VARIABLE)


def decode(seconds: float) -> None:
    """Write tokens one by one, each in a turn as the app takes it; prints the median."""
    import torch

    from explorer.slots import FairSlots
    from models import load_model
    from models.cache import KVCache
    from models.sources import find_local

    here = find_local("smollm2-135m-instruct") is not None
    loaded = load_model("smollm2-135m-instruct" if here else "starter")
    slots, token = FairSlots(begin=FreeCores().use), torch.tensor([[7]])
    times, end = [], time.perf_counter() + seconds
    with torch.inference_mode():
        while time.perf_counter() < end:
            cache = KVCache(loaded.config, batch=1, capacity=64)
            for _ in range(64):
                begun = time.perf_counter()
                with slots.turn():
                    logits = loaded.model(token, cache=cache)
                    token = logits[:, -1].argmax(-1, keepdim=True)
                times.append(time.perf_counter() - begun)
    print(1000 * statistics.median(times[len(times) // 4 :]))


def train(seconds: float) -> None:
    """Train the starter on random tokens; prints steps a second."""
    import torch
    from torch.nn import functional

    from explorer.train import _step_back
    from models import load_model

    _step_back()
    model = load_model("starter").model.requires_grad_(True)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-5)
    ids = torch.randint(0, model.config.vocab_size, (8, 65))
    n_steps, begun = 0, time.perf_counter()
    while time.perf_counter() < begun + seconds:
        logits = model(ids[:, :-1]).flatten(0, 1)
        functional.cross_entropy(logits, ids[:, 1:].flatten()).backward()
        optimiser.step()
        optimiser.zero_grad()
        n_steps += 1
    print(n_steps / (time.perf_counter() - begun))


def spin(seconds: float) -> None:
    """Keep one core busy."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


@contextmanager
def start(work: str, seconds: float, environment: dict[str, str]) -> Iterator[subprocess.Popen]:
    usual = {name: value for name, value in os.environ.items() if name not in OWN}
    command = [sys.executable, "-m", __spec__.name, "--do", work, "--seconds", str(seconds)]
    with subprocess.Popen(
        command, env={**usual, **environment}, stdout=subprocess.PIPE, start_new_session=True
    ) as process:
        yield process
        process.kill()


def measure(company: str, policy: dict[str, str], seconds: float) -> float:
    """Median milliseconds a token."""
    training = {WAIT_VARIABLE: "PASSIVE", SPIN_VARIABLE: TRAINING_SPINS}
    with start("decode", seconds, policy) as decoding:
        assert decoding.stdout is not None
        if company == "nothing":
            return float(decoding.stdout.read())
        work = "spin" if company == "a busy loop" else "train"
        with start(work, 10 * seconds, training):
            return float(decoding.stdout.read())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--do", choices=("decode", "train", "spin"))
    options = parser.parse_args()
    if options.do:
        {"decode": decode, "train": train, "spin": spin}[options.do](options.seconds)
        return
    for company in COMPANY:
        found = {name: measure(company, p, options.seconds) for name, p in POLICIES.items()}
        ours = found["as the app"]
        for name, milliseconds in found.items():
            print(
                f"beside {company:12} {name:20} {milliseconds:7.1f} ms  {milliseconds / ours:.2f}"
            )


if __name__ == "__main__":
    main()
