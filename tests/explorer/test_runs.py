"""Runs as the page uses them: made, watched, changed by their owner alone, edited by hand."""

import dataclasses
import json
import zipfile

import numpy as np
import pytest

from explorer.errors import ConfigError, DataError, JobError
from explorer.runs import Runs
from explorer.training.event_log import EventLog
from explorer.training.events import Evaluated, Finished, Started, Step
from explorer.training.run_folder import RunFolder
from explorer.training.run_lock import hold_lock
from explorer.training.setup import RunSetup
from models.loading import load_model
from tests.explorer.run_workers import use_threads, wait_until
from tests.explorer.training.run_cases import TEXT, make_tiny_run

SETUP = RunSetup(context=8, batch_size=2, n_steps=4)


@pytest.fixture
def threads(monkeypatch):
    return use_threads(monkeypatch)


@pytest.fixture
def make_runs(tmp_path, threads):
    made = []

    def make(**options):
        made.append(Runs(tmp_path, **options))
        return made[-1]

    yield make
    threads[0].set()
    for runs in made:
        runs._keeper.close()


@pytest.fixture
def runs(make_runs):
    return make_runs()


def add_run(tmp_path, owner="ann", **changes):
    run = make_tiny_run(tmp_path / "runs", **changes)
    run.write_about({**run.read_about(), "owner": owner})
    return run


def state_of(runs, run_id):
    return runs.view(run_id).summary.state


def write_events(run, n_steps, *, started=True):
    fake = {"at": 1.0, "tokens": 0}
    with EventLog(run.events_file) as log:
        if started:
            log.append(make_started(0))
        for step in range(1, n_steps + 1):
            loss = 4 / step + step % 7 / 9
            log.append(
                Step(
                    **{**fake, "step": step, "tokens": 8192 * step}, epoch=step / 9, loss=loss,
                    learning_rate=1 / (step + 300), gradient_norm=loss / 3, duration_s=0.01,
                )
            )  # fmt: skip
            if step % 50 == 0:
                losses = {"training_loss": loss, "validation_loss": loss + 0.1}
                log.append(Evaluated(**fake, step=step, **losses, duration_s=0.1))


def make_started(step, **changes):
    values = dict(
        n_steps=20_000, n_parameters=9, n_training_tokens=9, n_validation_tokens=9,
        tokens_per_step=64, steps_per_epoch=9, flops_per_token=1e3, peak_flops_per_s=1e9,
        device="cpu",
    )  # fmt: skip
    return Started(step=step, at=1.0, **{**values, **changes})


def test_a_run_from_the_form_to_its_end(runs, threads, tmp_path):
    threads[0].set()
    *before, ready = runs.create(SETUP, "ann")
    assert [step.what for step in before][:2] == ["tokenizer", "tokens"]
    run_id = ready.run_id
    assert state_of(runs, run_id) == "prepared"
    runs.start(run_id, "ann")
    wait_until(lambda: state_of(runs, run_id) == "finished")
    view = runs.view(run_id)
    assert view.steps.tolist() == [1, 2, 3, 4]
    assert view.tokens.tolist() == [16, 32, 48, 64]
    assert np.isfinite(view.losses).all()
    assert view.summary.step == view.summary.n_steps == 4
    assert view.samples[-1].step == 4
    assert [summary.id for summary in runs.list("ann")] == [run_id]
    runs.rename(run_id, "  my \n run ", "ann")
    assert runs.view(run_id).summary.name == "my run"
    with pytest.raises(JobError, match="write one"):
        runs.rename(run_id, " ", "ann")
    step = view.summary.checkpoints[-1]
    assert runs.checkpoint_source(run_id, step) == f"run:{run_id}@{step}"
    with pytest.raises(JobError, match="no checkpoint of step 99"):
        runs.checkpoint_source(run_id, 99)
    assert runs.exports.metrics_csv(run_id).count("\n") > 4
    with zipfile.ZipFile(runs.exports.tensorboard(run_id, tmp_path)) as packed:
        (file,) = packed.namelist()[-1:]
        assert file.startswith(f"glassbox-{run_id[:8]}/events.out.tfevents")
        assert b"validation_loss" in packed.read(file)
    runs.delete(run_id, "ann")
    assert runs.list("ann") == ()
    with pytest.raises(JobError, match="not there"):
        runs.view(run_id)


