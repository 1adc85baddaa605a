"""The Pretrain tab through its API and handlers: counts, runs, checkpoints, comparison, by hand."""

import math
import subprocess
import sys
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError

from components.context import Settings
from components.launch import Endpoint, launch_page
from components.shell import build_page
from components.tabs.pretrain.by_hand_handlers import STAGES, ByHandHandlers
from components.tabs.pretrain.checkpoint_handlers import CheckpointHandlers, Look
from components.tabs.pretrain.compare import CompareHandlers
from components.tabs.pretrain.live import ACTIONS as BUTTON_ORDER
from components.tabs.pretrain.run_choice import parse_run_id
from components.tabs.pretrain.run_handlers import ACTIONS, BUTTONS, RunHandlers
from components.tabs.pretrain.setup_handlers import SetupHandlers
from components.text import LOCALES, load_words
from explorer.checkpoint_sources import find_checkpoint
from explorer.errors import ConfigError, ExplorerError, JobError, SourceError
from explorer.jobs.run_states import RunState
from explorer.runs import Runs
from explorer.store import ModelStore
from explorer.training.by_hand import FIRST_NET, TinySettings, take_tiny_step
from explorer.training.plan import compute_plan
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.run_snippets import (
    EVALUATION_MODULE,
    evaluation_file,
    make_compare_snippet,
    make_plan_snippet,
    make_run_snippet,
)
from explorer.training.setup import RunSetup
from models import generate
from models.sampling import SamplingConfig
from tests.components.run_folders import folder_of, make_run, train_in_process, write_events

ROOT = Path(__file__).parent.parent.parent
FORM = {"context": 16, "batch_size": 2, "n_steps": 3}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def trained(home):
    """A run of three steps, with the checkpoints 0 to 3."""
    run_id = make_run(home, name="small one")
    train_in_process(home, run_id)
    return run_id


@pytest.fixture(scope="module")
def page(home):
    store = ModelStore(runs=home / RUNS_FOLDER, budget_bytes=10**9)
    demo, ctx = build_page(store, Settings(), runs=Runs(home))
    url = launch_page(
        demo, ctx, Endpoint("127.0.0.1", 0), server_port=None, prevent_thread_lock=True, quiet=True
    )
    yield url, ctx
    demo.close(verbose=False)


@pytest.fixture(scope="module")
def client(page):
    return Client(page[0], verbose=False)


@pytest.fixture
def ctx(page):
    return page[1]


@pytest.fixture
def nobody():
    return gr.Request()


def event(**data):
    return gr.EventData(None, data)


def run_snippet(code, home):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"GLASSBOX_HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# ------------------------------------------------------------------------------------- setup
def test_the_form_counts_what_the_model_has(ctx, nobody):
    on = SetupHandlers(ctx, None, None)
    count, bars, _watch, facts, table, exports = on.plan(None, None, nobody, RunSetup())
    plan = compute_plan(RunSetup())
    assert "743" in count
    assert sum(bar["value"] for bar in bars["bars"]) == plan.n_parameters == facts["shape"][0]
    assert [int(cells[0].replace(",", "")) for cells in table["cells"]] == list(plan.parts.values())
    shown = ctx.routes.find(exports["csv"]).cells[:, 0]
    np.testing.assert_array_equal(shown, list(plan.parts.values()))


def test_its_snippet_gives_the_same_numbers(home):
    setup = RunSetup(style="gpt", size="small", context=64)
    plan = compute_plan(setup)
    first, *parts = run_snippet(make_plan_snippet(setup), home)
    assert first == f"{plan.n_parameters} {plan.tokens} {plan.operations}"
    assert parts == [f"{name} {count}" for name, count in plan.parts.items()]


def test_a_size_fills_in_settings_and_keeps_what_it_does_not_decide(ctx):
    on = SetupHandlers(ctx, None, None)
    from components.tabs.pretrain.setup_handlers import REFILLED

    filled = dict(zip(REFILLED, on.refill("124m", "classic"), strict=True))
    assert (filled["style"], filled["tokenizer"], filled["epochs"]) == ("gpt", "gpt2", 10.0)
    assert "text" not in filled
    assert "name" not in filled


