"""Every panel's "Copy as Python", run in a fresh process: it prints the numbers of the page."""

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import gradio as gr
import numpy as np
import pytest
import torch

from components.context import Settings
from components.shell import build_page
from components.tabs.attention.ablate_handlers import AblateHandlers
from components.tabs.attention.by_hand_handlers import HandHandlers, HandState, parse_stage
from components.tabs.attention.cache_handlers import CacheHandlers
from components.tabs.attention.experts_handlers import ExpertHandlers
from components.tabs.attention.flash_handlers import FlashHandlers
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.masks import MaskHandlers
from components.tabs.attention.overview_handlers import Measured, OverviewHandlers
from components.tabs.attention.pair import PairHandlers
from components.tabs.attention.variants import VariantHandlers
from components.tabs.attention.views import Shown
from components.tabs.attention.ways import WayHandlers
from explorer.attention_lab.by_hand import ChangedCell, HandSettings
from explorer.attention_lab.experts import LayerSettings
from explorer.attention_lab.masks import MaskSettings
from explorer.attention_lab.variants import VariantSettings
from explorer.attention_lab.ways_timing import WaySettings
from models import load_model, save_model
from models.config import MoeConfig
from models.initialise import build_decoder
from tests.components.tiny_chat import TinyStore

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[3]
TEXT = "The blue cat sat on the warm mat. The blue cat"
NOBODY = gr.Request()
NUMBER = re.compile(r"-?(?:\d[\d_]*\.?\d*(?:e[-+]?\d+)?|inf|nan)", re.IGNORECASE)
# Runs each snippet in a namespace of its own, and gives what it printed.
RUNNER = """
import contextlib, io, json, sys
said = {}
for name, code in json.load(sys.stdin).items():
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(code, name, "exec"), {"__name__": "snippet"})
    said[name] = out.getvalue()
json.dump(said, sys.stdout)
"""
# Columns of the CSV file that are measured anew each time.
MEASURED = {"ways": (0, 1), "layers": (3,), "generation": (0, 1)}
# Where the page shows another unit than the function gives: what its columns are multiplied by.
UNITS = {"cache": (1, 1e6, 1e6, 1), "variants": (1, 1, 2**30), "layers": (1, 1, 1e6)}
# What the snippet prints last is the whole CSV file, number for number.
WHOLE = ("hand", "kinds", "random", "compared", "rollout", "scan", "patch", "experts")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The starter, and one of its kind with experts, as a program finds them."""
    starter = load_model("starter")
    moe = MoeConfig(n_experts=5, n_active=2, d_ff=16, normalise_weights=True)
    config = dataclasses.replace(
        starter.config,
        moe=moe,
        attention=dataclasses.replace(starter.config.attention, qk_norm="head"),
    )
    model = build_decoder(config, torch.Generator().manual_seed(3)).requires_grad_(False)
    folder = tmp_path_factory.mktemp("moe")
    save_model(folder, model, tokenizer=starter.tokenizer)
    return {"starter": starter, str(folder): load_model(str(folder))}


@pytest.fixture(scope="module")
def drawers(sources):
    """Each panel's drawer: facts, table, exports."""
    store = TinyStore()
    store.chats.update(sources)
    ctx = build_page(store, Settings(default_model="starter"))[1]
    last = lambda states: list(states)[-1]  # noqa: E731
    hand = HandState((ChangedCell(matrix="scaled", row=1, column=0, value=2.0),))
    heads = HeadsHandlers(ctx)
    shown = heads.text(Shown(), "3.2.7", TEXT, None, None, NOBODY)[-1]
    on_overview, on_pair = OverviewHandlers(ctx, heads), PairHandlers(ctx, heads)
    ablate, cache, flash = AblateHandlers(ctx), CacheHandlers(ctx), FlashHandlers(ctx)
    experts = ExpertHandlers(ctx)
    moe = next(source for source in sources if source != "starter")

    def overview(*controls):
        return last(on_overview.show(shown, Measured(), None, NOBODY, *controls))[3:6]

    masked = MaskHandlers(ctx).show(
        TEXT, None, None, None, "masked", None, None, NOBODY, MaskSettings(kind="sinks", width=3)
    )
    read = cache.read("The cat sat", None, None, 3, None, None, NOBODY)
    found = {
        "hand": HandHandlers(ctx).show(
            parse_stage("causal_contexts"), hand, "journey", False, NOBODY, HandSettings()
        )[5:8],
        "masks": masked[7:10],
        "kinds": overview("induction", "text", "largest", 0, "", ""),
        "random": overview("previous", "random", "largest", 0, "", ""),
        "compared": overview("first", "text", "largest", 0, "Another text.", moe),
        "pair": on_pair.pair(shown, 3, None, NOBODY)[3:],
        "rollout": on_pair.rollout(shown, None, NOBODY)[1:],
        "ablate": next(ablate.change(TEXT, "1.2, 0.ffn x 0.5", None, None, NOBODY))[3:],
        "scan": last(ablate.scan(TEXT, None, None, NOBODY))[3:],
        "patch": last(ablate.patch("The cat sat", "The cat had", None, None, NOBODY))[2:],
        "ways": last(
            WayHandlers(ctx).measure(
                NOBODY, WaySettings(d_model=48, n_heads=6, n_tokens=7, batch=1, rounds=3)
            )
        )[3:],
        "variants": VariantHandlers(ctx).show(NOBODY, VariantSettings())[5:],
        "cache": read[6:9],
        "generation": last(cache.measure("The cat sat", None, None, NOBODY))[3:],
        "flash": flash.show({"index": 1}, "step", 2, 60, NOBODY)[4:],
        "traffic": flash.counts(NOBODY)[1:],
        "peaks": last(flash.measure(NOBODY))[2:],
        "experts": experts.show(moe, TEXT, None, 1, None, NOBODY)[6:],
        "layers": experts.measure(
            NOBODY, LayerSettings(d_model=32, d_expert=16, n_experts=5, n_tokens=7)
        )[3:],
    }
    return ctx, found


def test_the_snippets_print_the_numbers_of_the_page(drawers):
    ctx, found = drawers
    snippets = {name: exports["python"] for name, (_, _, exports) in found.items()}
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        cwd=ROOT,
        input=json.dumps(snippets),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, said in json.loads(done.stdout).items():
        printed = np.array([float(number) for number in NUMBER.findall(said)])
        cells = np.delete(ctx.routes.find(found[name][2]["csv"]).cells, MEASURED.get(name, ()), 1)
        if name == "flash":
            cells = cells[:, :5]  # what follows is the fifth column divided by the third
        expected = (cells.astype(np.float64) * UNITS.get(name, 1)).ravel()
        assert len(expected), name
        if name in WHOLE:
            np.testing.assert_allclose(printed[-expected.size :], expected, rtol=1e-4, atol=2e-5)
            continue
        expected = expected[np.isfinite(expected)]
        near = np.abs(printed[np.isfinite(printed)][None] - expected[:, None]).min(axis=1)
        assert (near <= 2e-5 + 1e-4 * np.abs(expected)).all(), (name, expected[near.argmax()])
