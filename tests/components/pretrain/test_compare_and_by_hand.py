"""Runs compared, windows of a step, and one step by hand."""

import math

import numpy as np
import pytest
from gradio_client.exceptions import AppError

from components.tabs.pretrain.by_hand_handlers import STAGES, ByHandHandlers
from components.tabs.pretrain.compare import CompareHandlers
from explorer.runs import Runs
from explorer.training.by_hand import FIRST_NET, TinySettings, take_tiny_step
from explorer.training.run_snippets import (
    make_compare_snippet,
)
from tests.components.pretrain.page_calls import ROOT, run_snippet
from tests.components.run_folders import folder_of, make_run, write_events


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
    assert '"name": "small one, step 3"' in message
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