@pytest.mark.parametrize(
    ("changes", "remedy"),
    [
        ({"learning_rate": 0.0}, "above 0"),
        ({"learning_rate": -1.0}, "above 0"),
        ({"learning_rate": 1000.0}, "at most 100"),
        ({"n_steps": 0}, "at least 1"),
        ({"context": 100_000}, "shorter context"),
        ({"style": "bert"}, "choose gpt"),
        ({"text": "/etc/passwd"}, "choose village"),
        ({"text": "../../README.md"}, "choose village"),
        ({"tokenizer": "bpe", "vocab_size": 3}, "choose 257"),
    ],
)
def test_a_run_that_cannot_be_is_refused_with_a_remedy(client, home, changes, remedy):
    before = set((home / RUNS_FOLDER).glob("*"))
    with pytest.raises(AppError, match=remedy):
        client.predict(**{**FORM, **changes}, api_name="/pretrain_start")
    assert set((home / RUNS_FOLDER).glob("*")) == before


def _begin(ctx, home, content, nobody, name="mine.txt"):
    path = home / name
    path.write_bytes(content)
    runs = RunHandlers(ctx)
    setup = RunSetup(**FORM, text="upload")
    return list(SetupHandlers(ctx, None, runs).begin(str(path), None, nobody, setup))


@pytest.mark.parametrize(
    ("content", "remedy"),
    [
        (b"short", "choose a longer text|longer text"),
        (b"\x00\x01\x02" * 500, "plain text file"),
        (b"\xff\xfe" + "a b c".encode("utf-16-le"), "UTF-8"),
        (b"", "has no text"),
        (b"caf\xe9 " * 500, "UTF-8"),
    ],
)
def test_a_text_that_cannot_be_used_is_refused_and_leaves_nothing(
    ctx, home, content, remedy, nobody
):
    before = set((home / RUNS_FOLDER).glob("*"))
    with pytest.raises(ExplorerError, match=remedy):
        _begin(ctx, home, content, nobody)
    assert set((home / RUNS_FOLDER).glob("*")) == before


def test_a_huge_upload_is_refused_by_its_size_before_it_is_read(ctx, home, nobody):
    path = home / "huge.txt"
    with path.open("wb") as file:
        file.truncate(3 * 10**9)  # takes no room on the disk
    setup = RunSetup(**FORM, text="upload")
    with pytest.raises(ExplorerError, match="3.00 GB|3 GB|3.0 GB"):
        list(SetupHandlers(ctx, None, RunHandlers(ctx)).begin(str(path), None, nobody, setup))


def test_an_upload_that_is_not_there_yet_is_asked_for(ctx, nobody):
    on = SetupHandlers(ctx, None, None)
    with pytest.raises(ConfigError, match="no file was uploaded"):
        on.plan(None, None, nobody, RunSetup(text="upload"))


# -------------------------------------------------------------------------------------- runs
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
    with pytest.raises(JobError, match="another browser"):
        on.remove(mine, "somebody", event(run=mine), nobody)
    assert on.visit("", None, "somebody", nobody)[1] is None  # not in his list
    assert on.visit("", None, "me", nobody)[1] == {"run": mine}
    Runs(home).delete(mine, "me")


@pytest.mark.parametrize("text", ["", "a/b", "../x", "x" * 41, "ü" * 20])
def test_an_address_without_an_id_is_left_out(text):
    with pytest.raises(ValueError, match="no id"):
        parse_run_id(text)


# ------------------------------------------------------------------------------- checkpoints
def test_a_checkpoint_opens_like_any_model_and_writes_what_it_would(client, ctx, home, trained):
    source = f"run:{trained}@3"
    with ctx.store.lease(source, "local") as loaded:
        ids = loaded.tokenizer.encode("Ada")
        greedy = SamplingConfig(temperature=0.0)
        tokens = list(generate(loaded.model, ids, max_new_tokens=8, sampling=greedy))
        expected = loaded.tokenizer.decode([token.id for token in tokens])
    found = client.predict(trained, 3, "Ada", 8, api_name="/pretrain_sample")
    assert found == {"source": source, "text": expected}
    assert ctx.store.summary(source, "local").name == "small one @ 3"