def test_an_archive_opens_like_any_model(runs, tmp_path, threads):
    threads[0].set()
    run = add_run(tmp_path, n_steps=2)
    runs.start(run.id, "ann")
    wait_until(lambda: state_of(runs, run.id) == "finished")
    path = runs.exports.checkpoint(run.id, 2, tmp_path)
    with zipfile.ZipFile(path) as packed:
        assert not [name for name in packed.namelist() if name.endswith("training.pt")]
        packed.extractall(tmp_path / "opened")
    (folder,) = {p.parent for p in (tmp_path / "opened").rglob("config.json")}
    weights = load_model(folder).model.state_dict()
    for name, tensor in load_model(run.checkpoint(2)).model.state_dict().items():
        assert tensor.equal(weights[name]), name


@pytest.mark.slow
def test_pause_resume_and_stop_and_keep_while_it_trains(runs, tmp_path, threads):
    threads[0].set()
    run = add_run(tmp_path, n_steps=100_000)
    runs.start(run.id, "ann")
    wait_until(lambda: runs.view(run.id).summary.step > 2)
    runs.pause(run.id, "ann")
    wait_until(lambda: state_of(runs, run.id) == "paused")
    with pytest.raises(JobError, match="stop it before"):
        runs.delete(run.id, "ann")
    step = runs.view(run.id).summary.step
    assert runs.view(run.id).summary.checkpoints[-1] == step
    runs.resume(run.id, "ann")
    wait_until(lambda: runs.view(run.id).summary.step > step)
    runs.stop_and_keep(run.id, "ann")
    wait_until(lambda: state_of(runs, run.id) == "stopped")
    summary = runs.view(run.id).summary
    assert summary.checkpoints[-1] == summary.step
    runs.resume(run.id, "ann")
    wait_until(lambda: runs.view(run.id).summary.step > summary.step)
    runs.stop(run.id, "ann")
    wait_until(lambda: state_of(runs, run.id) == "stopped")
    with pytest.raises(JobError, match="does not train now"):
        runs.pause(run.id, "ann")


def test_a_run_stopped_before_it_began_is_as_before_start(runs, tmp_path):
    run = add_run(tmp_path)
    runs.start(run.id, "ann")
    assert state_of(runs, run.id) == "queued"
    runs.stop(run.id, "ann")
    assert state_of(runs, run.id) == "prepared"


def test_a_visitor_of_a_public_host_watches_by_id_and_changes_only_his_own(make_runs, tmp_path):
    runs = make_runs(public=True)
    run = add_run(tmp_path, owner="ann")
    assert [s.id for s in runs.list("ann")] == [run.id]
    assert runs.list("bob") == runs.list("") == ()
    assert runs.view(run.id).summary.id == run.id
    assert runs.progress(run.id)["state"] == "prepared"
    assert runs.owns(run.id, "ann")
    assert not runs.owns(run.id, "bob")
    for change in (
        runs.start, runs.pause, runs.resume, runs.stop, runs.stop_and_keep, runs.delete,
        lambda run_id, owner: runs.rename(run_id, "his", owner),
    ):  # fmt: skip
        with pytest.raises(JobError, match="another browser"):
            change(run.id, "bob")


@pytest.mark.parametrize("run_id", ["", "..", "a/b", "../../etc", "x" * 24])
def test_an_id_that_is_none_is_not_there(runs, run_id):
    with pytest.raises(JobError, match="not there"):
        runs.view(run_id)


def test_a_run_whose_process_is_gone_is_interrupted_and_says_what_was_lost(runs, tmp_path, threads):
    threads[0].set()
    run = add_run(tmp_path)
    write_events(run, 3)
    assert state_of(runs, run.id) == "interrupted"
    runs.resume(run.id, "ann")
    wait_until(lambda: state_of(runs, run.id) == "finished")
    assert runs.view(run.id).lost_steps == 3
    assert runs.view(run.id).steps.tolist() == list(range(1, 14))


def test_progress_gives_what_is_new_and_begins_anew_after_a_crash(runs, tmp_path):
    run = add_run(tmp_path)
    write_events(run, 6)
    first = runs.progress(run.id)
    assert (first["have"], first["n_starts"], first["reset"]) == (6, 1, True)
    again = runs.progress(run.id, since=4, n_starts=1)
    assert (again["points"]["steps"], again["reset"]) == ([5, 6], False)
    with EventLog(run.events_file) as log:
        log.append(make_started(2, lost_steps=4))
    after = runs.progress(run.id, since=6, n_starts=1)
    assert (after["reset"], after["have"], after["lost_steps"]) == (True, 2, 4)


