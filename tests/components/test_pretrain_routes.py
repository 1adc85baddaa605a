"""What a page that watches a run asks for: small, cached, and nothing without the id."""

import csv
import io
import json
import zipfile

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from components.run_routes import RunRoutes
from explorer.errors import JobError
from explorer.runs import Runs
from tests.components.run_folders import make_run, train_in_process, write_events

LONG = 20_000


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def long_run(home):
    run_id = make_run(home, n_steps=LONG)
    write_events(home, run_id, LONG)
    return run_id


@pytest.fixture(scope="module")
def client(home):
    return TestClient(Starlette(routes=RunRoutes(Runs(home)).routes()))


def test_an_answer_of_a_long_run_is_small_and_keeps_the_spike(client, long_run):
    answer = client.get(f"/glassbox/run/{long_run}?since=0&starts=0")
    assert len(answer.content) < 20_000
    progress = answer.json()
    assert progress["have"] == LONG
    assert progress["state"] == "finished"
    points = progress["points"]
    assert max(points["losses"]) > 6  # one step in 20,000
    assert points["steps"] == sorted(points["steps"])
    assert {len(column) for column in points.values()} == {len(points["steps"])}


def test_only_what_is_new_is_sent(client, long_run):
    progress = client.get(f"/glassbox/run/{long_run}?since={LONG - 3}&starts=1").json()
    assert progress["points"]["steps"] == [LONG - 2, LONG - 1, LONG]
    assert progress["reset"] is False


def test_a_page_of_an_earlier_beginning_is_told_to_begin_anew(client, long_run):
    assert client.get(f"/glassbox/run/{long_run}?since=50&starts=7").json()["reset"] is True


def test_a_class_that_asks_the_same_question_costs_one_reading(home, long_run, monkeypatch):
    runs, asked = Runs(home), []
    monkeypatch.setattr(runs, "progress", lambda *given: asked.append(given) or {"step": 1})
    routes = RunRoutes(runs)
    answers = {routes.answer(long_run, 16, 1) for _ in range(10)}
    assert len(asked) == 1
    assert len(answers) == 1
    routes.answer(long_run, 32, 1)
    assert len(asked) == 2


def test_answers_kept_do_not_grow_without_end(home, monkeypatch):
    runs = Runs(home)
    monkeypatch.setattr(runs, "progress", lambda *given: {})
    routes = RunRoutes(runs)
    for since in range(200):
        routes.answer("x", since, 0)
    assert len(routes._answers) == 64


@pytest.mark.parametrize(
    "path",
    ["0123456789abcdef01234567", "..%2f..%2fetc", "0123456789abcdef01234567/metrics.csv"],
)
def test_who_has_no_id_learns_nothing(client, path):
    answer = client.get(f"/glassbox/run/{path}")
    assert answer.status_code == 404
    assert "root" not in answer.text


@pytest.mark.parametrize("query", ["since=x", "starts=1.5"])
def test_a_question_that_is_none_is_refused(client, long_run, query):
    assert client.get(f"/glassbox/run/{long_run}?{query}").status_code == 400


def test_all_numbers_can_be_taken_away(client, home):
    run_id = make_run(home)
    write_events(home, run_id, 30)
    text = client.get(f"/glassbox/run/{run_id}/metrics.csv").text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) >= 30


@pytest.mark.slow
def test_a_checkpoint_is_packed_and_the_file_removed(client, home, tmp_path, monkeypatch):
    run_id = make_run(home)
    train_in_process(home, run_id)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answer = client.get(f"/glassbox/run/{run_id}/step-3.zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as packed:
        names = {name.rpartition("/")[2] for name in packed.namelist()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert list(tmp_path.iterdir()) == []
    assert client.get(f"/glassbox/run/{run_id}/step-2000.zip").status_code == 404


def test_routes_raise_what_runs_raise(home):
    with pytest.raises(JobError):
        RunRoutes(Runs(home)).answer("no-such-run", 0, 0)


def test_the_page_serves_the_routes(client, long_run):
    assert json.loads(client.get(f"/glassbox/run/{long_run}").content)["n_steps"] == LONG


def test_errors_have_words_for_the_page(client):
    error = client.get("/glassbox/run/0123456789abcdef01234567").json()
    assert error["code"] == "run-missing"
    assert "not there" in error["error"]