@pytest.mark.parametrize("n_tokens", [0, 501])
def test_a_sample_of_no_length_is_refused(client, trained, n_tokens):
    with pytest.raises(AppError, match="choose 1 to 500"):
        client.predict(trained, 3, "Ada", n_tokens, api_name="/pretrain_sample")


@pytest.mark.parametrize(
    "source",
    ["run:x@1", "run:{id}@2000", "run:{id}", "run:../../x@0", "run:0123456789abcdef01234567@0"],
)
def test_what_is_no_checkpoint_is_refused(home, trained, source):
    with pytest.raises(SourceError, match="choose another one"):
        find_checkpoint(home / RUNS_FOLDER, source.format(id=trained))


def test_the_scrubber_shows_what_the_checkpoint_computes(ctx, trained, nobody):
    on = CheckpointHandlers(ctx)
    entered = on.enter(Look(), trained, "", None, nobody)[-1]
    values = on.read(entered, trained, "Ada lives", None, nobody)
    place, stepper, prompt, written, opened, layer, *_rest, look = values
    assert prompt == "Ada lives"
    assert stepper == {"index": 3, "count": 4}
    assert "small one" in place
    assert written.startswith(prompt)
    assert opened.visible
    with ctx.store.lease(f"run:{trained}@3", "local") as loaded:
        from models import Trace

        trace = Trace(record=("blocks.2.attn.pattern",))
        loaded.model(torch.tensor([loaded.tokenizer.encode(prompt)]), trace=trace)
        pattern = trace["blocks.2.attn.pattern"][0, 0].numpy()
    assert layer["index"] == 2
    cells = ctx.routes.find(look.shown.matrix_id).cells
    np.testing.assert_allclose(cells, pattern, atol=1e-5)
    first = on.step(look, trained, prompt, None, event(index=0), nobody)
    assert first[-1].step == 0
    assert first[1]["index"] == 0
    assert on.open(first[-1]) == f"run:{trained}@0"
    # a new checkpoint of the run does not take away what is looked at
    again = on.follow(first[-1], trained, prompt, None, nobody)
    assert again[1] == {"index": 0, "count": 4}
    assert again[-1].step == 0


def test_before_the_first_checkpoint_the_scrubber_says_so(ctx, home, nobody):
    run_id = make_run(home)
    values = CheckpointHandlers(ctx).enter(Look(), run_id, "", None, nobody)
    assert "not there yet" in values[0]
    assert CheckpointHandlers(ctx).enter(Look(), None, "", None, nobody)[1]["count"] == 0
    Runs(home).delete(run_id, "local")


def test_maps_of_a_model_without_a_mask_show_all_of_it(ctx, home, nobody):
    run_id = make_run(home, breakage="no_mask", n_steps=1)
    train_in_process(home, run_id)
    *_, big, _facts, _table, _exports, look = CheckpointHandlers(ctx).enter(
        Look(), run_id, "", None, nobody
    )
    assert big["value"]["causal"] is False
    cells = ctx.routes.find(look.shown.matrix_id).cells
    assert (cells[0, 1:] > 0).all()
    np.testing.assert_allclose(cells.sum(axis=1), 1, atol=1e-5)
    Runs(home).delete(run_id, "local")


