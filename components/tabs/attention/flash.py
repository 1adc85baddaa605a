"""The panel "flash": softmax in one pass over tiles, and what it saves."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_choice, parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.matrices import build_matrices
from components.kit.number_matrix import build_number_matrix
from components.kit.numbers import Slider
from components.kit.plotly_panel import build_plotly_panel
from components.kit.seen import build_seen
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention.flash_handlers import FlashHandlers
from components.tabs.tab import TabHead
from explorer.attention_lab.by_hand import WORDS

EXAMPLE_KEYS = tuple(f"attention.flash.example_{name}" for name in ("one", "two", "large"))
FORMULA = r"""
$$m' = \max(m, \max_j s_j) \qquad \ell' = \ell\, e^{m - m'} + \sum_j e^{s_j - m'} \qquad
o' = o\, e^{m - m'} + \sum_j e^{s_j - m'} v_j \qquad z = \frac{o}{\ell}$$
"""
BYTES_FORMULA = r"""
$$\text{plain: } 4\,T d + 4\,T^2 \text{ numbers moved} \qquad
\text{tiles: } 2\,T d + 2 \left\lceil \tfrac{T}{B} \right\rceil T d$$
"""


@dataclass(frozen=True, eq=False)
class ByteParts:
    """Components that show bytes, counted and measured."""

    counted: gr.HTML
    counted_working: Working
    start: gr.Button
    stop: gr.Button
    said: gr.HTML
    measured: gr.HTML
    measured_working: Working


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    word: gr.Radio
    tile: gr.Slider
    gain: gr.Slider
    examples: gr.HTML
    stepper: gr.HTML
    said: gr.HTML
    matrices: gr.HTML
    state: gr.HTML
    working: Working
    bytes: ByteParts
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `FlashHandlers.show` fills."""
        views = [self.stepper, self.said, self.matrices, self.state]
        return [*views, *self.working.outputs]


def _build_gain(ctx: AppContext) -> gr.Slider:
    t = ctx.words.t
    return Slider(
        1,
        200,
        value=1,
        step=1,
        label=t("attention.flash.gain"),
        info=t("attention.flash.gain_info"),
        elem_id="lab-flash-gain",
    )


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-flash-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            word = gr.Radio(
                list(WORDS),
                value=WORDS[-1],
                label=t("attention.hand.word"),
                elem_id="lab-flash-word",
            )
            tile = Slider(
                1,
                6,
                value=2,
                step=1,
                label=t("attention.flash.tile"),
                elem_id="lab-flash-tile",
            )
            gain = _build_gain(ctx)
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-flash-examples")
        with gr.Column(elem_classes=["figure"], min_width=0):
            stepper = build_stepper(words, elem_id="lab-flash-stepper")
            said = build_line(words, elem_id="lab-flash-said", look="text")
            matrices = build_matrices(words, elem_id="lab-flash-matrices")
            gr.HTML(t("attention.flash.state"), elem_classes=["lab-heading"])
            state = build_number_matrix(words, elem_id="lab-flash-state")
            working = build_working(words, elem_id="lab-flash-working", formula=FORMULA)
    below = _build_bytes(ctx)
    build_note(words, "attention.look_for_flash", elem_id="lab-flash-note")
    return Parts(word, tile, gain, examples, stepper, said, matrices, state, working, below, seen)


def _build_bytes(ctx: AppContext) -> ByteParts:
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["lab-pair"]):
        with gr.Column(min_width=0):
            gr.HTML(t("attention.flash.counted"), elem_classes=["lab-heading"])
            counted = build_plotly_panel(
                words, elem_id="lab-flash-counted", label_key="attention.flash.counted", height=320
            )
            counted_working = build_working(
                words,
                elem_id="lab-flash-counted-working",
                formula=BYTES_FORMULA,
                png="lab-flash-counted",
            )
        with gr.Column(min_width=0):
            gr.HTML(t("attention.flash.measure_title"), elem_classes=["lab-heading"])
            with gr.Row(elem_classes=["button-row"]):
                start = gr.Button(
                    t("attention.flash.start"), variant="primary", elem_id="lab-flash-start"
                )
                stop = gr.Button(t("attention.lab_stop"), elem_id="lab-flash-stop")
            measured_said = build_line(words, elem_id="lab-flash-measured-said", look="heading")
            measured = build_plotly_panel(
                words,
                elem_id="lab-flash-measured",
                label_key="attention.flash.measure_title",
                height=260,
            )
            measured_working = build_working(
                words,
                elem_id="lab-flash-measured-working",
                formula=BYTES_FORMULA,
                png="lab-flash-measured",
            )
    return ByteParts(
        counted, counted_working, start, stop, measured_said, measured, measured_working
    )


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = FlashHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    inputs = [parts.stepper, parts.word, parts.tile, parts.gain]
    moves = [parts.seen.seen, parts.stepper.step, parts.word.input, parts.tile.change]
    for event in (*moves, parts.gain.change):
        wire(event, on.show, inputs, parts.outputs(), trigger_mode="always_last", **options)
    below = parts.bytes
    counted = [below.counted, *below.counted_working.outputs]
    wire(parts.seen.seen, on.counts, [], counted, **options)
    chosen = [parts.tile, parts.gain]
    wire(parts.examples.example, on.example, [], chosen, queue=False, **options)
    measured = [below.said, below.measured, *below.measured_working.outputs]
    wire(below.start.click, on.measure, [], measured, **options)
    wire(below.stop.click, on.stop, [], [], queue=False, **options)
    expose(on.attention_flash, "attention_flash")
    expose(on.attention_flash_memory, "attention_flash_memory")
    ctx.address.register("attention", "flash_word", parts.word, parse_choice(WORDS))
    ctx.address.register("attention", "tile", parts.tile, parse_integer(1, 6))
    ctx.address.register("attention", "gain", parts.gain, parse_integer(1, 200))
