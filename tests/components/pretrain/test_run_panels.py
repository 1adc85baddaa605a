"""The panels of runs: live, list, owners, comparison, windows."""

import shlex
import subprocess
import sys

import pytest
from gradio_client.exceptions import AppError

from components.context import Settings
from components.model_bar import ModelBarHandlers
from components.tabs.pretrain.live import ACTIONS as BUTTON_ORDER
from components.tabs.pretrain.run_choice import parse_run_id
from components.tabs.pretrain.run_handlers import ACTIONS, BUTTONS, RunHandlers
from components.text import LOCALES, load_words
from explorer.errors import JobError, SourceError, TokenizerError
from explorer.jobs.run_states import RunState
from explorer.runs import Runs
from explorer.store import ModelStore
from explorer.training.plan import compute_plan
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.run_snippets import (
    EVALUATION_MODULE,
    evaluation_file,
    make_run_snippet,
)
from explorer.training.setup import RunSetup
from tests.components.pretrain.page_calls import ROOT, event, run_snippet
from tests.components.run_folders import folder_of, make_run, write_events


def test_every_state_has_words_and_buttons():
    words = load_words()
    for state in RunState.__args__:
        assert words.has(f"pretrain.state.{state}")
        assert set(BUTTONS[state]) <= set(ACTIONS)
    assert BUTTON_ORDER == ACTIONS


def test_every_breakage_part_and_error_word_exists():
    words = load_words()
    from explorer.training.architectures import Breakage

    for breakage in Breakage.__args__:
        assert words.has(f"pretrain.watch.{breakage}")
    for style in ("gpt", "moe", "mla", "gemma3"):
        for part in compute_plan(RunSetup(style=style)).parts:
            assert words.has(f"pretrain.part.{part}")
    assert len(LOCALES) == 2


def test_a_run_is_read_renamed_and_deleted_by_its_id(client, home, trained):
    assert trained in [run["id"] for run in client.predict(api_name="/pretrain_runs")]
    found = client.predict(trained, api_name="/pretrain_run")
    assert (found["state"], found["step"], len(found["losses"])) == ("finished", 3, 3)
    other = make_run(home)
    renamed = client.predict(other, "  a new\n name ", api_name="/pretrain_rename")
    assert renamed["name"] == "a new name"
    assert client.predict(other, api_name="/pretrain_delete") is True
    assert not folder_of(home, other).path.exists()
    with pytest.raises(AppError, match="not there"):
        client.predict(other, api_name="/pretrain_run")


def test_the_page_opens_with_the_run_of_the_address_then_the_last_then_the_newest(
    ctx, home, trained, nobody
):
    on, newest = RunHandlers(ctx), make_run(home)
    assert on.visit(trained, newest, None, nobody)[-3] == trained
    assert on.visit("", trained, None, nobody)[-3] == trained
    assert on.visit("gone" * 6, "gone" * 6, None, nobody)[-3] == newest
    Runs(home).delete(newest, "local")


def test_buttons_and_table_follow_the_run(ctx, home, nobody):
    run_id = make_run(home)
    write_events(home, run_id, 40)
    values = RunHandlers(ctx).show(run_id, None, nobody)
    listed, live, *rest = values
    buttons, opened, facts, table, exports = rest[:5], *rest[5:9]
    assert live == {"run": run_id}
    assert listed["selected"] == run_id
    assert [button.visible for button in buttons] == [False] * 5
    assert opened.visible is False  # events alone, no checkpoint
    view = Runs(home).view(run_id)
    assert [cells[1:] for cells in table["cells"]] == [
        [e.training_loss, e.validation_loss] for e in view.evaluated
    ]
    assert (ROOT / facts["file"]).exists()
    assert exports["csv"]
    lines = run_snippet(make_run_snippet(run_id), home)
    assert [float(line.split()[-1]) for line in lines] == [
        e.validation_loss for e in view.evaluated
    ]
    Runs(home).delete(run_id, "local")


@pytest.mark.slow
@pytest.mark.parametrize("line", [0, 1])
def test_a_command_that_the_page_shows_trains_its_run(ctx, home, nobody, line):
    run_id = make_run(home)
    *_, drawer, said, _, _, _ = RunHandlers(ctx).show(run_id, None, nobody)
    assert drawer.visible
    program, *words = shlex.split(said.splitlines()[1 + line])
    module = {"python": [], "torchrun": ["-m", "torch.distributed.run", "--standalone"]}[program]
    done = subprocess.run(
        [sys.executable, *module, *words], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert Runs(home).view(run_id).summary.state == "finished"
    Runs(home).delete(run_id, "local")


def test_the_file_of_the_losses_is_where_they_are_computed():
    from explorer.snippets import source_file_of
    from explorer.training.evaluate import compute_mean_loss

    assert compute_mean_loss.__module__ == EVALUATION_MODULE
    assert evaluation_file() == source_file_of(compute_mean_loss)


def test_another_visitor_may_watch_by_the_link_and_change_nothing(home, trained, nobody):
    from gradio import Blocks

    from components.context import build_context

    mine = make_run(home, owner="me")
    write_events(home, mine, 20)
    with Blocks():
        ctx = build_context(
            ModelStore(runs=home / RUNS_FOLDER, budget_bytes=10**9, public=True),
            Settings(public=True),
            runs=Runs(home, public=True),
        )
    on = RunHandlers(ctx)
    values = on.show(mine, "somebody", nobody)
    assert values[1] == {"run": mine}
    assert not any(button.visible for button in values[2:7])
    assert str(home) not in values[-4]  # the commands name no path of the host
    with pytest.raises(JobError, match="another browser"):
        on.remove(mine, "somebody", event(run=mine), nobody)
    assert on.visit("", None, "somebody", nobody)[1] is None  # not in his list
    assert on.visit("", None, "me", nobody)[1] == {"run": mine}
    Runs(home).delete(mine, "me")


@pytest.mark.parametrize("text", ["", "a/b", "../x", "x" * 41, "ü" * 20])
def test_an_address_without_an_id_is_left_out(text):
    with pytest.raises(ValueError, match="no id"):
        parse_run_id(text)


def test_a_checkpoint_is_called_by_the_name_of_its_run_everywhere(ctx, trained):
    source = f"run:{trained}@3"
    assert ctx.store.tokenizer(source, "local").name == "small one @ 3"
    assert ModelBarHandlers(ctx, None)._name(source) == "small one @ 3"
    with pytest.raises(SourceError, match="small one @ 99 is no checkpoint"):
        ctx.store.tokenizer(f"run:{trained}@99", "local")
    with ctx.store.lease(source, "local") as loaded:
        assert loaded.tokenizer.name == "small one @ 3"
        with pytest.raises(TokenizerError, match="small one @ 3 has no token for"):
            loaded.tokenizer.encode("\N{SNOWMAN}")


def test_the_tensorboard_file_of_a_run_is_sent(page, trained):
    import io
    import urllib.request
    import zipfile

    url = f"{page[0]}glassbox/run/{trained}/tensorboard.zip"
    with urllib.request.urlopen(url) as answer:
        packed = zipfile.ZipFile(io.BytesIO(answer.read()))
    (name,) = [name for name in packed.namelist() if "tfevents" in name]
    assert b"gradient_norm" in packed.read(name)


def test_what_is_of_another_kind_is_refused_in_plain_words(client, trained):
    with pytest.raises(AppError, match="keep='yes' is not true or false; give one"):
        client.predict(trained, "yes", api_name="/pretrain_stop")