# ---------------------------------------------------------------------------- compare, windows
def test_runs_are_compared_with_what_differs_in_their_settings(client, ctx, home, trained, nobody):
    other = make_run(home, dropout=0.25, name="other")
    write_events(home, other, 30)
    found = client.predict([trained, other], api_name="/pretrain_compare")
    assert found["differences"]["model.dropout.attention"] == ["0.0", "0.25"]
    assert "model.d_model" not in found["differences"]
    assert found["validation"][1][0] == [3, pytest.approx(2 + 4 * 0.16)]
    on = CompareHandlers(ctx)
    message, _said, table, _facts, lowest, exports = on.show(
        [trained, other], "validation", False, True, nobody
    )
    assert '"name": "small one"' in message
    assert '"type": "log"' in message
    assert len(message) < 20_000
    row = table["rows"].index("model.dropout.attention")
    assert table["cells"][row] == ["0.0", "0.25"]
    assert lowest["cells"][1] == [2.0, "15", 3.0]
    lines = run_snippet(make_compare_snippet([trained, other]), home)
    assert "model.dropout.attention 0.0 0.25" in lines
    assert ctx.routes.find(exports["csv"]).cells.shape[1] == 2
    Runs(home).delete(other, "local")


def test_one_run_or_none_is_no_error(ctx, trained, nobody):
    on = CompareHandlers(ctx)
    assert "second run" in on.show([trained], "training", True, False, nobody)[1]
    assert on.show([], "norm", False, False, nobody)[0] is None


def test_the_windows_of_a_step_are_those_that_the_training_reads(client, home, trained):
    from explorer.training.training_state import BatchFeed

    run = folder_of(home, trained)
    config, ids = run.read_config(), np.load(run.tokens_file("training"))

    class Examples:
        n_examples = len(range(0, len(ids) - 16, 16))

    feed = BatchFeed(Examples(), 2, shuffle=True, seed=config.seed)
    expected = [feed.next_numbers() for _ in range(3)]
    for step, numbers in enumerate(expected, start=1):
        found = client.predict(trained, step, api_name="/pretrain_batch")
        assert [window[0] for window in found["windows"]] == numbers
        assert [window[1] for window in found["windows"]] == [16 * n for n in numbers]
    text = run.text_file.read_text(encoding="utf-8")
    number, first, shown, following = found["windows"][0]
    assert shown == text[first : first + 16]  # a token is a character here
    assert following == text[first + 16]
    with pytest.raises(AppError, match="choose 1 to 3"):
        client.predict(trained, 4, api_name="/pretrain_batch")


# ------------------------------------------------------------------------------------ by hand
def test_the_step_by_hand_is_that_of_the_formulas(client):
    settings = {"learning_rate": 0.3, "beta1": 0.9, "beta2": 0.95, "weight_decay": 0.1}
    found = client.predict(
        "1 -0.5",
        "0.2 -0.4\n0.7 0.1\n-0.3 0.5",
        "0.3 -0.2 0.1\n-0.5 0.4 0.2\n0.1 0.6 -0.3",
        2,
        **settings,
        api_name="/pretrain_by_hand",
    )
    step = take_tiny_step(FIRST_NET, TinySettings(**settings))
    assert found["loss"] == pytest.approx(step.loss)
    np.testing.assert_allclose(found["gradients"]["autograd"]["w1"], step.by_formula.w1)
    np.testing.assert_allclose(found["after"]["w2"], step.after.w2)


@pytest.mark.parametrize("index", range(len(STAGES)))
def test_each_stage_shows_its_numbers(ctx, index, nobody):
    from explorer.training.by_hand_snippet import say_matrix

    texts = [say_matrix(getattr(FIRST_NET, name)) for name in ("x", "w1", "w2")]
    title, _formula, table, said, facts, _none, exports = ByHandHandlers(ctx).show(
        {"index": index}, *texts, "2", nobody, TinySettings()
    )
    assert title.startswith(f"{index + 1}.")
    assert {len(row) for row in table["cells"]} == {len(table["cols"])}
    assert len(table["rows"]) == len(table["cells"])
    assert all(math.isfinite(cell) for row in table["cells"] for cell in row)
    assert f"{take_tiny_step(FIRST_NET, TinySettings()).loss:.6f}" in said
    assert (ROOT / facts["test"]).exists()
    assert ctx.routes.find(exports["csv"]) is not None


def test_what_is_no_net_is_said(client):
    with pytest.raises(AppError, match="W1 takes 3 lines of 2 numbers"):
        client.predict("1 2", "1", "1", 0, api_name="/pretrain_by_hand")
