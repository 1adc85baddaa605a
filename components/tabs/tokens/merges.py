"""The panel "merges": how one word becomes tokens, join by join."""

from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr

from components.address import parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.merge_tree import build_merge_tree
from components.kit.number_matrix import MOST_TABLE_ROWS, build_number_matrix
from components.kit.numbers import Number
from components.kit.stepper import build_stepper
from components.kit.views import update_view
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.choice import TokenizerChoice, open_tokenizer, source_of_choice
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from explorer.tokenizer_lab.merge_tree import MergeTree, compute_merge_tree, list_byte_table
from explorer.tokenizer_lab.snippets import make_tokenizer_snippet

EXAMPLE_KEYS = (
    "tokens.merges.example_rare",
    "tokens.merges.example_space",
    "tokens.merges.example_script",
)
EXAMPLE_TEXTS = ("unfamiliarword", "hello hello", "每个人 café")
EXAMPLE_WORDS = (0, 1, 0)
FORMULA = r"""
$$(a, b)^{*} = \arg\min_{(a,\,b)\ \text{neighbours}} \operatorname{rank}(a, b)
\qquad \dots a\;b \dots \;\to\; \dots ab \dots$$
"""
COLUMNS = ("left", "right", "gives", "rank", "parts")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    word: gr.Number
    examples: gr.HTML
    split: gr.HTML
    stepper: gr.HTML
    said: gr.HTML
    tree: gr.HTML
    steps: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `MergeHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [self.split, self.stepper, self.said, self.tree, self.steps, *drawer]


def build(ctx: AppContext, head: TabHead, choice: TokenizerChoice, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        choice: The tokenizer of the tab.
        tab: The inner tab.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            text = gr.Textbox(
                EXAMPLE_TEXTS[0],
                label=t("tokens.merges.text"),
                info=t("tokens.merges.text_info"),
                lines=2,
                elem_id="merges-text",
            )
            word = Number(
                0,
                label=t("tokens.merges.word"),
                info=t("tokens.merges.word_info"),
                precision=0,
                elem_id="merges-word",
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="merges-examples")
            gr.HTML(t("tokens.merges.split"), elem_classes=["heading"])
            split = build_number_matrix(words, elem_id="merges-split")
        with gr.Column(elem_classes=["figure"], min_width=0):
            stepper = build_stepper(words, elem_id="merges-stepper")
            said = build_line(words, elem_id="merges-said", look="heading")
            tree = build_merge_tree(words, elem_id="merges-tree")
            steps = build_number_matrix(words, elem_id="merges-steps")
            _build_byte_table(ctx)
            working = build_working(
                words, elem_id="merges-working", formula=FORMULA, png="merges-tree"
            )
    build_note(words, "tokens.merges.look_for", elem_id="merges-note")
    parts = Parts(text, word, examples, split, stepper, said, tree, steps, working)
    _wire(ctx, head, parts, choice, tab)
    ctx.address.register("tokens", "joined", text)
    ctx.address.register("tokens", "word", word, parse_integer(0, 10_000))


def _build_byte_table(ctx: AppContext) -> None:
    """The 256 bytes and the characters that stand for them."""
    with gr.Accordion(
        ctx.words.t("tokens.merges.bytes"),
        open=False,
        elem_id="merges-bytes",
        elem_classes=["tokens-quiet"],
    ):
        gr.Markdown(ctx.words.t("tokens.merges.bytes_info"))
        build_number_matrix(
            ctx.words,
            elem_id="merges-byte-table",
            value={
                "corner": "",
                "rows": [f"{16 * row:02X}" for row in range(16)],
                "cols": [f"_{column:X}" for column in range(16)],
                "cells": list_byte_table(),
                "digits": 0,
            },
        )


def _wire(
    ctx: AppContext, head: TabHead, parts: Parts, choice: TokenizerChoice, tab: gr.Tab
) -> None:
    on = MergeHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    asked = [parts.text, parts.word, choice.one, ctx.model_id, ctx.owner]
    for event in (tab.select, parts.text.change, parts.word.change, choice.one.change):
        wire(event, on.show, asked, parts.outputs(), trigger_mode="always_last", **options)
    stepped = [parts.said, parts.tree, parts.steps]
    inputs = [parts.stepper, *asked]
    wire(
        parts.stepper.step, on.step, inputs, stepped, trigger_mode="always_last", queue=False,
        **options,
    )  # fmt: skip
    shown = [parts.text, parts.word]
    wire(parts.examples.example, on.example, [], shown, queue=False, **options)
    expose(on.merge_word, "tokens_merges")


class MergeHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> tuple[str, int]:
        """Type one of the examples."""
        index = int(event._data["index"])
        return EXAMPLE_TEXTS[index], EXAMPLE_WORDS[index]

    def show(
        self,
        text: str,
        word: float | None,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Join the word, and show all of it."""
        locale, number = locale_of(request), int(word or 0)
        tree = self._tree(text, number, choice, model_id, owner, request)
        numbers = self._table(tree, locale)
        drawer = fill_drawer(
            self._ctx,
            numbers,
            tensor="ids",
            shape=[len(tree.ids)],
            dtype="int64",
            function=compute_merge_tree,
            snippet=make_tokenizer_snippet(
                source_of_choice(self._ctx, choice, model_id),
                compute_merge_tree,
                text,
                ["found.ids", "[(n.text, n.rank) for n in found.nodes if n.step]"],
                f", word={tree.chosen}",
            ),
            png="merges-tree",
        )
        return (
            self._split(tree, locale),
            {"index": tree.n_steps, "count": tree.n_steps + 1},
            self._say(tree, tree.n_steps, locale),
            update_view(value=make_tree(tree), step=tree.n_steps),
            numbers.as_value(selected=tree.n_steps - 1),
            *drawer,
        )

    def step(
        self,
        stepper: dict[str, Any] | None,
        text: str,
        word: float | None,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, Any, Any]:
        """Go to another join."""
        tree = self._tree(text, int(word or 0), choice, model_id, owner, request)
        at, locale = min(int((stepper or {}).get("index", 0)), tree.n_steps), locale_of(request)
        said = self._say(tree, at, locale)
        return said, update_view(step=at), self._table(tree, locale).as_value(selected=at - 1)

    def merge_word(
        self, text: str, word: int, tokenizer: str, request: gr.Request
    ) -> dict[str, Any]:
        """Join the symbols of one word of a text; an empty tokenizer is that of the first model."""
        tree = self._tree(text, word, tokenizer or None, None, None, request)
        return {**asdict(tree), "parts": [list(parts) for parts in tree.parts]}

    def _tree(
        self,
        text: str,
        word: int,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> MergeTree:
        tokenizer = open_tokenizer(self._ctx, choice, model_id, owner, request)
        return compute_merge_tree(tokenizer, text, word=word)

    def _say(self, tree: MergeTree, step: int, locale: str) -> str:
        say = self._ctx.words.say
        parts = " | ".join(tree.nodes[i].text for i in tree.parts[step])
        if step == tree.n_steps:
            ids = " ".join(map(str, tree.ids))
            return say(locale, "tokens.merges.done", parts=parts, ids=ids)
        return say(locale, "tokens.merges.at", step=step, n=tree.n_steps, parts=parts)

    def _split(self, tree: MergeTree, locale: str) -> dict[str, Any]:
        rows = tree.words[:MOST_TABLE_ROWS]
        return {
            "corner": "",
            "rows": [str(i) for i in range(len(rows))],
            "cols": [self._ctx.words.say(locale, "tokens.merges.column_word")],
            "cells": [[word] for word in rows],
            "digits": 0,
            "selected_row": tree.chosen,
        }

    def _table(self, tree: MergeTree, locale: str) -> Numbers:
        say = self._ctx.words.say
        joins = [node for node in tree.nodes if node.step]
        texts = [[tree.nodes[i].text for i in parts] for parts in tree.parts[1:]]
        return Numbers(
            corner=say(locale, "tokens.merges.column_step"),
            rows=[str(node.step) for node in joins],
            columns=[say(locale, f"tokens.merges.column_{name}") for name in COLUMNS],
            cells=[
                [
                    *(tree.nodes[kid].text for kid in node.children),
                    node.text,
                    node.rank,
                    " ".join(t),
                ]
                for node, t in zip(joins, texts, strict=True)
            ],
        )


def make_tree(tree: MergeTree) -> dict[str, Any]:
    """The value of the tree's view."""
    return {
        "nodes": [
            {
                "t": node.text,
                "start": node.start,
                "end": node.end,
                "step": node.step,
                "rank": node.rank,
                "kids": list(node.children),
                "id": node.id,
            }
            for node in tree.nodes
        ],
        "tokens": list(tree.parts[-1]),
    }
