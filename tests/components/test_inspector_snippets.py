""" "Copy as Python" of every panel of the Next token and Layers tabs, run in a fresh process."""

import re
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import numpy as np
import pytest

from components.context import Settings
from components.shell import build_page
from components.tabs.asking import Ask
from components.tabs.layers.attribution import AttributionHandlers
from components.tabs.layers.checkpoints import CheckpointHandlers
from components.tabs.layers.comparison import ComparisonHandlers
from components.tabs.layers.gradients import GradientHandlers
from components.tabs.layers.lens import LensHandlers
from components.tabs.layers.losses import LossHandlers
from components.tabs.layers.space import SpaceHandlers
from components.tabs.layers.steer import SteerHandlers
from components.tabs.next.bars import BarsHandlers
from components.tabs.next.beam import BeamHandlers
from components.tabs.next.draws import DrawsHandlers
from components.tabs.next.game import GameHandlers
from components.tabs.next.pairs import PairHandlers
from components.tabs.next.step_handlers import Scene, StepHandlers
from explorer.beam_tree import BeamSettings
from explorer.next_token import SamplingSettings
from explorer.runs import Runs
from explorer.store import ModelStore
from tests.components.run_folders import make_run, train_in_process

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
ASK = Ask(text="The cat sat on the", source="starter")
DIALS = SamplingSettings(temperature=0.8, top_k=9)
STORY = "Amy has a red ball. The ball is in the box. Amy looks in the box and finds the red ball."
NOBODY = gr.Request()
MARK = "--- next snippet ---"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GLASSBOX_HOME", str(folder))
        yield folder


@pytest.fixture(scope="module")
def asking(home):
    _, ctx = build_page(ModelStore(), Settings(), runs=Runs(home))

    class Asking(SimpleNamespace):
        def working(self, panel, request):
            return nullcontext(ctx.slots.turn)

    return Asking(ctx=ctx)


def last(steps):
    *_, found = steps
    return found


def panels(asking, home):
    """For each panel its exports, and columns of its CSV whose first numbers the snippet prints."""
    where = (None, NOBODY)
    walk = Scene(ask=ASK, request=NOBODY, settings=DIALS)
    begun = StepHandlers(asking).begin(walk)[-1]
    run = make_run(home)
    train_in_process(home, run)
    checkpoint = replace(ASK, source=f"run:{run}@3")
    return {
        "bars": (BarsHandlers(asking).read(ASK, *where, DIALS)[4], (1, 3)),
        "draws": (DrawsHandlers(asking).draw(ASK, "draws", 50, *where, DIALS)[4], (0, 1)),
        "pairs": (last(PairHandlers(asking).write(ASK, "greedy", 4, *where, DIALS))[5], (1, 3)),
        "beam": (BeamHandlers(asking).search(ASK, 1, *where, BeamSettings(n_beams=2))[5], ()),
        "step": (StepHandlers(asking).write(replace(walk, walk=begun))[8], ()),
        "game": (GameHandlers(asking).deal(ASK, "game", STORY, 3, *where)[3], (1,)),
        "lens": (last(LensHandlers(asking).read(ASK, *where))[5], ()),
        "checkpoints": (last(CheckpointHandlers(asking).read(ASK, run, "", *where))[7], ()),
        "attribution": (AttributionHandlers(asking).split(ASK, *where)[8], ()),
        "gradients": (
            last(GradientHandlers(asking).measure(ASK, "gradient", None, *where))[5],
            (0,),
        ),
        "losses": (last(LossHandlers(asking).read(ASK, *where))[7], (2,)),
        "compare": (
            last(ComparisonHandlers(asking).compare(ASK, ["starter", f"run:{run}@3"], *where))[2],
            (0, 1, 3),
        ),
        "space": (SpaceHandlers(asking).look(ASK, True, *where)[5], ()),
        "steer": (
            last(
                SteerHandlers(asking).write(
                    ASK, "red", "blue", {"index": 2, "count": 6}, None, 4.0, 4, 0.0, 1, NOBODY
                )
            )[6],
            (),
        ),
        "of a run": (last(LossHandlers(asking).read(checkpoint, *where))[7], (2,)),
    }


def test_every_snippet_runs_and_prints_the_numbers_of_its_panel(asking, home):
    made = panels(asking, home)
    code = f"\nprint({MARK!r})\n".join(exports["python"] for exports, _ in made.values())
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    printed = dict(zip(made, done.stdout.split(MARK), strict=True))
    for name, (exports, columns) in made.items():
        numbers = np.array([float(n) for n in re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", printed[name])])
        assert len(numbers) > 0 or name == "steer", name  # its two texts
        cells = asking.ctx.routes.find(exports["csv"]).cells
        for column in columns:
            for value in cells[:4, column][np.isfinite(cells[:4, column])]:
                nearest = np.abs(numbers - value).min()
                assert nearest < 1e-5 * max(1, abs(value)), (name, column, value)
