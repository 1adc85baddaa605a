"""Tokens per second of one training step of the 124M GPT, beside that of `llms-from-scratch`.

    python tests/benchmarks/training.py [--dropout 0.1] [--steps 5] [--profile]

Both train the same architecture (untied head, biases where GPT-2 of the book has them) on the same
batch of 2 x 256 tokens with AdamW, in turn, on 2 threads of one process. Theirs is a plain loop
with `torch.optim.AdamW`; ours is the engine's step: clipping, and AdamW as one kernel. Prints the
median of each and their ratio (at least 1.3 is wanted), with `--profile` what takes the time.
"""

import argparse
import statistics
import time
from dataclasses import replace

import torch
from torch.nn import functional

from explorer.training.optimisers import build_optimiser, clip_gradients
from explorer.training.run_config import OptimiserConfig
from models import build_decoder, get_preset
from models.config import DropoutConfig

ROWS, CONTEXT, RATE = 2, 256, 4e-4


def build_ours(rate: float):
    """A function that takes one step with our parts, and the number of its parameters."""
    gpt2 = get_preset("gpt2")
    config = replace(
        gpt2,
        context_length=CONTEXT,
        tied_head=False,
        attention=replace(gpt2.attention, qkv_bias=False),
        dropout=DropoutConfig(embedding=rate, attention=rate, residual=rate),
    )
    model = build_decoder(config, torch.Generator().manual_seed(123))
    optimiser = build_optimiser(model, OptimiserConfig(learning_rate=RATE))
    generator = torch.Generator().manual_seed(5) if rate else None

    def step(inputs, targets):
        optimiser.zero_grad()
        logits = model(inputs, generator=generator)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        clip_gradients(model, 1.0)
        optimiser.step(RATE)
        return loss.item()

    return step, sum(p.numel() for p in model.parameters())


def build_theirs(rate: float):
    """The same of the package, as its own training loop does it."""
    from llms_from_scratch.ch04 import GPTModel

    settings = {
        "vocab_size": 50_257,
        "context_length": CONTEXT,
        "emb_dim": 768,
        "n_heads": 12,
        "n_layers": 12,
        "drop_rate": rate,
        "qkv_bias": False,
    }
    torch.manual_seed(123)  # the package draws from the process-wide generator
    model = GPTModel(settings)
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.1)

    def step(inputs, targets):
        optimiser.zero_grad()
        logits = model(inputs)
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
        loss.backward()
        optimiser.step()
        return loss.item()

    return step, sum(p.numel() for p in model.parameters())


def timed(step, batch) -> float:
    start = time.perf_counter()
    step(*batch)
    return time.perf_counter() - start


def show_profile(name: str, step, batch) -> None:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as found:
        step(*batch)
    print(f"\n{name}")
    print(found.key_averages().table(sort_by="self_cpu_time_total", row_limit=14))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--profile", action="store_true")
    asked = parser.parse_args()
    torch.set_num_threads(2)
    ids = torch.randint(0, 50_257, (ROWS, CONTEXT + 1), generator=torch.Generator().manual_seed(7))
    batch = (ids[:, :-1], ids[:, 1:])
    (ours, n_ours), (theirs, n_theirs) = build_ours(asked.dropout), build_theirs(asked.dropout)
    assert n_ours == n_theirs, (n_ours, n_theirs)
    for step in (ours, theirs):  # the first step makes the state of AdamW
        print(f"loss before the first step: {step(*batch):.3f}")
    seconds: dict[str, list[float]] = {"ours": [], "llms-from-scratch": []}
    for _ in range(asked.steps):
        seconds["ours"].append(timed(ours, batch))
        seconds["llms-from-scratch"].append(timed(theirs, batch))
    rates = {name: ROWS * CONTEXT / statistics.median(times) for name, times in seconds.items()}
    for name, rate in rates.items():
        spread = ", ".join(f"{s:.2f}" for s in seconds[name])
        print(f"{name:20} {rate:7.1f} tokens/s   steps of {spread} s")
    print(f"{'ratio':20} {rates['ours'] / rates['llms-from-scratch']:7.2f}")
    if asked.profile:
        show_profile("ours", ours, batch)
        show_profile("llms-from-scratch", theirs, batch)


if __name__ == "__main__":
    main()
