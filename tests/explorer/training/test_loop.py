"""The training loop against torch and against itself: resumed, accumulated, recomputed, failing."""

import json
import shutil
from dataclasses import replace

import pytest
import torch
from torch.nn import functional

from explorer.errors import ConfigError, JobError
from explorer.training.event_log import read_events
from explorer.training.events import (
    Evaluated,
    Failed,
    Finished,
    Paused,
    Resumed,
    Sampled,
    Saved,
    Started,
    Step,
)
from explorer.training.loop import train
from explorer.training.run_config import DataConfig, OptimiserConfig, ScheduleConfig
from models.initialise import build_decoder
from models.loading import load_model
from tests.explorer.training.run_cases import make_tiny_run, tiny_config


def numbers(events):
    """What must be equal in two runs: everything but times and folders' sizes."""
    return [
        (type(e).__name__, e.step, getattr(e, "loss", None), getattr(e, "gradient_norm", None))
        + (getattr(e, "validation_loss", None), getattr(e, "text", None))
        for e in events
        if isinstance(e, Step | Evaluated | Sampled)
    ]


def weights_of(run, step):
    return load_model(run.checkpoint(step)).model.state_dict()


def assert_equal_weights(one, other):
    assert one.keys() == other.keys()
    for name, tensor in one.items():
        assert torch.equal(tensor, other[name]), name


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that was never interrupted, and its events."""
    run = make_tiny_run(tmp_path_factory.mktemp("runs"))
    return run, list(train(run.path))


def test_events_come_in_order_and_stand_in_the_file(whole):
    run, events = whole
    assert isinstance(events[0], Started)
    assert isinstance(events[-1], Finished)
    assert events[-1].reason == "done"
    assert [e.step for e in events if isinstance(e, Step)] == list(range(1, 14))
    assert [e.step for e in events if isinstance(e, Evaluated)] == [0, 4, 8, 12, 13]
    assert [e.step for e in events if isinstance(e, Saved)] == [0, 5, 10, 13]
    assert [e.step for e in events if isinstance(e, Sampled)] == [0, 8, 13]
    assert read_events(run.events_file) == events


def test_losses_equal_a_plain_loop_of_torch(whole, tmp_path):
    """The same weights and windows, dropout off, torch.optim.AdamW written out."""
    config = tiny_config(30)
    quiet = replace(config.model, dropout=type(config.model.dropout)())
    run = make_tiny_run(tmp_path, model=replace(quiet, vocab_size=len_vocabulary(whole)), n_steps=6)
    config = run.read_config()
    found = [e.loss for e in train(run.path) if isinstance(e, Step)]

    import numpy as np

    ids = torch.from_numpy(np.load(run.tokens_file("training")).astype(np.int64))
    n_windows = len(range(0, len(ids) - 16, 16))
    generator = torch.Generator().manual_seed(config.seed)
    torch.empty((), dtype=torch.int64).random_(generator=generator)
    seed = int(torch.empty((), dtype=torch.int64).random_(generator=generator))
    order = torch.randperm(n_windows, generator=torch.Generator().manual_seed(seed))
    model = build_decoder(config.model, torch.Generator().manual_seed(config.seed))
    decayed = [p for p in model.parameters() if p.ndim >= 2]
    kept = [p for p in model.parameters() if p.ndim < 2]
    optimiser = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": 0.1}, {"params": kept, "weight_decay": 0.0}],
        betas=(0.9, 0.95),
        eps=1e-8,
    )
    expected = []
    for step in range(6):
        rows = [ids[int(i) * 16 : int(i) * 16 + 17] for i in order[step * 4 : step * 4 + 4]]
        block = torch.stack(rows)
        loss = functional.cross_entropy(model(block[:, :-1]).flatten(0, 1), block[:, 1:].flatten())
        expected.append(loss.item())
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        share = (step + 1) / 2 if step < 2 else 0.0
        if step >= 2:
            share = 0.1 + 0.9 * 0.5 * (
                1 + float(torch.cos(torch.tensor(torch.pi * (step - 2) / 4)))
            )
        for group in optimiser.param_groups:
            group["lr"] = 3e-3 * share
        optimiser.step()
    assert found == pytest.approx(expected, rel=2e-5)


def len_vocabulary(whole):
    return whole[0].read_config().model.vocab_size


@pytest.mark.parametrize("stop_at", [1, 5, 7, 12])
def test_a_resumed_run_equals_one_that_never_stopped_bit_for_bit(whole, tmp_path, stop_at):
    run = make_tiny_run(tmp_path)
    events = train(run.path)
    for event in events:
        if isinstance(event, Step) and event.step == stop_at:
            break
    events.close()
    list(train(run.path))
    assert numbers(read_events(run.events_file)) == numbers(whole[1])
    assert_equal_weights(weights_of(run, 13), weights_of(whole[0], 13))


def test_what_was_lost_in_a_crash_is_computed_again_and_said(whole, tmp_path):
    run = make_tiny_run(tmp_path)
    first = train(run.path)
    for event in first:
        if isinstance(event, Step) and event.step == 9:
            break
    # killed: the newest checkpoint is that of step 5, the lock is left, half a line is written
    first.gi_frame.f_locals["log"]._file.flush()
    content = run.events_file.read_bytes()
    first.close()
    import shutil

    shutil.rmtree(run.checkpoint(9))
    run.events_file.write_bytes(content + b'{"kind": "step", "st')
    started = next(e for e in train_all(run) if isinstance(e, Started))
    assert (started.step, started.lost_steps) == (5, 4)
    assert numbers(read_events(run.events_file)) == numbers(whole[1])


def train_all(run):
    return list(train(run.path))


@pytest.mark.slow
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(whole, tmp_path):
    run = make_tiny_run(tmp_path)
    stop_after(run, 10)
    weights = run.checkpoint(10) / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    started = train_all(run)[0]
    assert (started.step, started.damaged) == (5, ("step-00000010",))
    assert numbers(read_events(run.events_file)) == numbers(whole[1])


@pytest.mark.slow
def test_a_file_of_no_length_makes_a_checkpoint_be_passed_over(tmp_path):
    """As a power cut leaves files that were never flushed; each of the files in turn."""
    run = make_tiny_run(tmp_path)
    stop_after(run, 10)
    for path in sorted(run.checkpoint(10).iterdir()):
        content = path.read_bytes()
        path.write_bytes(b"")
        events = train(run.path)
        started = next(events)
        events.close()
        assert (started.step, started.damaged) == (5, ("step-00000010",)), path.name
        (run.path / "aside-step-00000010").rename(run.checkpoint(10))
        path.write_bytes(content)
    assert train_all(run)[0].step == 10


@pytest.mark.slow
def test_a_checkpoint_of_another_architecture_is_passed_over(whole, tmp_path):
    run = make_tiny_run(tmp_path)
    stop_after(run, 10)
    other = make_tiny_run(
        tmp_path / "other", model=replace(run.read_config().model, layer_types=("full",) * 3)
    )
    stop_after(other, 10)
    shutil.rmtree(run.checkpoint(10))
    shutil.copytree(other.checkpoint(10), run.checkpoint(10))
    assert train_all(run)[0].damaged == ("step-00000010",)


def stop_after(run, step):
    events = train(run.path)
    for event in events:
        if isinstance(event, Saved) and event.step == step:
            break
    events.close()


@pytest.mark.slow
def test_eight_passes_of_one_window_equal_one_pass_of_eight(tmp_path):
    quiet = {"n_steps": 5, "optimiser": OptimiserConfig(learning_rate=1e-3)}
    losses = []
    for batch_size, accumulate in ((8, 1), (1, 8)):
        data = DataConfig(context=16, batch_size=batch_size, accumulate=accumulate)
        run = make_tiny_run(tmp_path / str(batch_size), data=data, **quiet)
        config = run.read_config()
        run.write_config(replace(config, model=replace(config.model, dropout=no_dropout(config))))
        losses.append([e.loss for e in train(run.path) if isinstance(e, Step)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


def no_dropout(config):
    return type(config.model.dropout)()


def test_recomputed_activations_give_the_same_run_bit_for_bit(whole, tmp_path):
    run = make_tiny_run(tmp_path, recompute=True)
    assert numbers(train(run.path)) == numbers(whole[1])


@pytest.mark.slow
def test_evaluations_and_samples_do_not_touch_the_training(whole, tmp_path):
    watch = replace(tiny_config(30).watch, evaluate_every=1, sample_every=1, save_every=1)
    run = make_tiny_run(tmp_path, watch=watch)
    steps = [e.loss for e in train(run.path) if isinstance(e, Step)]
    assert steps == [e.loss for e in whole[1] if isinstance(e, Step)]


def test_fewer_steps_than_every_interval_still_show_start_and_end(tmp_path):
    watch = replace(tiny_config(30).watch, evaluate_every=99, sample_every=99, save_every=99)
    run = make_tiny_run(tmp_path, watch=watch, n_steps=3)
    events = train_all(run)
    assert [e.step for e in events if isinstance(e, Evaluated)] == [0, 3]
    assert run.checkpoint_steps() == (0, 3)


def test_a_loss_that_is_not_finite_ends_the_run_and_names_step_and_tensor(tmp_path, monkeypatch):
    from explorer.training import loop

    run = make_tiny_run(tmp_path)
    real, calls = loop.take_step, []

    def poisoned(state, *rest):
        calls.append(state.step)
        if state.step == 6:
            with torch.no_grad():
                state.model.blocks[1].ffn.up_proj.weight[3, 2] = float("nan")
        return real(state, *rest)

    monkeypatch.setattr(loop, "take_step", poisoned)
    *_, failed = train_all(run)
    assert isinstance(failed, Failed)
    assert failed.code == "run-not-finite"
    assert failed.tensor == "blocks.1.ffn.up_proj.weight"
    assert "step 7" in failed.message
    lines = [json.loads(line) for line in run.events_file.read_text().splitlines()]
    assert all(line["loss"] is not None for line in lines if line["kind"] == "step")


@pytest.mark.slow
def test_before_a_loss_that_is_not_finite_the_good_weights_are_saved(tmp_path, monkeypatch):
    from explorer.training import loop

    run = make_tiny_run(tmp_path)
    real = loop.take_step

    def explode(state, config, compute, rate):
        factor = float("inf") if state.step == 6 else 1.0
        return real(state, config, lambda *given: compute(*given) * factor, rate)

    monkeypatch.setattr(loop, "take_step", explode)
    *_, saved, failed = train_all(run)
    assert (saved.step, failed.step, failed.last_good) == (6, 6, "step-00000006")
    monkeypatch.undo()
    assert isinstance(train_all(run)[-1], Finished)
    whole = make_tiny_run(tmp_path / "whole")
    assert numbers(read_events(run.events_file)) == numbers(train_all(whole))


def test_a_huge_learning_rate_fails_with_finite_weights_kept(tmp_path):
    run = make_tiny_run(
        tmp_path,
        optimiser=OptimiserConfig(learning_rate=100.0, clip_norm=None),
        schedule=ScheduleConfig(kind="constant"),
        n_steps=60,
    )
    events = train_all(run)
    last = run.checkpoint_steps()[-1]
    assert all(torch.isfinite(tensor).all() for tensor in weights_of(run, last).values())
    assert isinstance(events[-1], Finished | Failed)


def test_pause_resume_stop_and_keep_act_between_steps(whole, tmp_path):
    run = make_tiny_run(tmp_path)
    seen = []
    for event in train(run.path):
        seen.append(event)
        if isinstance(event, Step) and event.step == 3:
            run.ask("pause")
        if isinstance(event, Paused):
            run.ask("run")
        if isinstance(event, Step) and event.step == 6:
            run.ask("keep")
    kinds = [type(e) for e in seen]
    assert kinds.index(Paused) + 1 == kinds.index(Resumed)
    assert seen[kinds.index(Paused)].step == 3
    assert (seen[-1].reason, seen[-1].step) == ("kept", 6)
    assert run.checkpoint_steps()[-1] == 6
    run.ask("run")
    list(train(run.path))
    assert numbers(read_events(run.events_file)) == numbers(whole[1])


def test_stop_leaves_the_last_checkpoint_as_it_was(tmp_path):
    run = make_tiny_run(tmp_path)
    for event in train(run.path):
        if isinstance(event, Step) and event.step == 7:
            run.ask("stop")
    assert (event.reason, event.step) == ("stopped", 7)
    assert run.checkpoint_steps() == (0, 5)


def test_a_run_whose_folder_is_deleted_ends(tmp_path):
    run = make_tiny_run(tmp_path)
    n_steps = 0
    for event in train(run.path):
        if isinstance(event, Step):
            n_steps += 1
            if event.step == 3:
                shutil.rmtree(run.path)
    assert n_steps == 3
    assert not run.path.exists()


def test_two_processes_on_one_run_are_refused(tmp_path):
    run = make_tiny_run(tmp_path)
    first = train(run.path)
    next(first)
    with pytest.raises(JobError, match="works on this run already"):
        next(train(run.path))
    first.close()
    assert not run.lock_file.exists()


def test_a_full_disk_fails_the_run_and_keeps_the_last_checkpoint(tmp_path, monkeypatch):
    import errno

    from explorer.training import checkpoint

    run = make_tiny_run(tmp_path)
    real = checkpoint.flush_files

    def full(folder):
        if "00000010" in folder.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(folder)

    monkeypatch.setattr(checkpoint, "flush_files", full)
    failed = train_all(run)[-1]
    assert (failed.code, failed.last_good) == ("run-disk-full", "step-00000005")
    assert run.checkpoint_steps() == (0, 5)
    assert not list(run.path.glob(".unfinished*"))
    monkeypatch.undo()
    assert isinstance(train_all(run)[-1], Finished)


def test_a_text_shorter_than_the_context_is_refused_with_numbers(tmp_path):
    with pytest.raises(ConfigError, match="needs 17"):
        make_tiny_run(tmp_path, "Ada has a map.")
    assert list(tmp_path.iterdir()) == []


def test_a_configuration_edited_by_hand_is_refused_by_name(tmp_path):
    run = make_tiny_run(tmp_path)
    values = json.loads(run.config_file.read_text())
    values["optimiser"]["learning_rate"] = -1
    run.config_file.write_text(json.dumps(values))
    with pytest.raises(JobError, match="learning_rate"):
        train_all(run)
    run.config_file.write_text("{")
    with pytest.raises(JobError, match="config.json"):
        train_all(run)


@pytest.mark.slow
def test_the_average_of_the_weights_is_what_evaluations_read(tmp_path):
    run = make_tiny_run(tmp_path, ema_decay=0.5, n_steps=8)
    stop_after(run, 5)
    events = train_all(run)
    plain = make_tiny_run(tmp_path / "plain", n_steps=8)
    other = train_all(plain)
    assert [e.loss for e in read_events(run.events_file) if isinstance(e, Step)] == [
        e.loss for e in other if isinstance(e, Step)
    ]
    assert events[-3:] != other[-3:]
