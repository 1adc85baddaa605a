"""A real process killed at any moment: the run ends as if nothing had happened."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from explorer.training.event_log import read_events
from explorer.training.events import Evaluated, Finished, Sampled, Saved, Started, Step
from explorer.training.run_config import ScheduleConfig
from models.loading import load_model
from tests.explorer.training.run_cases import make_tiny_run, tiny_config

ROOT = Path(__file__).parents[3]
N_STEPS = 150


def start(run):
    return subprocess.Popen(
        [sys.executable, "-m", "explorer.train", str(run.path)],
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def make_run(folder):
    """Saves in every step, so that most kills come in the middle of a checkpoint."""
    watch = replace(tiny_config(30).watch, save_every=1, evaluate_every=10, sample_every=25, keep=4)
    return make_tiny_run(
        folder,
        n_steps=N_STEPS,
        watch=watch,
        n_threads=1,
        ema_decay=0.9,
        schedule=ScheduleConfig(kind="wsd", warmup_steps=3),
    )


def numbers(run):
    found = []
    for event in read_events(run.events_file):
        if isinstance(event, Step | Evaluated | Sampled | Saved):
            values = {**vars(event), "at": 0, "duration_s": 0}
            if "n_bytes" in values:  # an archive is padded to 64 bytes by the length of its names
                values["n_bytes"] = 0
            found.append((type(event).__name__, values))
    return found


def count_steps(run):
    return run.events_file.read_bytes().count(b'"kind": "step"') if run.events_file.exists() else 0


def wait_for_a_step(run, process):
    """Until the process has taken a step, so that each kill finds it at work."""
    before = count_steps(run)
    while process.poll() is None and count_steps(run) == before:
        time.sleep(0.01)


@pytest.mark.slow
def test_ten_kills_at_random_moments_leave_no_trace_in_curve_and_weights(tmp_path):
    draw = random.Random(6)
    whole, killed = make_run(tmp_path / "whole"), make_run(tmp_path / "killed")
    assert start(whole).wait() == 0
    for _ in range(10):
        process = start(killed)
        wait_for_a_step(killed, process)
        time.sleep(draw.uniform(0, 0.25))
        process.kill()
        assert process.wait() == -signal.SIGKILL, "it was over before ten kills; give it more steps"
    last = start(killed)
    assert last.wait() == 0, last.stderr.read().decode()
    events = read_events(killed.events_file)
    assert isinstance(events[-1], Finished)
    lines = [json.loads(x) for x in killed.events_file.read_text().splitlines() if x[-1:] == "}"]
    started = [line for line in lines if line["kind"] == "started"]
    assert len(started) == 11
    assert all(line["lost_steps"] <= 1 for line in started)  # the one that was being saved
    assert sum(isinstance(e, Started) for e in events) == 11
    assert numbers(killed) == numbers(whole)
    assert killed.checkpoint_steps() == whole.checkpoint_steps()
    one, other = (load_model(r.checkpoint(N_STEPS)).model.state_dict() for r in (killed, whole))
    assert all(torch.equal(tensor, other[name]) for name, tensor in one.items())
    assert not [path.name for path in killed.path.glob(".unfinished*")]
    assert not killed.lock_file.exists()
