"""The panel "setup" through its API and handlers: counts, refusals, words."""

import numpy as np
import pytest
from gradio_client.exceptions import AppError

from components.tabs.pretrain.run_handlers import RunHandlers
from components.tabs.pretrain.setup_handlers import SetupHandlers
from explorer.errors import ConfigError, ExplorerError
from explorer.training.plan import compute_plan
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.run_snippets import (
    make_plan_snippet,
)
from explorer.training.setup import RunSetup
from tests.components.pretrain.page_calls import FORM, run_snippet


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
        ({"n_steps": 0}, "from 1 to"),
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
