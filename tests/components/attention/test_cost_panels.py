"""The panels of the lab that measure and count: ways, variants, cache, tiles, experts."""

import dataclasses
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

from components.tabs.attention import experts_handlers
from components.tabs.attention.cache_handlers import CacheHandlers
from components.tabs.attention.experts_handlers import ExpertHandlers
from components.tabs.attention.flash_handlers import FlashHandlers
from components.tabs.attention.variants import VariantHandlers
from components.tabs.attention.ways import WayHandlers
from explorer.attention_lab.by_hand import HandSettings, compute_by_hand
from explorer.attention_lab.experts import LayerSettings
from explorer.attention_lab.variants import VariantSettings
from explorer.attention_lab.ways_timing import WaySettings
from explorer.errors import ConfigError
from explorer.run_records import PrepareStep
from tests.components.attention.panel_calls import MOE, TEXT, check_drawer, find_component


def test_nine_ways_are_measured(ctx, nobody):
    sizes = WaySettings(d_model=48, n_heads=6, n_tokens=7, batch=1, rounds=3)
    *_, last = WayHandlers(ctx).measure(nobody, sizes)
    said, message, table, *drawer = last
    assert "Round 3 of 3" in said
    assert len(message) < 20_000
    assert len(table["rows"]) == 9
    assert {row[2] for row in table["cells"]} == {f"{4 * 48 * 48 + 48:,}"}
    check_drawer(ctx, *drawer)


def test_variants_are_counted(ctx, nobody):
    on = VariantHandlers(ctx)
    said, table, shapes, message, published, *drawer = on.show(nobody, VariantSettings())
    assert shapes["cells"][1][:4] == ["4096 × 4096", "1024 × 4096", "1024 × 4096", "4096 × 4096"]
    assert [row[0] for row in table["cells"][:2]] == ["67,108,864", "41,943,040"]
    assert "8,192" in said
    assert len(message) < 20_000
    assert published["cells"][published["rows"].index("llama3-8b")][6] == "1.000"
    check_drawer(ctx, *drawer)
    said, table = on.quality(nobody)
    assert len(table["rows"]) == 5
    for mean, both, *_ in table["cells"]:
        assert np.mean([float(loss) for loss in both.split()]) == pytest.approx(
            float(mean), abs=1e-4
        )
    sizes = on.choose("smollm2-135m", *vars(VariantSettings()).values())
    assert sizes[:4] == (576, 9, 3, 64)


def test_passes_are_walked_through_and_measured(ctx, nobody):
    on = CacheHandlers(ctx)
    *_, stepper, said, big, keys, _facts, table, _exports, kept = on.read(
        "abcd", None, None, 0, None, None, nobody
    )
    assert stepper == {"index": 0, "count": 9}
    assert "4" in said
    pattern = ctx.routes.find(big["value"]["matrix"]).cells
    assert (pattern[4:] == 0).all()
    assert pattern[3].sum() == pytest.approx(1, abs=1e-5)
    assert len(keys["rows"]) == 4
    assert len(table["rows"]) == 9
    later = on.step(kept, {"index": 2}, nobody)
    assert ctx.routes.find(later[4]["value"]["matrix"]).cells[5].sum() == pytest.approx(1, abs=1e-5)
    *_, last = on.measure("abcd", None, None, nobody)
    assert "48 tokens" in last[0]
    assert len(last[4]["rows"]) == 48
    check_drawer(ctx, *last[3:])
    *_, kept = on.read("abcd", None, None, 3, None, None, nobody)
    later = on.step(kept, {"index": 8}, nobody)
    assert "9 old keys were dropped" in later[3]
    keys = later[5]["cells"]
    assert [row[0] is None for row in keys] == [True] * 9 + [False] * 3


def test_tiles_end_at_the_plain_result(ctx, nobody):
    on = FlashHandlers(ctx)
    stepper, said, value, state, *drawer = on.show({"index": 2}, "step", 2, 1, nobody)
    assert stepper == {"index": 2, "count": 3}
    assert "5" in said
    expected = compute_by_hand(HandSettings()).matrices["causal_contexts"][5]
    np.testing.assert_allclose(state["cells"][2][5:], expected, atol=1e-6)
    np.testing.assert_allclose(state["cells"][3][5:], expected, atol=1e-6)
    assert [item["name"] for item in value["items"]] == ["scores", "powers", "values"]
    check_drawer(ctx, *drawer)
    message, *drawer = on.counts(nobody)
    assert len(message) < 20_000
    check_drawer(ctx, *drawer)


