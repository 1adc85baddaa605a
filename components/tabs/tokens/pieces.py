"""The panel "chips": a text, cut into tokens as it is typed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gradio as gr
import numpy as np

from components.address import parse_choice, parse_switch
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import MOST_TABLE_ROWS
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.choice import (
    TokenizerChoice,
    open_tokenizer,
    source_of_choice,
)
from components.text import locale_of
from components.token_units import MOST_CHIPS, make_units
from explorer.snippets import source_file_of
from explorer.tokenizer_lab.chat_view import compute_chat_pieces, make_chat_snippet
from explorer.tokenizer_lab.snippets import make_tokenizer_snippet
from explorer.tokens import TokenPieces, compute_token_pieces, read_escapes

READINGS = ("text", "escapes", "chat")
EXAMPLE_KEYS = ("tokens.example_scripts", "tokens.example_spaces", "tokens.example_numbers")
# What the examples type; not words of the page, so the same in every language.
EXAMPLE_TEXTS = (
    "Hello, 你好世界！ नमस्ते 👨‍👩‍👧‍👦 café cafe\u0301",
    "def add(a, b):\n\treturn a + b\n\n    # four spaces, two  spaces",
    "127 + 677 = 804, 1275 + 6773 = 8041; unfamiliarword, antidisestablishmentarianism",
)
FIRST_TEXT = "When Mary and John went to the store, John gave a drink to Mary. 玛丽说 thanks! 🦙"
FORMULA = r"""
$$\text{text} \;\xrightarrow{\text{UTF-8}}\; \text{bytes} \;\xrightarrow{\text{pre-tokenizer}}\;
\text{words} \;\xrightarrow{\text{BPE merges}}\; \text{tokens} \;\xrightarrow{\text{vocabulary}}\;
\text{ids}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    special: gr.Checkbox
    reading: gr.Radio
    counts: gr.HTML
    examples: gr.HTML
    chips: gr.HTML
    working: Working


def build(ctx: AppContext, head: TabHead, choice: TokenizerChoice) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        choice: The tokenizer of the tab.
    """
    t = ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls"], min_width=0):
            text = gr.Textbox(
                FIRST_TEXT, label=t("tokens.text"), lines=5, max_lines=14, elem_id="tokens-text"
            )
            counts = build_line(ctx.words, elem_id="tokens-counts", look="help")
            examples = build_examples(ctx.words, EXAMPLE_KEYS, elem_id="tokens-examples")
            special = gr.Checkbox(
                False,
                label=t("tokens.special"),
                info=t("tokens.special_info"),
                elem_id="tokens-special",
            )
            reading = gr.Radio(
                [(t(f"tokens.reading.{name}"), name) for name in READINGS],
                value=READINGS[0],
                label=t("tokens.reading"),
                info=t("tokens.reading_info"),
                elem_id="tokens-reading",
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            chips = build_token_chips(ctx.words, elem_id="tokens-chips", copy=True, lanes=True)
            working = build_working(ctx.words, elem_id="tokens-working", formula=FORMULA)
    build_note(ctx.words, "tokens.look_for", elem_id="tokens-note")
    parts = Parts(text, special, reading, counts, examples, chips, working)
    _wire(ctx, head, parts, choice)
    ctx.address.register("tokens", "text", text)
    ctx.address.register("tokens", "special", special, parse_switch)
    ctx.address.register("tokens", "reading", reading, parse_choice(READINGS))


def _wire(ctx: AppContext, head: TabHead, parts: Parts, choice: TokenizerChoice) -> None:
    on = Handlers(ctx)
    working = parts.working
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    # the visitor is known before his model is there: the tokenizer alone is soon read
    changes = (parts.text, parts.special, parts.reading, choice.one, ctx.owner, ctx.model_id)
    for event in [component.change for component in changes]:
        # while the server works on one keystroke, only the newest of the next ones is kept
        wire(
            event,
            on.text,
            [parts.text, parts.special, parts.reading, choice.one, ctx.model_id, ctx.owner],
            [parts.counts, parts.chips, working.facts, working.table, working.exports],
            trigger_mode="always_last",
            queue=False,  # a keystroke is answered in a third less time than through the queue
            **options,
        )
    wire(parts.examples.example, on.example, [], [parts.text], queue=False, **options)
    expose(on.tokenize, "tokenize")


class Handlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> str:
        """Type one of the examples."""
        return EXAMPLE_TEXTS[int(event._data["index"])]

    def text(
        self,
        text: str,
        special: bool,
        reading: str,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Cut the text and show it."""
        source, locale = source_of_choice(self._ctx, choice, model_id), locale_of(request)
        tokenizer = open_tokenizer(self._ctx, choice, model_id, owner, request)
        if reading == "chat":
            pieces = self._cut_chat(text, model_id, owner, request)
            snippet = make_chat_snippet(self._ctx.source_of(model_id), text)
        else:
            plain = read_escapes(text) if reading == "escapes" else text
            pieces = compute_token_pieces(tokenizer, plain, special=special, limit=MOST_CHIPS)
            snippet = make_tokenizer_snippet(
                source, compute_token_pieces, plain, ["found.n_tokens, found.ids"], say(special)
            )
        return (
            self._say_counts(locale, pieces),
            make_chips(self._ctx, pieces),
            make_facts(pieces),
            make_table(self._ctx, locale, pieces),
            {"csv": publish_ids(self._ctx, locale, pieces), "png": None, "python": snippet},
        )

    def _cut_chat(
        self, text: str, model_id: str | None, owner: str | None, request: gr.Request
    ) -> TokenPieces:
        ctx = self._ctx
        with ctx.store.lease(ctx.source_of(model_id), ctx.owner_of(owner, request)) as loaded:
            return compute_chat_pieces(loaded, text, limit=MOST_CHIPS)

    def tokenize(self, text: str, special: bool, request: gr.Request) -> dict[str, Any]:
        """Cut a text into tokens with the tokenizer of the page's first model."""
        tokenizer = self._ctx.store.tokenizer(
            self._ctx.source_of(None), self._ctx.owner_of(None, request)
        )
        pieces = compute_token_pieces(tokenizer, text, special=special, limit=MOST_CHIPS)
        return {
            "ids": list(pieces.ids),
            "tokens": pieces.n_tokens,
            "characters": pieces.n_characters,
            "bytes": pieces.n_bytes,
            "units": make_units(pieces.units),
        }

    def _say_counts(self, locale: str, pieces: TokenPieces) -> str:
        unread = pieces.n_read_bytes != pieces.n_bytes
        counts = self._ctx.words.say(
            locale,
            "tokens.counts_unread" if unread else "tokens.counts",
            read=f"{pieces.n_read_bytes:,}",
            tokens=f"{pieces.n_tokens:,}",
            characters=f"{pieces.n_characters:,}",
            seen=f"{pieces.n_graphemes:,}",
            bytes=f"{pieces.n_bytes:,}",
        )
        forms = [name for name in ("decomposed", "replaced") if getattr(pieces, f"is_{name}")]
        notes = [self._ctx.words.say(locale, f"tokens.{name}") for name in forms]
        return " ".join([counts, *notes])


