"""`python -m explorer.train`: runs made and trained without a page, and what it refuses."""

import sys
from types import SimpleNamespace

import pytest

from explorer.train import main
from explorer.training.event_log import read_events
from explorer.training.events import Finished, Started, Step
from explorer.training.initial_weights import same_shape
from explorer.training.run_folder import RunFolder
from models.loading import load_model
from tests.explorer.training.run_cases import TEXT, make_tiny_run

SMALL = ["--steps", "2", "--context", "8", "--batch-size", "2"]


def only_run(folder):
    (path,) = folder.iterdir()
    return RunFolder(path)


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def test_a_run_is_made_and_trained_from_one_line(text, tmp_path, capsys):
    runs = tmp_path / "runs"
    words = ["--new", "mine", "--text", str(text), "--style", "gpt", "--runs", str(runs), *SMALL]
    assert main(words) == 0
    run = only_run(runs)
    config = run.read_config()
    assert (config.name, config.n_steps, config.data.context) == ("mine", 2, 8)
    assert config.model.positions == "learned"
    assert isinstance(read_events(run.events_file)[-1], Finished)
    assert str(run.path) in capsys.readouterr().err
    assert load_model(run.checkpoint(2)).tokenizer.encode("Ada")


def test_a_run_from_a_model_has_its_architecture_weights_and_tokenizer(text, tmp_path):
    first = make_tiny_run(tmp_path / "first", n_steps=1)
    assert main([str(first.path)]) == 0
    source = first.checkpoint(1)
    runs = tmp_path / "runs"
    words = ["--new", "on", "--text", str(text), "--from", str(source), "--runs", str(runs), *SMALL]
    assert main(words) == 0
    run, before = only_run(runs), load_model(source)
    begun = load_model(run.checkpoint(0))
    assert same_shape(begun.config, before.config)
    for name, tensor in before.model.state_dict().items():
        assert tensor.equal(begun.model.state_dict()[name]), name
    assert begun.tokenizer.encode(TEXT[:50]) == before.tokenizer.encode(TEXT[:50])


def test_a_run_that_was_stopped_goes_on_when_it_is_called_again(tmp_path):
    run = make_tiny_run(tmp_path, n_steps=2)
    run.ask("stop")
    assert main([str(run.path)]) == 0
    assert read_events(run.events_file)[-1].reason == "done"


@pytest.mark.parametrize(
    ("content", "words", "found"),
    [
        (b"\x00\x01\x02\x03" * 99, [], "is no text"),
        (b"Ada has a map.", [], "choose a longer text"),
        (TEXT.encode(), ["--learning-rate", "0"], "learning_rate=0"),
        (TEXT.encode(), ["--learning-rate", "nan"], "learning_rate=nan"),
        (TEXT.encode(), ["--size", "huge"], "huge"),
        (TEXT.encode(), ["--from", "/nowhere/at/all"], "nowhere"),
    ],
)
def test_what_cannot_be_used_ends_in_words_and_leaves_no_run(
    content, words, found, text, tmp_path, capsys
):
    text.write_bytes(content)
    runs = tmp_path / "runs"
    arguments = ["--new", "x", "--text", str(text), "--runs", str(runs), *SMALL, *words]
    assert main(arguments) == 2
    said = capsys.readouterr().err
    assert found in said
    assert "Traceback" not in said
    assert not runs.exists() or list(runs.iterdir()) == []


def test_a_folder_that_is_no_run_is_refused(tmp_path, capsys):
    assert main([str(tmp_path)]) == 2
    assert "it is no run" in capsys.readouterr().err


@pytest.mark.parametrize("words", [[], ["--warm", "x"], ["--new", "x"], ["x", "--text", "y"]])
def test_options_that_do_not_go_together_are_refused(words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


@pytest.mark.slow
def test_a_run_that_goes_on_says_so(tmp_path):
    run = make_tiny_run(tmp_path, n_steps=2)
    assert main([str(run.path)]) == 0
    assert main([str(run.path)]) == 0
    started = [e for e in read_events(run.events_file) if isinstance(e, Started)]
    assert [e.step for e in started] == [0, 2]


@pytest.mark.slow
def test_the_numbers_of_a_run_are_written_for_other_programs(tmp_path, monkeypatch, capsys):
    run = make_tiny_run(tmp_path / "run", n_steps=2)
    assert main([str(run.path)]) == 0
    events = read_events(run.events_file)
    csv, folder = tmp_path / "metrics.csv", tmp_path / "board"
    sent = []
    stand_in = SimpleNamespace(
        init=lambda **said: sent.append(said),
        log=lambda metrics, step: sent.append((step, metrics.get("loss"))),
        finish=lambda: sent.append("end"),
    )
    monkeypatch.setitem(sys.modules, "trackio", stand_in)
    words = ["--csv", str(csv), "--tensorboard", str(folder), "--trackio", "lessons"]
    assert main([str(run.path), *words]) == 0
    assert csv.read_text(encoding="utf-8").count("\n") == 1 + 3  # steps 0, 1, 2
    (file,) = folder.iterdir()
    assert file.name.startswith("events.out.tfevents")
    losses = [event.loss for event in events if isinstance(event, Step)]
    begun, *rows, end = sent
    assert (begun["project"], begun["name"]) == ("lessons", run.title)
    assert begun["config"]["data.context"] == str(run.read_config().data.context)
    assert [loss for _, loss in rows if loss is not None] == losses
    assert end == "end"
    assert read_events(run.events_file) == events  # nothing was trained
    monkeypatch.setitem(sys.modules, "trackio", None)
    assert main([str(run.path), "--trackio", "lessons"]) == 2
    assert "pip install trackio" in capsys.readouterr().err
    assert main([str(tmp_path / "none"), "--csv", str(csv)]) == 2
