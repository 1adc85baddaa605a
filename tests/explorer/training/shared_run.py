"""What each of several processes does in `test_distributed.py`; started by torchrun.

torchrun --nproc-per-node 2 tests/explorer/training/shared_run.py FOLDER
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch.nn import functional

from explorer.training.distributed import (
    Processes,
    average,
    connect,
    disconnect,
    gather_full_state,
    hear_first,
    set_gradient_exchange,
    wrap_model,
)
from explorer.training.ema import WeightAverage
from explorer.training.optimisers import build_optimiser, clip_gradients
from explorer.training.run_config import OptimiserConfig
from models.config import MoeConfig
from tests.explorer.training.tiny_models import GPT, LLAMA, build_tiny, draw_ids

MODELS = {
    "gpt": GPT,
    "llama": LLAMA,
    "moe": replace(LLAMA, moe=MoeConfig(n_experts=5, n_active=1, d_ff=28, normalise_weights=False)),
}
CASES = (
    ("gpt", "ddp", "adamw"),
    ("gpt", "fsdp", "adamw"),
    ("llama", "ddp", "muon"),
    ("llama", "fsdp", "muon"),
    ("moe", "ddp", "adamw"),
)
RATE, CLIP, DECAY, N_STEPS, N_PASSES = 1e-2, 1.0, 0.8, 3, 2
# Biases of keys change no softmax: their gradients are rounding alone, which a small epsilon would
# divide by itself.
EPS = 1e-4


def batch_of(step: int, part: int) -> torch.Tensor:
    """Rows of one pass: 4, of 9 tokens."""
    return draw_ids(4, 9, seed=10 * step + part)


def loss_of(model, ids: torch.Tensor) -> torch.Tensor:
    logits = model(ids[:, :-1])
    return functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())


def train(case: tuple[str, str, str], folder: Path, processes: Processes) -> dict[str, object]:
    """Three steps of two passes each; before the last, all state goes through a file."""
    name, shared_by, kind = case
    model = build_tiny(MODELS[name])
    wrapped = wrap_model(model, processes, shared_by)
    config = OptimiserConfig(kind=kind, eps=EPS)
    optimiser, mean = build_optimiser(model, config), WeightAverage(model, DECAY)
    losses, norms, gradients = [], [], None
    for step in range(N_STEPS):
        if step == N_STEPS - 1:
            path = folder / f"{'-'.join(case)}.state"
            state = (optimiser.state_dict(), mean.state_dict())
            state = {"optimiser": state[0], "mean": state[1]}
            whole = gather_full_state(state, processes)
            if processes.is_first:
                torch.save(whole, path)
            hear_first(0, processes)  # all wait until it is there
            read = torch.load(path, weights_only=True)
            optimiser, mean = build_optimiser(model, config), WeightAverage(model, DECAY)
            optimiser.load_state_dict(read["optimiser"])
            mean.load_state_dict(read["mean"])
        optimiser.zero_grad()
        total = 0.0
        for part in range(N_PASSES):
            set_gradient_exchange(wrapped, part == N_PASSES - 1)
            loss = loss_of(wrapped, processes.take_rows(batch_of(step, part))) / N_PASSES
            loss.backward()
            total += float(loss.detach())
        losses.append(average(total, processes))
        if gradients is None:
            found = {n: p.grad for n, p in model.named_parameters() if p.grad is not None}
            gradients = {n: g.clone() for n, g in gather_full_state(found, processes).items()}
        norms.append(float(clip_gradients(model, CLIP)))
        optimiser.step(RATE)
        mean.update()
    return {
        "losses": losses,
        "norms": norms,
        "gradients": gradients,
        "weights": gather_full_state(model.state_dict(), processes),
        "mean": gather_full_state(mean.state_dict(), processes),
        "heard": hear_first(41 + processes.rank, processes),
    }


def main(folder: Path) -> None:
    processes = connect("cpu")
    results = {"-".join(case): train(case, folder, processes) for case in CASES}
    torch.save(results, folder / f"rank-{processes.rank}.pt")
    disconnect(processes)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