def say(special: bool) -> str:
    """The argument that parses special tokens, where they are."""
    return ", special=True" if special else ""


def make_chips(ctx: AppContext, pieces: TokenPieces) -> dict[str, Any]:
    """The value of the chips; the ids of a text that is not drawn whole are fetched when copied."""
    more = pieces.n_tokens - pieces.shown
    ids = json.dumps(pieces.ids).encode() if more else b""
    return {
        "units": make_units(pieces.units),
        "more": more,
        "total": pieces.n_tokens,
        "ids_from": ctx.routes.publish_bytes(ids, media_type="application/json") if more else None,
        "text_from": ctx.routes.publish_bytes(pieces.text.encode(), media_type="text/plain")
        if more
        else None,
    }


def make_facts(pieces: TokenPieces) -> dict[str, Any]:
    """Where the numbers come from."""
    return {
        "tensor": "ids",
        "shape": [pieces.n_tokens],
        "dtype": "int64",
        "file": source_file_of(compute_token_pieces),
        "test": "tests/explorer/test_tokens.py",
    }


def each_token(pieces: TokenPieces) -> Iterator[tuple[str, int, bytes]]:
    """(text of its unit, id, bytes) of every token that is shown."""
    for unit in pieces.units:
        for id_, token in zip(unit.ids, unit.token_bytes, strict=True):
            yield unit.text, id_, token


def make_table(ctx: AppContext, locale: str, pieces: TokenPieces) -> dict[str, Any]:
    """The first tokens as a table."""
    rows = [row for row, _ in zip(each_token(pieces), range(MOST_TABLE_ROWS), strict=False)]
    columns = ("column_token", "column_id", "column_bytes")
    return {
        "corner": ctx.words.say(locale, "tokens.column_position"),
        "rows": [str(i) for i in range(len(rows))],
        "cols": [ctx.words.say(locale, f"tokens.{name}") for name in columns],
        "cells": [[text, id_, token.hex(" ")] for text, id_, token in rows],
        "tokens": [0],
        "digits": 0,
    }


def publish_ids(ctx: AppContext, locale: str, pieces: TokenPieces) -> str:
    """Put the tokens that are shown where the CSV button fetches them."""
    tokens = list(each_token(pieces))
    numbers = np.array([[id_, len(token)] for _, id_, token in tokens], dtype=np.float32)
    columns = ("column_id", "column_n_bytes")
    return ctx.routes.publish(
        numbers.reshape(-1, len(columns)),
        row_labels=[text for text, _, _ in tokens],
        column_labels=[ctx.words.say(locale, f"tokens.{name}") for name in columns],
    )
