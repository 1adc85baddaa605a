"""What the tests of the lab's panels share: a tiny model with experts, events, drawers."""

import dataclasses
from pathlib import Path

import gradio as gr
import pytest
import torch

from models.config import MoeConfig
from models.initialise import build_decoder
from tests.components.tiny_chat import CONFIG, TinyStore

ROOT = Path(__file__).parents[3]
TEXT = "abcab abca"
MOE = dataclasses.replace(
    CONFIG, moe=MoeConfig(n_experts=5, n_active=2, d_ff=16, normalise_weights=True)
)


class Store(TinyStore):
    """The tiny model, and under the name `moe` one with experts."""

    def __init__(self):
        super().__init__()
        decoder = build_decoder(MOE, torch.Generator().manual_seed(7)).requires_grad_(False)
        self.chats["moe"] = dataclasses.replace(self.usual, model=decoder, config=MOE)


def event(**data):
    return gr.EventData(None, data)


def find_component(demo, elem_id):
    """A component of the page."""
    return next(block for block in demo.blocks.values() if block.elem_id == elem_id)


def check_drawer(ctx, facts, table, exports):
    """The files exist, the CSV has the numbers of the table, the snippet names no lambda."""
    assert (ROOT / facts["file"]).exists()
    assert (ROOT / facts["test"]).exists()
    published = ctx.routes.find(exports["csv"])
    assert list(published.cells.shape) == facts["shape"]
    first = table["cells"][0][0]
    assert isinstance(first, str) or first == pytest.approx(float(published.cells[0, 0]), rel=1e-5)
    compile(exports["python"], "snippet", "exec")
