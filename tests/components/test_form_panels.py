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
from components.tabs.positions import PANELS as POSITIONS
from tests.components.tiny_chat import TinyStore

ROOT = Path(__file__).parents[2]
PANELS = {f"{panel.plan.tab}-{panel.plan.name}": panel for panel in (*POSITIONS, *BLOCKS)}
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
    *_, exports = FormPanelHandlers(ctx, panel).open(
        None, None, gr.Request(), panel.plan.examples[0]
    )
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
