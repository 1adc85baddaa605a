"""Folders of runs that somebody edited, or that an earlier version wrote."""

import json
import shutil
import socket

import pytest

from explorer.errors import JobError
from explorer.runs import Runs
from explorer.training.run_folder import RunFolder, make_run_id
from tests.explorer.training.run_cases import make_tiny_run


@pytest.fixture
def make_runs(tmp_path):
    made = []

    def make(**options):
        made.append(Runs(tmp_path, **options))
        return made[-1]

    yield make
    for runs in made:
        runs._keeper.close()


@pytest.fixture
def runs(make_runs):
    return make_runs()


def add_run(tmp_path):
    return make_tiny_run(tmp_path / "runs")


def refusal_of(look, run_id):
    """What a look at a run is refused with, or None; anything but words is a fault."""
    try:
        look(run_id)
    except JobError as error:
        return error.message
    return None


EDITS = {
    "config.json": ["", "[]", "null", "{", '{"format": 1}', '{"format": 99}', "\x00"],
    "about.json": ["", "[]", "{", '{"created_at": "x"}', '{"created_at": NaN}', '{"name": []}'],
    "control.json": ["", "[]", "{", '{"action": 3}', '{"action": "fly"}', '"run"'],
    "lock.json": [
        "", "[]", '{"host": 1}', '{"host": "HOST", "pid": -5, "started_at": 0}',
        '{"host": "HOST", "pid": 1e400, "started_at": 0}',
        '{"host": "HOST", "pid": 99999999999999999999, "started_at": 0}',
    ],
    "events.jsonl": [
        "[]\n{\n\x00\n", '{"kind": []}\n', '{"kind": "step", "step": "x", "at": 1}\n',
        '{"kind": "sampled", "step": 1, "at": 1, "prompt": "", "text": "", "copied": null}\n',
        '{"kind": "sampled", "step": 1, "at": 1, "prompt": "", "text": "", "copied": [3]}\n',
        '{"kind": "saved", "step": 1e30, "at": 1, "folder": "", "n_bytes": 1, "duration_s": 1}\n',
        '{"kind": "finished", "step": -1, "at": null, "reason": 7}\n',
    ],
}  # fmt: skip


def test_a_folder_edited_by_hand_gives_words_and_leaves_the_others(runs, tmp_path):
    host = socket.gethostname()
    good = add_run(tmp_path)
    first = add_run(tmp_path)
    for name, content in ((n, c) for n in EDITS for c in EDITS[n]):
        bad = RunFolder(shutil.copytree(first.path, tmp_path / "runs" / make_run_id()))
        (bad.path / name).write_text(content.replace("HOST", host), encoding="utf-8")
        assert good.id in [summary.id for summary in runs.list("ann")]
        looks = (runs.view, runs.progress, runs.exports.metrics_csv)
        said = [refusal_of(look, bad.id) for look in looks]
        assert all(name in words for words in said if words is not None), (name, content)
        runs.delete(bad.id, "ann")
        assert not bad.path.exists()


def test_a_broken_run_is_listed_and_can_be_deleted(runs, make_runs, tmp_path):
    for name in ("about.json", "config.json"):
        run = add_run(tmp_path)
        (run.path / name).write_text("{", encoding="utf-8")
        (listed,) = runs.list("ann")
        assert (listed.id, listed.state) == (run.id, "broken")
        assert make_runs(public=True).list("ann") == ()
        runs.delete(run.id, "ann")
        assert runs.list("ann") == ()
        assert not run.path.exists()


def test_messages_call_a_run_by_its_name(runs, tmp_path):
    run = add_run(tmp_path)
    runs.rename(run.id, "My first run", "ann")
    told = []
    for act in (runs.pause, runs.stop, lambda i, _owner: runs.checkpoint_source(i, 9)):
        with pytest.raises(JobError) as refused:
            act(run.id, "ann")
        told.append(refused.value.message)
    run.config_file.write_text("[]", encoding="utf-8")
    told.append(refusal_of(Runs(tmp_path).view, run.id))  # as another app sees it
    assert all("My first run" in words and run.id not in words for words in told), told


def test_a_run_of_before_a_setting_opens_with_its_default(runs, tmp_path):
    run = add_run(tmp_path)
    values = json.loads(run.config_file.read_text(encoding="utf-8"))
    config = run.read_config()
    del values["balance_weight"], values["watch"]["keep"], values["model"]["residual"]
    run.config_file.write_text(json.dumps(values), encoding="utf-8")
    assert run.read_config() == config
    assert config.balance_weight == 0.01
    for part, key in (("", "n_steps"), ("model", "d_model"), ("data", "context")):
        holder = json.loads(json.dumps(values))
        del (holder[part] if part else holder)[key]
        run.config_file.write_text(json.dumps(holder), encoding="utf-8")
        with pytest.raises(JobError, match=key):
            run.read_config()
    run.config_file.write_text(json.dumps({**values, "balance": 1}), encoding="utf-8")
    with pytest.raises(JobError, match="'balance'"):
        run.read_config()
