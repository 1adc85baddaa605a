"""The panel "embeddings": lookup by hand, neighbours, a map, token plus position."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.embedding_handlers import EXAMPLES, EmbeddingHandlers
from explorer.embeddings import ToySetup

PREFIX = "tokens.embed.form"
EXAMPLE_KEYS = (
    "tokens.embed.example_numbers",
    "tokens.embed.example_animals",
    "tokens.embed.example_order",
)
FORMULA = r"""
$$E[i] = \text{one\_hot}(i) \, E \qquad
\cos(a, b) = \frac{a \cdot b}{\lVert a \rVert \, \lVert b \rVert} \qquad
x_t = s\,E[i_t] + P[t]$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    examples: gr.HTML
    ids: gr.Textbox
    form: Form
    one_hot: gr.HTML
    matrix: gr.HTML
    product: gr.HTML
    lookup_said: gr.HTML
    token: gr.Textbox
    neighbours_said: gr.HTML
    neighbours: gr.HTML
    map_words: gr.Textbox
    map: gr.HTML
    map_said: gr.HTML
    text: gr.Textbox
    vectors_said: gr.HTML
    vectors: gr.HTML
    working: Working

    def drawer(self) -> list[Any]:
        """What is in the drawer."""
        return [self.working.facts, self.working.table, self.working.exports]


def build(ctx: AppContext, head: TabHead, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: The inner tab.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="embed-examples")
            ids = _build_box(ctx, "ids", EXAMPLES[0].ids)
            form = build_form(words, ToySetup, prefix=PREFIX, elem_id="embed")
            token = _build_box(ctx, "token", EXAMPLES[0].token)
            map_words = _build_box(ctx, "map_words", EXAMPLES[0].map_words, lines=3)
            text = _build_box(ctx, "vector_text", EXAMPLES[0].text)
        with gr.Column(elem_classes=["figure"], min_width=0):
            gr.HTML(t("tokens.embed.lookup"), elem_classes=["heading"])
            lookup_said = build_line(words, elem_id="embed-lookup-said", look="help")
            one_hot, matrix, product = (
                build_number_matrix(words, elem_id=f"embed-{name}")
                for name in ("one-hot", "matrix", "product")
            )
            gr.HTML(t("tokens.embed.neighbours"), elem_classes=["heading"])
            neighbours_said = build_line(words, elem_id="embed-neighbours-said", look="help")
            neighbours = build_bar_list(words, elem_id="embed-neighbours", clickable=True)
            gr.HTML(t("tokens.embed.map"), elem_classes=["heading"])
            map_said = build_line(words, elem_id="embed-map-said", look="help")
            map_ = build_plotly_panel(
                words, elem_id="embed-map", label_key="tokens.embed.map", height=380
            )
            gr.HTML(t("tokens.embed.vectors"), elem_classes=["heading"])
            vectors_said = build_line(words, elem_id="embed-vectors-said", look="help")
            vectors = build_number_matrix(words, elem_id="embed-vectors")
            working = build_working(
                words, elem_id="embed-working", formula=FORMULA, png="embed-map"
            )
    build_note(words, "tokens.embed.look_for", elem_id="embed-note")
    parts = Parts(
        examples, ids, form, one_hot, matrix, product, lookup_said, token, neighbours_said,
        neighbours, map_words, map_, map_said, text, vectors_said, vectors, working,
    )  # fmt: skip
    _wire(ctx, head, parts, tab)
    for key, component in (("ids", ids), ("token", token), ("map", map_words), ("vector", text)):
        ctx.address.register("tokens", key, component)


def _build_box(ctx: AppContext, name: str, value: str, lines: int = 1) -> gr.Textbox:
    return gr.Textbox(
        value,
        label=ctx.words.t(f"tokens.embed.{name}"),
        info=ctx.words.t(f"tokens.embed.{name}_info"),
        lines=lines,
        max_lines=max(1, 2 * lines - 1),
        elem_id=f"embed-{name.replace('_', '-')}",
    )


def _wire(ctx: AppContext, head: TabHead, parts: Parts, tab: gr.Tab) -> None:
    on = EmbeddingHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words, "trigger_mode": "always_last"}
    lookup = with_form(on.lookup, ToySetup)
    toy = [parts.lookup_said, parts.one_hot, parts.matrix, parts.product]
    inputs = [parts.ids, *parts.form.inputs]
    for event in (tab.select, *(control.change for control in inputs)):
        wire(event, lookup, inputs, toy, **options)
    page = [ctx.model_id, ctx.owner]
    near = [parts.neighbours_said, parts.neighbours]
    drawn = [parts.map_said, parts.map, *parts.drawer()]
    taken = [parts.vectors_said, parts.vectors]
    for box, handler, outputs in (
        (parts.token, on.neighbours, near),
        (parts.map_words, on.map, drawn),
        (parts.text, on.vectors, taken),
    ):
        for event in (tab.select, box.change):
            wire(event, handler, [box, *page], outputs, **options)
    picked = [parts.neighbours, parts.token]
    wire(parts.neighbours.bar_click, on.pick, picked, [parts.token], **options)
    boxes = [parts.ids, parts.token, parts.map_words, parts.text, *parts.form.inputs]
    wire(parts.examples.example, on.example, [], boxes, queue=False, **options)
    expose(with_form(on.look_up, ToySetup), "tokens_lookup")
    expose(on.list_neighbours, "tokens_neighbours")
