"""The panel "encoder-decoder": the 2017 Transformer learns a toy translation, then shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_text
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.beam_tree import build_beam_tree
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.head_grid import build_head_grid
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.page_style import build_page_style
from components.kit.seen import build_seen
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.blocks.encoder_decoder_handlers import TranslationHandlers
from components.tabs.blocks.encoder_decoder_views import LookedAt
from components.tabs.panel_plan import OwnPanel
from components.tabs.pretrain import live, run_choice
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.tab import TabHead
from explorer.training.translation_setup import TRANSLATION, TranslationSetup
from explorer.translation_view import TranslateSettings

PREFIX = "blocks.encoder_decoder"
LOSS = r"""
$$L = -\frac{1}{N}\sum_{t} \ln p_\theta(y_t \mid y_1 \dots y_{t-1},\; x_1 \dots x_S)
\qquad \text{exact match} = \text{share of held-out } x \text{ with all of } \hat y = y$$
"""
FORMULA = r"""
$$A_{ts} = \mathrm{softmax}_s \frac{(y_t W_q) \cdot (m_s W_k)}{\sqrt d} \qquad
m = \text{encoder}(x) \qquad
\text{score} = \frac{\sum_t \ln p(y_t \mid y_{<t}, x)}{n^{\,\alpha}}$$
"""
FIRST = ("task",)
MORE = ("n_steps", "n_training", "n_layers", "d_model", "learning_rate", "seed")
TRIED = ("numbers", "dates", "reversal")  # words of the examples


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    setup: Form
    examples: gr.HTML
    begin: gr.Button
    seen: gr.HTML
    choice: RunChoice
    live: live.Parts
    form: Form
    said: gr.HTML
    stepper: gr.HTML
    map: gr.HTML
    bars: gr.HTML
    heads: gr.HTML
    texts: gr.HTML
    tree: gr.HTML
    working: Working
    looked_at: gr.State

    @property
    def drawn(self) -> list[Any]:
        """What one place of a translation fills."""
        drawer = self.working
        return [
            *(self.said, self.stepper, self.map, self.bars, self.heads),
            *(drawer.facts, drawer.table, drawer.exports, self.looked_at),
        ]


def build(ctx: AppContext) -> Callable[[TabHead, gr.Tab], None]:
    """Build the panel; returns what connects its events."""
    build_page_style("pretrain")
    build_page_style("translation")
    choice = run_choice.build(ctx, TRANSLATION, page="blocks")
    above: dict[str, Any] = {}
    watched = live.build(
        ctx,
        TRANSLATION,
        formula=LOSS,
        look_for=f"{PREFIX}.look_for_live",
        none_key=f"{PREFIX}.runs_none",
        build_above=lambda: above.update(_build_setup(ctx)),
    )
    parts = Parts(choice=choice, live=watched, **above, **_build_translation(ctx))
    _register(ctx, parts)
    return lambda head, tab: _wire(ctx, head, tab, parts)


def _build_setup(ctx: AppContext) -> dict[str, Any]:
    """What is to be learned, and the button that lets it begin."""
    words, t = ctx.words, ctx.words.t
    keys = [f"{PREFIX}.try_{name}" for name in TRIED]
    examples = build_examples(words, keys, elem_id="translation-examples")
    first = build_form(words, TranslationSetup, prefix=PREFIX, elem_id="translation", names=FIRST)
    with (
        gr.Accordion(t(f"{PREFIX}.more"), open=False, elem_id="translation-more"),
        gr.Column(elem_classes=["form-grid"]),
    ):
        more = build_form(words, TranslationSetup, prefix=PREFIX, elem_id="translation", names=MORE)
    begin = gr.Button(
        t(f"{PREFIX}.begin"), variant="primary", elem_id="translation-begin", min_width=0
    )
    seen = build_seen(words, elem_id="translation-seen")
    controls = {**first.controls, **more.controls}
    setup = Form(TranslationSetup, {name: controls[name] for name in vars(TranslationSetup())})
    return {"examples": examples, "setup": setup, "begin": begin, "seen": seen}


def _build_translation(ctx: AppContext) -> dict[str, Any]:
    words, t = ctx.words, ctx.words.t
    gr.HTML(t(f"{PREFIX}.translate"), elem_classes=["heading", "translation-heading"])
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "form-controls"], min_width=0):
            form = build_form(words, TranslateSettings, prefix=PREFIX, elem_id="translate")
            gr.HTML(t(f"{PREFIX}.heads"), elem_classes=["heading"])
            heads = build_head_grid(words, elem_id="translate-heads", causal=False)
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="translate-said", look="text")
            stepper = build_stepper(words, elem_id="translate-stepper")
            with gr.Row(elem_classes=["translation-pair"]):
                with gr.Column(min_width=0):
                    attention = build_heatmap(words, elem_id="translate-map")
                with gr.Column(min_width=0):
                    gr.HTML(t(f"{PREFIX}.next"), elem_classes=["heading"])
                    bars = build_bar_list(words, elem_id="translate-bars")
            gr.HTML(t(f"{PREFIX}.search"), elem_classes=["heading"])
            texts = build_number_matrix(words, elem_id="translate-texts")
            tree = build_beam_tree(words, elem_id="translate-tree")
            working = build_working(
                words, elem_id="translate-working", formula=FORMULA, png="translate-map"
            )
    build_note(words, f"{PREFIX}.look_for", elem_id="translate-note")
    return {
        **{"form": form, "said": said, "stepper": stepper, "map": attention, "bars": bars},
        **{"heads": heads, "texts": texts, "tree": tree, "working": working},
        "looked_at": gr.State(LookedAt()),
    }


def _register(ctx: AppContext, parts: Parts) -> None:
    """Give the text its key in the address; the run has one of its own."""
    ctx.address.register("blocks", "translate", parts.form.controls["text"], parse_text)


def _wire(ctx: AppContext, head: TabHead, tab: gr.Tab, parts: Parts) -> None:
    """Connect the panel's events."""
    choice, watched = parts.choice, parts.live
    runs = live.wire_panel(ctx, head, watched, choice, TRANSLATION, api="blocks_translation")
    on = TranslationHandlers(ctx, runs)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    latest = {**options, "trigger_mode": "always_last"}
    wire(parts.seen.seen, on.warm_up, [], [], **options)
    wire(tab.select, on.warm_up, [], [], **options)
    wire(parts.examples.example, on.example, [], parts.setup.inputs, queue=False, **options)
    begun = [*watched.outputs(choice)]
    begin = with_form(on.begin, TranslationSetup)
    wire(parts.begin.click, begin, [ctx.owner, *parts.setup.inputs], begun, **options)
    again = with_form(on.translate, TranslateSettings)
    inputs = [choice.run, parts.looked_at, *parts.form.inputs]
    outputs = [*parts.drawn, parts.texts, parts.tree, parts.form.controls["text"]]
    changes = [c.change for c in parts.form.inputs]
    for event in (*changes, choice.run.change, watched.live.run_change):
        nothing = (*on.blank(), None, None, gr.skip())
        wire(event, again, inputs, outputs, nothing=nothing, **latest)
    known = [parts.looked_at]
    wire(parts.stepper.step, on.step, known, parts.drawn, **latest)
    wire(parts.heads.head_select, on.pick_head, known, parts.drawn, **latest)
    wire(parts.map.row_select, on.pick_row, known, parts.drawn, **latest)
    expose(with_form(on.begin_run, TranslationSetup), "blocks_translation_start")
    expose(on.translate_text, "blocks_translate")


PANEL = OwnPanel("encoder_decoder", build)
