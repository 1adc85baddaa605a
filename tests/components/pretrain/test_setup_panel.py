"""The panel "setup" through its API and handlers: counts, refusals, words."""

import numpy as np
import pytest
from gradio_client.exceptions import AppError

from components.tabs.pretrain.run_handlers import RunHandlers
from components.tabs.pretrain.setup_handlers import SetupHandlers
from explorer.errors import ConfigError, DataError, ExplorerError
from explorer.training.estimate import Estimate
from explorer.training.plan import compute_plan
from explorer.training.run_folder import RUNS_FOLDER
from explorer.training.run_snippets import (
    make_plan_snippet,
)
from explorer.training.setup import RunSetup
from tests.components.pretrain.page_calls import FORM, run_snippet


def test_the_form_counts_what_the_model_has(ctx, nobody):
    on = SetupHandlers(ctx, None, None)
    count, warning, bars, _watch, facts, table, exports = on.plan(None, None, nobody, RunSetup())
    plan = compute_plan(RunSetup())
    assert "743" in count
    assert warning == ""
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


def test_a_warm_up_longer_than_the_run_is_said(ctx, nobody):
    on = SetupHandlers(ctx, None, None)
    said = {
        changes: on.plan(None, None, nobody, RunSetup(**dict(changes)))[1]
        for changes in (
            (("n_steps", 30),),
            (("n_steps", 12),),
            (("n_steps", 12), ("epochs", 2.0)),
            (("n_steps", 12), ("breakage", "no_warmup")),
        )
    }
    assert [bool(words) for words in said.values()] == [False, True, False, False]
    assert "ends at 40 %" in said[(("n_steps", 12),)]  # 12 of 30 steps


def test_an_upload_is_looked_at_at_once(ctx, home, nobody):
    on = SetupHandlers(ctx, None, None)
    good, bad = home / "our story.txt", home / "picture.txt"
    good.write_text("Ada 有 a map. " * 100, encoding="utf-8")
    bad.write_bytes(b"\x89PNG\x00\x01" * 50)
    text, said = on.choose_upload(str(good), nobody)
    assert text == "upload"
    assert said == "our story.txt: 1,300 characters"
    with pytest.raises(DataError, match=r"picture\.txt"):
        on.choose_upload(str(bad), nobody)


def test_preparing_a_long_text_can_be_cancelled(ctx, home, nobody):
    """Cancel is pressed when the first sign of it is on the page."""
    path = home / "long.txt"
    path.write_text("".join(f"{n} and {n * n} are numbers. " for n in range(20_000)), "utf-8")
    for tokenizer in ("characters", "bpe"):
        on = SetupHandlers(ctx, None, RunHandlers(ctx))
        setup = RunSetup(**FORM, text="upload", tokenizer=tokenizer, vocab_size=5_000)
        before = set((home / RUNS_FOLDER).glob("*"))
        steps = on.begin(str(path), None, nobody, setup)
        _tab, said, cancel, *_ = next(steps)
        assert said == "Making the tokenizer…"
        assert cancel.visible
        on.cancel(nobody)
        *_, last = steps
        assert last[1] == "Cancelled. No run was made."
        assert not last[2].visible
        assert set((home / RUNS_FOLDER).glob("*")) == before


def test_an_estimate_says_when_others_kept_the_machine_busy(ctx, nobody, monkeypatch):
    for others, expected in ((0.19, False), (0.55, True)):
        found = Estimate(
            duration_s=60.0, step_s=0.1, n_parameters=9, peak_bytes=1, available_bytes=2,
            disk_bytes=3, tokens=4, flops=5.0, energy_kwh=6.0, price=7.0, others_share=others,
        )  # fmt: skip
        monkeypatch.setattr(type(ctx.runs), "estimate", lambda *_, found=found, **__: found)
        *_, (said, cancel, table) = SetupHandlers(ctx, None, None).estimate(
            None, None, nobody, RunSetup()
        )
        assert ("took 55 % of the processor" in said) == expected
        assert not cancel.visible
        assert table["cells"][0][0] == "1 min 0 s"


def test_an_upload_that_is_not_there_yet_is_asked_for(ctx, nobody):
    on = SetupHandlers(ctx, None, None)
    with pytest.raises(ConfigError, match="no file was uploaded"):
        on.plan(None, None, nobody, RunSetup(text="upload"))
