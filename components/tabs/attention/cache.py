"""The panel "KV cache": prefill against decode, pass by pass, and both ways measured."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.numbers import Slider
from components.kit.pickers import build_picker
from components.kit.plotly_panel import build_plotly_panel
from components.kit.seen import build_seen
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention.cache_handlers import EXAMPLES, CacheHandlers
from components.tabs.attention.drawer import NO_DRAWER
from components.tabs.tab import TabHead
from explorer.attention_lab.kv_cache import MOST_PROMPT

EXAMPLE_KEYS = tuple(f"attention.cache.example_{name}" for name in ("short", "story", "window"))
FORMULA = r"""
$$\text{decode: } q_t K_{\le t}^{\top} \in \mathbb{R}^{1 \times t} \qquad
\text{bytes} = 2 \cdot L \cdot K \cdot d \cdot t \cdot \text{bytes per number}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    examples: gr.HTML
    window: gr.Slider
    layer: gr.HTML
    head: gr.HTML
    stepper: gr.HTML
    said: gr.HTML
    map: gr.HTML
    keys: gr.HTML
    working: Working
    start: gr.Button
    stop: gr.Button
    speed: gr.HTML
    times: gr.HTML
    memory: gr.HTML
    measured_working: Working
    kept: gr.State
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `CacheHandlers.read` and `.step` fill."""
        views = [self.stepper, self.said, self.map, self.keys]
        return [self.layer, self.head, *views, *self.working.outputs, self.kept]

    def nothing(self) -> list[Any]:
        """What `outputs` show after an error; the pickers keep their places."""
        return [gr.skip(), gr.skip(), None, "", None, None, *NO_DRAWER, ""]

    def measured(self) -> list[Any]:
        """What `CacheHandlers.measure` fills."""
        return [self.speed, self.times, self.memory, *self.measured_working.outputs]


def _build_measured(ctx: AppContext) -> tuple[Any, ...]:
    words, t = ctx.words, ctx.words.t
    gr.HTML(t("attention.cache.measure_title"), elem_classes=["lab-heading"])
    with gr.Row(elem_classes=["button-row"]):
        start = gr.Button(t("attention.cache.start"), variant="primary", elem_id="lab-cache-start")
        stop = gr.Button(t("attention.lab_stop"), elem_id="lab-cache-stop")
    speed = build_line(words, elem_id="lab-cache-speed", look="heading")
    with gr.Row(elem_classes=["lab-pair"]):
        times, memory = (
            build_plotly_panel(
                words,
                elem_id=f"lab-cache-{name}",
                label_key=f"attention.cache.label_{name}",
                height=280,
            )
            for name in ("times", "memory")
        )
    working = build_working(
        words, elem_id="lab-cache-times-working", formula=FORMULA, png="lab-cache-times"
    )
    return start, stop, speed, times, memory, working


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-cache-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            text = gr.Textbox(
                EXAMPLES[0][0], label=t("attention.text"), lines=2, elem_id="lab-cache-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-cache-examples")
            window = Slider(
                0,
                MOST_PROMPT,
                value=0,
                step=1,
                label=t("attention.cache.window"),
                info=t("attention.cache.window_info"),
                elem_id="lab-cache-window",
            )
            layer = build_picker(words, "layer", elem_id="lab-cache-layer")
            head = build_picker(words, "head", elem_id="lab-cache-head")
            stepper = build_stepper(words, elem_id="lab-cache-stepper")
            said = build_line(words, elem_id="lab-cache-said", look="text")
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Row(elem_classes=["lab-pair"]):
                with gr.Column(min_width=0):
                    big = build_heatmap(words, elem_id="lab-cache-map")
                with gr.Column(min_width=0):
                    gr.HTML(t("attention.cache.keys"), elem_classes=["lab-heading"])
                    keys = build_number_matrix(words, elem_id="lab-cache-keys")
            working = build_working(
                words, elem_id="lab-cache-working", formula=FORMULA, png="lab-cache-map"
            )
    start, stop, speed, times, memory, measured_working = _build_measured(ctx)
    build_note(words, "attention.look_for_cache", elem_id="lab-cache-note")
    return Parts(
        text=text,
        examples=examples,
        window=window,
        layer=layer,
        head=head,
        stepper=stepper,
        said=said,
        map=big,
        keys=keys,
        working=working,
        start=start,
        stop=stop,
        speed=speed,
        times=times,
        memory=memory,
        measured_working=measured_working,
        kept=gr.State(""),
        seen=seen,
    )


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = CacheHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    model, outputs = [ctx.model_id, ctx.owner], parts.outputs()
    inputs = [parts.text, parts.layer, parts.head, parts.window, *model]
    read = {**options, "nothing": parts.nothing()}
    changes = [parts.text.change, parts.window.change, parts.layer.pick, parts.head.pick]
    for event in (parts.seen.seen, *changes):
        wire(event, on.read, inputs, outputs, trigger_mode="always_last", **read)
    step = [parts.kept, parts.stepper]
    wire(parts.stepper.step, on.step, step, outputs, trigger_mode="always_last", **options)
    chosen = [parts.text, parts.window]
    wire(parts.examples.example, on.example, [], chosen, queue=False, **options)
    measured = {**options, "nothing": ("", None, None, *NO_DRAWER)}
    wire(parts.start.click, on.measure, [parts.text, *model], parts.measured(), **measured)
    wire(parts.stop.click, on.stop, [], [], queue=False, **options)
    expose(on.attention_cache, "attention_cache")
    expose(on.attention_cache_speed, "attention_cache_speed")
    ctx.address.register("attention", "prompt", parts.text)
    parse = parse_integer(0, MOST_PROMPT)
    ctx.address.register("attention", "cache_window", parts.window, parse)
