"""The panel "step": write a token, look at it, go back, put another in its place."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.errors import wire
from components.forms import Form, with_form
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.line import build_line
from components.kit.next_bars import build_next_bars
from components.kit.number_matrix import build_number_matrix
from components.kit.pickers import build_picker
from components.kit.working import Working, build_working
from components.tabs.asking import Asking
from components.tabs.next.step_handlers import Scene, StepHandlers, Values, with_scene
from explorer.next_token import SamplingSettings

FORMULA = r"""
$$x_{t+1} \sim p(\cdot \mid x_1 \dots x_t) \qquad
\text{cache of } t \text{ tokens} = 2 \cdot L \cdot K \cdot d_{\text{head}} \cdot t
\ \text{numbers}$$
"""
# Tokens a second while it plays.
SPEEDS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    buttons: dict[str, gr.Button]
    speed: gr.Radio
    clock: gr.Timer
    word: gr.Textbox
    layer: gr.HTML
    said: gr.HTML
    chips: gr.HTML
    reads: gr.HTML
    bars: gr.HTML
    lens: gr.HTML
    working: Working
    walk: gr.State

    def outputs(self) -> list[Any]:
        """What every handler fills, in the order of `StepHandlers`."""
        drawer = self.working
        views = [self.said, self.chips, self.reads, self.bars, self.lens, self.layer]
        return [*views, drawer.facts, drawer.table, drawer.exports, self.clock, self.walk]


def parse_speed(value: str) -> float:
    """Take one of the speeds.

    Raises:
        ValueError: It is none of them.
    """
    if float(value) not in SPEEDS:
        raise ValueError(f"{value!r} is none of {SPEEDS}")
    return float(value)


def build(asking: Asking, dials: Form) -> Parts:
    """Build the panel and connect its events; returns its parts.

    Args:
        asking: The question of the tab.
        dials: The sampling settings of the tab.
    """
    words, t = asking.ctx.words, asking.ctx.words.t
    with gr.Row(elem_classes=["button-row"]):
        buttons = {
            name: gr.Button(
                t(f"next.step.{name}"),
                variant="primary" if name == "next" else "secondary",
                elem_id=f"step-{name}",
                min_width=0,
            )
            for name in ("next", "play", "pause", "rewind")
        }
    with gr.Row(elem_classes=["panel-controls"]):
        speed = gr.Radio(
            [(f"{speed:g}/s", speed) for speed in SPEEDS],
            value=1.0,
            label=t("next.step.speed"),
            elem_id="step-speed",
        )
        word = gr.Textbox(
            "", label=t("next.step.word"), info=t("next.step.word_info"), elem_id="step-word"
        )
        layer = build_picker(words, "layer", elem_id="step-layer")
    said = build_line(words, elem_id="step-said", look="help")
    chips = build_token_chips(words, elem_id="step-chips", mode="probability", readout="popover")
    gr.HTML(t("next.step.candidates"), elem_classes=["heading"])
    bars = build_next_bars(words, elem_id="step-bars", clickable=True)
    gr.HTML(t("next.step.reads"), elem_classes=["heading"])
    reads = build_token_chips(words, elem_id="step-reads", mode="weight", readout="popover")
    gr.HTML(t("next.step.lens"), elem_classes=["heading"])
    lens = build_number_matrix(words, elem_id="step-lens")
    working = build_working(words, elem_id="step-working", formula=FORMULA, png="step-bars")
    build_note(words, "next.look_for_step", elem_id="step-note")
    parts = Parts(
        buttons=buttons,
        speed=speed,
        clock=gr.Timer(1.0, active=False),
        word=word,
        layer=layer,
        said=said,
        chips=chips,
        reads=reads,
        bars=bars,
        lens=lens,
        working=working,
        walk=gr.State(None),
    )
    _wire(asking, dials, parts)
    return parts


def _wire(asking: Asking, dials: Form, parts: Parts) -> None:
    ctx, held, options = asking.ctx, asking.held["step"], asking.options
    on = StepHandlers(asking)
    inputs = [held, parts.walk, parts.layer, parts.word, ctx.owner, *dials.inputs]
    outputs = parts.outputs()

    def connect(event: Any, handler: Callable[[Scene], Values], **extra: Any) -> None:
        taken = with_form(with_scene(handler), SamplingSettings)
        wire(event, taken, inputs, outputs, **{**options, **extra})

    connect(held.change, on.begin)
    connect(parts.buttons["next"].click, on.write)
    # `once`: a tick that comes while a token is being written is left out
    connect(parts.clock.tick, on.tick, trigger_mode="once")
    connect(parts.buttons["rewind"].click, on.rewind)
    connect(parts.chips.token_click, on.look)
    connect(parts.bars.pick, on.force)
    connect(parts.word.submit, on.force_word)
    connect(parts.layer.pick, on.refresh)
    wire(parts.buttons["play"].click, on.play, [parts.speed], [parts.clock], **options)
    wire(parts.speed.change, on.change_speed, [parts.speed], [parts.clock], **options)
    wire(parts.buttons["pause"].click, on.pause, [], [parts.clock], **options)
    expose(on.next_steps, "next_steps")
