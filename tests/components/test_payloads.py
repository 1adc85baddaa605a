"""What one event sends to the page stays small, however long the text is."""

import json
from dataclasses import replace
from typing import Any

import gradio as gr
import pytest
import torch

from components.context import AppContext, Settings
from components.shell import build_page
from components.tabs.attention.handlers import HeadsHandlers
from components.tabs.attention.views import Shown
from components.tabs.tokens.pieces import Handlers
from explorer.attention_maps import MOST_TOKENS
from models.initialise import build_decoder
from tests.components.tiny_chat import CONFIG, ByteTokenizer, TinyStore

# An event of Gradio is one JSON text, never compressed: at 10 Mbit/s this is a quarter of a second.
MOST_BYTES = 300_000


class Store(TinyStore):
    """The tiny model with more context, and its tokenizer alone."""

    def __init__(self) -> None:
        super().__init__()
        config = replace(CONFIG, context_length=MOST_TOKENS)
        decoder = build_decoder(config, torch.Generator().manual_seed(5)).requires_grad_(False)
        self.usual = replace(self.usual, model=decoder, config=config)

    def tokenizer(self, source: str, owner: str) -> ByteTokenizer:
        return ByteTokenizer()


@pytest.fixture(scope="module")
def ctx() -> AppContext:
    return build_page(Store(), Settings())[1]


def count_bytes(values: tuple[Any, ...]) -> int:
    """Bytes of what travels; the state of a tab stays on the server."""
    sent = [value for value in values if not isinstance(value, Shown)]
    return len(json.dumps(sent, ensure_ascii=False).encode())


LONG_TEXTS = {
    "ascii": "x" * 1_000_000,
    "words": "word " * 200_000,
    "quotes": '"\\' * 500_000,
    "chinese": "玛" * 1_000_000,
    "controls": "\0" * 1_000_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_a_million_characters_of_tokens_are_a_small_event(ctx: AppContext, text: str) -> None:
    values = Handlers(ctx).text(text, False, "text", None, None, None, gr.Request())
    assert count_bytes(values) < MOST_BYTES


@pytest.mark.parametrize("text", LONG_TEXTS.values(), ids=LONG_TEXTS)
def test_attention_of_512_tokens_is_a_small_event(ctx: AppContext, text: str) -> None:
    handlers, event = HeadsHandlers(ctx), gr.EventData(None, {"index": 300})
    first = handlers.text(Shown(), "", text, None, None, gr.Request())
    assert first[-1].query == MOST_TOKENS - 1, "the text has fewer tokens than it should"
    assert count_bytes(first) < MOST_BYTES
    assert count_bytes(handlers.query(first[-1], None, event, gr.Request())) < MOST_BYTES