@pytest.mark.slow
def test_twenty_thousand_steps_are_told_in_less_than_20_kb(runs, tmp_path):
    run = add_run(tmp_path)
    write_events(run, 20_000)
    answer = runs.progress(run.id)
    assert len(json.dumps(answer)) < 20_000
    assert answer["have"] == 20_000
    steps = answer["points"]["steps"]
    assert steps == sorted(steps)
    assert steps[0] < 200
    assert steps[-1] > 19_800


def test_differences_name_the_settings(runs, tmp_path):
    one, other = add_run(tmp_path, seed=3), add_run(tmp_path, seed=5)
    assert ("seed", ("3", "5")) in runs.differences([one.id, other.id])


def test_an_events_file_that_was_cut_is_read_anew(runs, tmp_path):
    run = add_run(tmp_path)
    write_events(run, 9)
    assert runs.view(run.id).summary.step == 9
    lines = run.events_file.read_bytes().splitlines(keepends=True)
    run.events_file.write_bytes(b"".join(lines[:4]))
    assert runs.view(run.id).steps.tolist() == [1, 2, 3]
    run.events_file.unlink()
    run.events_file.mkdir()
    with pytest.raises(JobError, match=r"events\.jsonl"):
        runs.view(run.id)


def test_time_in_a_pause_is_no_part_of_what_is_left(runs, tmp_path):
    run = add_run(tmp_path)
    with EventLog(run.events_file) as log:
        for at, step in ((0.0, 1), (1.0, 2), (5_000.0, 3), (5_001.0, 4), (5_002.0, 5)):
            if step in (1, 3):
                log.append(dataclasses.replace(make_started(step - 1), at=at, n_steps=10))
            log.append(
                Step(
                    step=step, at=at, epoch=0, tokens=step, loss=1.0, learning_rate=1.0,
                    gradient_norm=1.0, duration_s=1.0,
                )
            )  # fmt: skip
    assert runs.view(run.id).seconds_left == pytest.approx(5.0)


def test_a_text_larger_than_allowed_is_refused_by_its_size(make_runs, tmp_path):
    path = tmp_path / "large.txt"
    with path.open("wb") as file:
        file.truncate(3 * 10**9)  # a sparse file: no bytes are written, none may be read
    with pytest.raises(DataError) as refused:
        list(make_runs().create(dataclasses.replace(SETUP, text=str(path)), "ann"))
    assert refused.value.code == "data-too-large"


@pytest.mark.parametrize(
    ("content", "changes", "code"),
    [
        (b"\x00\xff\x01" * 50, {}, "data-binary"),
        (b"", {}, "data-text-empty"),
        (b"Ada has a map.", {"context": 64}, "run-text-short"),
        (TEXT.encode()[:450], {"context": 100}, "run-no-validation"),
        (TEXT.encode(), {"learning_rate": 0.0}, "run-setting"),
        (TEXT.encode(), {"learning_rate": float("nan")}, "run-setting"),
        (TEXT.encode(), {"learning_rate": float("inf")}, "run-setting"),
        (TEXT.encode(), {"n_steps": 0}, "run-setting"),
        (TEXT.encode(), {"tokenizer": "bpe", "vocab_size": 20}, "run-vocabulary"),
    ],
)
def test_bad_input_is_refused_before_there_is_a_run(runs, tmp_path, content, changes, code):
    path = tmp_path / "text.txt"
    path.write_bytes(content)
    with pytest.raises((ConfigError, DataError)) as refused:
        list(runs.create(dataclasses.replace(SETUP, text=str(path), **changes), "ann"))
    assert refused.value.code == code
    assert runs.list("ann") == ()


def test_tokens_beyond_the_vocabulary_fail_the_run_in_words(runs, tmp_path, threads):
    threads[0].set()
    run = add_run(tmp_path)
    tokens = run.tokens_file("training")
    ids = np.load(tokens)
    ids[5] = 999
    np.save(tokens, ids)
    runs.start(run.id, "ann")
    wait_until(lambda: state_of(runs, run.id) == "failed")
    assert "token 999" in runs.view(run.id).failed.message


def test_a_run_that_another_process_trains_is_working(runs, tmp_path):
    run = add_run(tmp_path)
    with hold_lock(run.lock_file):
        assert state_of(runs, run.id) == "running"
        runs.start(run.id, "ann")  # nothing to do
        assert runs.progress(run.id)["place"] is None
    assert isinstance(RunFolder(run.path).read_about(), dict)
    with EventLog(run.events_file) as log:
        log.append(make_started(0))
        log.append(Finished(step=3, at=2.0, reason="done"))
    assert state_of(runs, run.id) == "finished"
