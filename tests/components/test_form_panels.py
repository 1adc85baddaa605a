"""Every panel made from a form: its examples, words, tables, snippets, and bad input."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import gradio as gr
import pytest

from components.context import Settings
from components.shell import build_page
from components.tabs.blocks import PANELS as BLOCKS
from components.tabs.form_panel import FormPanelHandlers, make_matrix
from components.tabs.panel_plan import Panel
from components.tabs.positions import PANELS as POSITIONS
from tests.components.tiny_chat import TinyStore

ROOT = Path(__file__).parents[2]
PANELS = {
    f"{panel.plan.tab}-{panel.plan.name}": panel
    for panel in (*POSITIONS, *BLOCKS)
    if isinstance(panel, Panel)
}
MOST_BYTES = 300_000
# Seconds of training or of reading: not in the quick suite.
HEAVY = ("blocks-norm_place", "positions-broken")
SOME = [pytest.param(name, marks=pytest.mark.slow) if name in HEAVY else name for name in PANELS]


@pytest.fixture(scope="module")
def ctx():
    return build_page(TinyStore(), Settings())[1]


def fitting(settings):
    """The example on a model of few layers, heads and pairs."""
    small = {"layer": 1, "head": 1, "pair": 2, "key": 3, "position": 9}
    names = {field.name for field in dataclasses.fields(settings)}
    return dataclasses.replace(settings, **{k: v for k, v in small.items() if k in names})


@pytest.mark.parametrize("name", SOME)
def test_every_example_is_shown_with_its_table_and_a_small_event(ctx, name):
    panel = PANELS[name]
    on = FormPanelHandlers(ctx, panel)
    assert len(panel.plan.examples) == 3
    for index, example in enumerate(panel.plan.examples):
        event = gr.EventData(None, {"index": index})
        given = on.example(event)
        names = [field.name for field in dataclasses.fields(panel.plan.kind)]
        values = given if len(names) > 1 else (given,)
        assert dict(zip(names, values, strict=True)) == dataclasses.asdict(example)
        settings = fitting(example) if panel.plan.reads_model else example
        opened, *shown = on.open(None, None, gr.Request(), settings)
        assert opened is True
        shown = shown[: len(panel.plan.views) + 4]
        assert len(json.dumps(shown, ensure_ascii=False).encode()) < MOST_BYTES
        said, *_, facts, table, exports = shown
        assert said
        assert (ROOT / facts["file"]).is_file()
        assert (ROOT / facts["test"]).is_file()
        assert table["cells"]
        assert len(table["cells"][0]) == len(table["cols"])
        assert ctx.routes.find(exports["csv"]) is not None


@pytest.mark.parametrize("name", PANELS)
def test_nothing_is_computed_before_a_panel_is_opened(ctx, name):
    panel = PANELS[name]
    on = FormPanelHandlers(ctx, panel)
    shown = on.again(False, None, None, gr.Request(), panel.plan.examples[0])
    assert len(shown) == len(panel.plan.views) + 4


def test_controls_end_where_the_loaded_model_ends(ctx):
    """Names of another model's parts are moved to the last of this one, before they are read."""
    beyond = {"layer": 99, "head": 99, "pair": 99, "query": 500, "key": 500, "which": 4_000}
    with ctx.store.lease(ctx.source_of(None), "local") as loaded:
        config, encode = loaded.config, loaded.tokenizer.encode
        n_tensors = sum("blocks.0." in name for name in loaded.model.state_dict())
    heads = config.attention
    ends = {"layer": config.n_layers, "head": heads.n_heads, "pair": heads.d_head // 2}
    for name in ("positions-rope", "positions-pairing", "blocks-weights"):
        panel = PANELS[name]
        known = {f.name for f in dataclasses.fields(panel.plan.kind)}
        first = panel.plan.examples[0]
        settings = dataclasses.replace(first, **{k: v for k, v in beyond.items() if k in known})
        shown = FormPanelHandlers(ctx, panel).open(None, None, gr.Request(), settings)
        updates = shown[len(panel.plan.views) + 5 :]
        for field, update in zip(panel.plan.bounded, updates, strict=True):
            n_tokens = len(encode(getattr(settings, "text", "")))
            count = ends.get(field, n_tensors if field == "which" else n_tokens)
            assert update["maximum"] == update["value"] == count - 1, field
            assert update["interactive"]
    alone = dataclasses.replace(PANELS["blocks-weights"].plan.examples[0], search="final_norm")
    *_, update = FormPanelHandlers(ctx, PANELS["blocks-weights"]).open(
        None, None, gr.Request(), alone
    )
    assert (update["value"], update["maximum"], update["interactive"]) == (0, 1, False)


def test_a_stepper_moves_its_control_and_ends_with_the_model(ctx):
    panel = PANELS["blocks-one_pass"]
    on = FormPanelHandlers(ctx, panel)
    assert on.play(gr.EventData(None, {"index": 4})) == 4
    settings = dataclasses.replace(panel.plan.examples[0], step=30)
    *_, table, _, layers, steps, stepper = on.open(None, None, gr.Request(), settings)
    assert stepper == {"index": steps["value"], "count": len(table["rows"])}
    assert steps["maximum"] == len(table["rows"]) - 1
    assert layers["value"] == 0


def test_ready_settings_fill_the_form(ctx):
    panel = PANELS["positions-scaling"]
    on = FormPanelHandlers(ctx, panel)
    values = on.begin("llama3.1-8b", None, None, gr.Request())
    names = [field.name for field in dataclasses.fields(panel.plan.kind)]
    filled = dict(zip(names, values, strict=True))
    assert (filled["base"], filled["factor"], filled["d_head"]) == (500_000.0, 8.0, 128)
    loaded = dict(zip(names, on.begin("loaded", None, None, gr.Request()), strict=True))
    assert loaded["scaling"] == "none"


def test_a_table_is_cut_and_what_is_not_finite_is_said_in_words():
    from components.tabs.panel_plan import TableTwin

    rows = [str(i) for i in range(60)]
    table = TableTwin(rows=rows, columns=["a"], cells=[[float("nan")]] * 60)
    value = make_matrix(table)
    assert len(value["rows"]) == 50
    assert value["cells"][0] == ["nan"]


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n, p in PANELS.items() if not p.plan.reads_model])
def test_the_snippet_of_a_panel_prints_its_numbers(ctx, name):
    panel = PANELS[name]
    shown = FormPanelHandlers(ctx, panel).open(None, None, gr.Request(), panel.plan.examples[0])
    exports = shown[len(panel.plan.views) + 4]
    done = subprocess.run(
        [sys.executable, "-c", exports["python"]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first = ctx.routes.find(exports["csv"]).cells
    assert first.size
    assert done.stdout.strip()