def test_experts_are_shown_and_a_model_without_says_what_it_has(ctx, nobody):
    on = ExpertHandlers(ctx)
    at, said, big, taken, load, _bars, *drawer = on.show("moe", TEXT, None, None, None, nobody)
    assert at == {"index": 0, "count": 2}
    assert "20.0 %" in said
    cells = ctx.routes.find(big["matrix"]).cells
    np.testing.assert_allclose(cells.sum(1), 1, atol=1e-5)
    assert sum(bar["value"] for bar in load["bars"]) == pytest.approx(1)
    best = np.argsort(-cells[0])[:2]
    assert [part.split()[0] for part in taken["cells"][0][0].split(" + ")] == [
        f"e{i}" for i in best
    ]
    check_drawer(ctx, *drawer)
    with pytest.raises(ConfigError, match="feed-forward of width 52"):
        on.show("", TEXT, None, None, None, nobody)
    assert on.offer("", "moe", None, nobody).value == "moe"
    assert on.offer("", None, None, nobody).value == ""
    assert "Train a small one" in on.begin("", TEXT, None, None, None, nobody)[1]
    said, _message, table, *drawer = on.measure(
        nobody, LayerSettings(d_model=32, d_expert=16, n_experts=5, n_tokens=7)
    )
    assert said == ""
    assert table["cells"][0][0] == f"{5 * 3 * 32 * 16 + 32 * 5:,}"
    check_drawer(ctx, *drawer)
    assert "qwen3-30b-a3b" in on.published(nobody)["rows"]


def test_the_load_is_shown_before_and_after_an_expert_is_off(ctx, nobody):
    on = ExpertHandlers(ctx)
    first = on.show("moe", TEXT, None, None, None, nobody)[4]["bars"]
    assert not any("note" in bar for bar in first)
    busy = int(np.argmax([bar["value"] for bar in first]))
    said, *_, load, _bars, _facts, _table, _exports = on.show(
        "moe", TEXT, None, busy, None, nobody
    )[1:]
    assert load["bars"][busy]["value"] == 0
    assert load["bars"][busy]["note"] == f"was {100 * first[busy]['value']:.1f} %"
    assert sum(bar["value"] for bar in load["bars"]) == pytest.approx(1)
    assert said.startswith("Loss ")


def test_an_expert_that_is_no_whole_number_is_refused(ctx, demo, nobody):
    on = ExpertHandlers(ctx)
    for typed in (1.5, -0.5):
        with pytest.raises(ConfigError, match="type a whole number"):
            on.show("moe", TEXT, None, typed, None, nobody)
    assert find_component(demo, "lab-experts-off").preprocess(1.5) == 1.5


def test_one_token_has_no_loss_with_experts_either(ctx, nobody):
    said = ExpertHandlers(ctx).show("moe", "a", None, 1, None, nobody)[1]
    assert said.startswith("One token has no next one")
    assert "nan" not in said


def test_more_experts_at_work_than_there_are_is_said(ctx, nobody):
    sizes = LayerSettings(d_model=32, d_expert=16, n_experts=3, n_active=7, n_tokens=5)
    said, *_ = ExpertHandlers(ctx).measure(nobody, sizes)
    assert said == "There are only 3 experts, so 3 are at work and not 7."


def test_nine_ways_say_what_they_measure_and_that_they_stopped(ctx, nobody):
    on = WayHandlers(ctx)
    assert on.stop(nobody) == gr.skip()
    sizes = WaySettings(d_model=48, n_heads=6, n_tokens=7, batch=1, rounds=3)
    steps = on.measure(nobody, sizes)
    assert next(steps)[0] == "Measuring Heads in a list … 0 of 3 rounds are done."
    assert on.stop(nobody) == "Stopped."
    *_, last = steps
    assert last[0] == "Stopped."
    assert last[1:] == (gr.skip(),) * 5


class Runs:
    """A training that ends after two looks, or once it is stopped."""

    def __init__(self):
        self.looks, self.setup, self.stopped = 0, None, False

    def create(self, setup, owner, *, cancelled):
        self.setup = setup
        yield PrepareStep(what="ready", done=1.0, run_id="r1")

    def start(self, run_id, owner):
        assert run_id == "r1"

    def stop(self, run_id, owner):
        self.stopped = True

    def view(self, run_id):
        self.looks += 1
        state = "finished" if self.looks > 2 else "running"
        summary = SimpleNamespace(
            id=run_id,
            name="experts",
            state=state,
            step=self.looks,
            n_steps=3,
            checkpoints=(0, 3),
            objective="pretrain",
        )
        return SimpleNamespace(summary=summary, config=SimpleNamespace(model=MOE))

    def list(self, owner):
        return (self.view("r1").summary,)


def test_a_model_with_experts_is_trained_and_chosen(ctx, nobody, monkeypatch):
    runs = Runs()
    monkeypatch.setattr(experts_handlers, "POLL_S", 0.0)
    on = ExpertHandlers(dataclasses.replace(ctx, runs=runs))
    *states, (chosen, said) = on.train(None, nobody)
    assert [state[1].partition(":")[2][:10] for state in states] == [" step 1 of", " step 2 of"]
    assert (chosen.value, chosen.choices[0][1]) == ("run:r1@3", "run:r1@3")
    assert "ended at step 3" in said
    assert (runs.setup.style, runs.stopped) == ("moe", False)
    states = on.train(None, nobody)
    runs.looks = 0
    next(states)
    on.stop(nobody)
    *_, last = states
    assert runs.stopped
    assert last[0].value == "run:r1@3"
