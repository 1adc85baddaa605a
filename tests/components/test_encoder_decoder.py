"""The panel "encoder-decoder" by its handlers: what is drawn against the model's own numbers."""

import os
import subprocess
import sys
from pathlib import Path

import gradio as gr
import numpy as np
import pytest

from components.context import Settings
from components.shell import build_page
from components.tabs.blocks.encoder_decoder_handlers import EXAMPLES, TranslationHandlers
from components.tabs.blocks.encoder_decoder_views import LookedAt
from components.tabs.pretrain.run_handlers import RunHandlers
from explorer.errors import JobError
from explorer.runs import Runs
from explorer.training.loop import train
from explorer.translation_runs import TranslationRuns
from explorer.translation_view import TranslateSettings, compute_translation
from tests.components.tiny_chat import TinyStore
from tests.explorer.training.run_cases import make_tiny_run, make_tiny_translation

ROOT = Path(__file__).parents[2]
SAID, STEPPER, MAP, BARS, HEADS, FACTS, TABLE, EXPORTS, LOOKED, TEXTS, TREE, TYPED = range(12)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def run(home):
    made = make_tiny_translation(home / "runs")
    list(train(made.path))
    return made.id


@pytest.fixture(scope="module")
def ctx(home):
    return build_page(TinyStore(), Settings(), runs=Runs(home))[1]


@pytest.fixture(scope="module")
def on(ctx):
    return TranslationHandlers(ctx, RunHandlers(ctx, "translation"))


def click(**data):
    return gr.EventData(None, data)


def matrix_of(ctx, view):
    return ctx.routes.find(view["value"]["matrix"]).cells


def test_places_and_heads_are_those_of_the_model(ctx, on, run):
    settings = TranslateSettings(text="4072")  # of another task: a text of this one comes instead
    shown = on.translate(run, LookedAt(), gr.Request(), settings)
    assert shown[TYPED] == "lemon"
    found = compute_translation(
        TranslationRuns(ctx.runs).open(run), TranslateSettings(text="lemon")
    )
    n_places = len(found.chosen)
    assert shown[STEPPER] == {"index": n_places - 1, "count": n_places}
    whole = found.patterns[0].mean(axis=0)
    np.testing.assert_allclose(matrix_of(ctx, shown[MAP]), whole, atol=1e-6)
    assert shown[TEXTS]["cells"][0][0] == found.texts[0].text
    assert shown[TEXTS]["cells"][-1][0] == "nomel"
    assert len(shown[TREE]["nodes"]) == len(found.nodes)

    first = on.step(shown[LOOKED], click(index=0), gr.Request())
    drawn = matrix_of(ctx, first[MAP])
    np.testing.assert_allclose(drawn[0], whole[0], atol=1e-6)
    assert not drawn[1:].any()  # not decoded yet
    assert first[TABLE]["rows"] == [found.chosen[0]]
    assert first[BARS]["bars"][0]["value"] == found.candidates[0][0].probability

    head = on.pick_head(first[LOOKED], click(index=2), gr.Request())
    np.testing.assert_allclose(matrix_of(ctx, head[MAP])[0], found.patterns[0, 1, 0], atol=1e-6)
    assert head[FACTS]["tensor"] == "decoder.blocks.0.cross_attn.pattern"
    assert (ROOT / head[FACTS]["file"]).is_file()
    assert (ROOT / head[FACTS]["test"]).is_file()


def test_without_a_checkpoint_it_says_what_to_do(on):
    shown = on.translate(None, LookedAt(), gr.Request(), TranslateSettings())
    assert "Train it" in shown[SAID]
    assert len(on.example(click(index=2))) == len(vars(EXAMPLES[0]))


def test_runs_of_translations_are_listed_here_and_nowhere_else(ctx, on, run, home):
    other = make_tiny_run(home / "runs")
    lists = {
        tab: [s["id"] for s in RunHandlers(ctx, tab).list_runs(gr.Request())]
        for tab in ("pretrain", "finetune", "translation")
    }
    assert lists == {"pretrain": [other.id], "finetune": [], "translation": [run]}
    with pytest.raises(JobError, match="Encoder-decoder"):
        on.translate_text(other.id, "12")
    answer = on.translate_text(run, "lemon", n_beams=2)
    assert answer["wanted"] == "nomel"
    assert len(answer["texts"]) == 2


@pytest.mark.slow
def test_the_snippet_prints_the_same_numbers(ctx, on, run, home):
    shown = on.translate(run, LookedAt(), gr.Request(), TranslateSettings(text="lemon"))
    done = subprocess.run(
        [sys.executable, "-c", shown[EXPORTS]["python"]],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "GLASSBOX_HOME": str(home)},
    )
    scores = [float(line.split()[-1]) for line in done.stdout.splitlines()[-4:]]
    assert scores == pytest.approx([cells[3] for cells in shown[TEXTS]["cells"][:4]], rel=1e-5)
