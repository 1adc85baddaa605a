"""The same run by one process and, under torchrun, by two: one curve."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from explorer.training.event_log import read_events
from explorer.training.events import Evaluated, Finished, Saved, Started, Step
from explorer.training.loop import train
from models.config import DropoutConfig
from tests.explorer.training.run_cases import make_tiny_run

ROOT = Path(__file__).parents[3]


def make_quiet_run(folder):
    """Without dropout, whose draws are each process's own."""
    run = make_tiny_run(folder, ema_decay=0.9)
    config = run.read_config()
    run.write_config(replace(config, model=replace(config.model, dropout=DropoutConfig())))
    return run


def train_shared(run, shared_by):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
        + ["-m", "explorer.train", str(run.path), "--shared-by", shared_by],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return read_events(run.events_file)


def curve(events):
    return [e.loss for e in events if isinstance(e, Step)] + [
        e.validation_loss for e in events if isinstance(e, Evaluated)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("shared_by", ["ddp", "fsdp"])
def test_two_processes_give_the_curve_of_one_within_1e_5(tmp_path, shared_by):
    alone = list(train(make_quiet_run(tmp_path / "alone").path))
    run = make_quiet_run(tmp_path / "shared")
    shared = train_shared(run, shared_by)
    assert next(e for e in shared if isinstance(e, Started)).n_processes == 2
    assert curve(shared) == pytest.approx(curve(alone), abs=1e-5)
    assert [e.step for e in shared if isinstance(e, Saved)] == [0, 5, 10, 13]


@pytest.mark.slow
@pytest.mark.parametrize("shared_by", ["ddp", "fsdp"])
def test_a_shared_run_goes_on_from_a_checkpoint_of_one_process(tmp_path, shared_by):
    alone = list(train(make_quiet_run(tmp_path / "alone").path))
    run = make_quiet_run(tmp_path / "shared")
    events = train(run.path)
    for event in events:
        if isinstance(event, Saved) and event.step == 5:
            break
    events.close()
    shared = train_shared(run, shared_by)
    assert isinstance(shared[-1], Finished)
    assert curve(shared) == pytest.approx(curve(alone), abs=1e-5)
