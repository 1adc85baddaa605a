"""Two processes that share a run give what one gives alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from explorer.errors import JobError
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
from tests.explorer.training.shared_run import (
    CASES,
    CLIP,
    EPS,
    MODELS,
    N_PASSES,
    N_STEPS,
    RATE,
    batch_of,
    loss_of,
    train,
)
from tests.explorer.training.tiny_models import build_tiny

ROOT = Path(__file__).parents[3]
NAMES = ["-".join(case) for case in CASES]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> list[dict]:
    """What two processes under torchrun found, by rank."""
    folder = tmp_path_factory.mktemp("shared")
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        + [str(ROOT / "tests/explorer/training/shared_run.py"), str(folder)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [torch.load(folder / f"rank-{rank}.pt", weights_only=True) for rank in (0, 1)]


def assert_close(found: dict, expected: dict) -> None:
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, atol=1e-6, rtol=1e-5, msg=name)


def assert_near(found: dict, expected: dict) -> None:
    """For Muon, which computes in bfloat16: another order of sums is seen in the third digit.

    Measured 2.3e-4 in root mean square; each of the three updates moves weights by 2e-3.
    """
    assert set(found) == set(expected)
    for name, tensor in expected.items():
        assert float((found[name] - tensor).square().mean().sqrt()) < 5e-4, name


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_two_processes_follow_one(shared: list[dict], case, tmp_path: Path) -> None:
    expected = train(case, tmp_path, Processes())
    first, second = (found["-".join(case)] for found in shared)
    is_muon = case[2] == "muon"
    close = {"abs": 1e-4 if is_muon else 1e-6}  # Muon: measured 3.8e-5
    assert first["losses"] == second["losses"] == pytest.approx(expected["losses"], **close)
    assert first["norms"] == pytest.approx(expected["norms"], rel=1e-3 if is_muon else 1e-5)
    assert first["heard"] == second["heard"] == 41
    assert_close(first["gradients"], expected["gradients"])
    compare = assert_near if is_muon else assert_close
    compare(first["weights"], expected["weights"])
    compare(first["mean"]["weights"], expected["mean"]["weights"])
    assert all(tensor.numel() == 0 for tensor in second["weights"].values())


@pytest.mark.slow
@pytest.mark.parametrize("shared_by", ["ddp", "fsdp"])
def test_two_processes_follow_a_plain_loop(shared: list[dict], shared_by: str) -> None:
    """The reference is PyTorch alone: one process, its AdamW and its clipping."""
    model = build_tiny(MODELS["gpt"])
    groups = [
        {"params": [p for p in model.parameters() if p.ndim >= 2], "weight_decay": 0.1},
        {"params": [p for p in model.parameters() if p.ndim < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.95), eps=EPS)
    losses = []
    for step in range(N_STEPS):
        adamw.zero_grad()
        loss = sum(loss_of(model, batch_of(step, part)) for part in range(N_PASSES)) / N_PASSES
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        adamw.step()
        losses.append(float(loss.detach()))
    found = shared[0][f"gpt-{shared_by}-adamw"]
    assert found["losses"] == pytest.approx(losses, abs=1e-6)
    assert_close(found["weights"], dict(model.state_dict()))


def test_a_process_alone_waits_for_nobody() -> None:
    alone = connect("cpu", {})
    assert alone == Processes(rank=0, world=1, local_rank=0, device_type="cpu")
    assert alone.is_first
    model = build_tiny()
    assert wrap_model(model, alone, "fsdp") is model
    set_gradient_exchange(model, False)
    assert average(2.5, alone) == 2.5
    assert hear_first(7, alone) == 7
    weights = gather_full_state({"a": model.state_dict(), "n": 3}, alone)
    assert weights["n"] == 3
    assert torch.equal(weights["a"]["embed.weight"], model.embed.weight)
    disconnect(alone)
    assert connect("mps", {"WORLD_SIZE": "1"}).device == torch.device("mps")


def test_rows_are_shared_without_a_rest() -> None:
    batch = torch.arange(12).reshape(6, 2)
    parts = [Processes(rank=rank, world=3).take_rows(batch) for rank in range(3)]
    assert torch.equal(torch.cat(parts), batch)
    assert [len(part) for part in parts] == [2, 2, 2]
    with pytest.raises(JobError, match="batch of 6 windows.*multiple of 4"):
        Processes(world=4).take_rows(batch)


def test_an_incomplete_environment_is_named() -> None:
    said = {"WORLD_SIZE": "2", "RANK": "1", "MASTER_ADDR": "localhost"}
    with pytest.raises(JobError, match="LOCAL_RANK, MASTER_PORT not; start it with torchrun"):
        connect("cpu", said)
    whole = {**said, "LOCAL_RANK": "1", "MASTER_PORT": "1"}
    with pytest.raises(JobError, match="'mps' takes one process; choose cpu or cuda"):
        connect("mps", whole)


def test_experts_are_not_cut() -> None:
    with pytest.raises(JobError, match="fsdp does not go with experts; choose ddp"):
        wrap_model(build_tiny(MODELS["moe"]), Processes(world=2), "fsdp")
