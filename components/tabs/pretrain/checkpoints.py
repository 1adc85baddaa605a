"""The panel "checkpoints": the same prompt at any checkpoint of a run, while it goes on."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.head_grid import build_head_grid
from components.kit.heatmap import build_heatmap
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.pickers import build_picker
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention.heads import FORMULA
from components.tabs.pretrain.checkpoint_handlers import CheckpointHandlers, Look
from components.tabs.pretrain.live import Parts as LiveParts
from components.tabs.pretrain.run_choice import RunChoice
from components.tabs.tab import TabHead


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    place: gr.HTML
    stepper: gr.HTML
    prompt: gr.Textbox
    layer: gr.HTML
    chips: gr.HTML
    written: gr.HTML
    heading: gr.HTML
    grid: gr.HTML
    map: gr.HTML
    open: gr.Button
    lens: gr.HTML
    working: Working
    look: gr.State

    def outputs(self) -> list[Any]:
        """What every handler fills, in the order of `CheckpointHandlers`."""
        working = self.working
        first = [self.place, self.stepper, self.prompt, self.written, self.open]
        views = [self.layer, self.heading, self.chips, self.grid, self.map, self.lens]
        return [*first, *views, working.facts, working.table, working.exports, self.look]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls"], min_width=0):
            place = build_line(words, elem_id="checkpoint-place", look="heading")
            stepper = build_stepper(words, elem_id="checkpoint-stepper")
            prompt = gr.Textbox(
                "",
                label=t("pretrain.prompt"),
                info=t("pretrain.prompt_info"),
                lines=2,
                max_lines=6,
                elem_id="checkpoint-prompt",
            )
            layer = build_picker(words, "layer", elem_id="checkpoint-layer")
            chips = build_token_chips(
                words, elem_id="checkpoint-chips", mode="weight", readout="popover"
            )
            opened = gr.Button(
                t("pretrain.open"), elem_id="checkpoint-open", visible=False, min_width=0
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            gr.HTML(t("pretrain.written"), elem_classes=["heading"])
            written = build_line(words, elem_id="checkpoint-written", look="text")
            with gr.Row(elem_classes=["grid-and-map"]):
                with gr.Column(elem_classes=["grid"], min_width=0):
                    heading = build_line(words, elem_id="checkpoint-heading", look="heading")
                    grid = build_head_grid(words, elem_id="checkpoint-grid")
                with gr.Column(elem_classes=["map"], min_width=0):
                    big = build_heatmap(words, elem_id="checkpoint-map")
            gr.HTML(t("pretrain.lens"), elem_classes=["heading"])
            lens = build_number_matrix(words, elem_id="checkpoint-lens")
            working = build_working(
                words, elem_id="checkpoint-working", formula=FORMULA, png="checkpoint-map"
            )
    build_note(words, "pretrain.look_for_checkpoints", elem_id="checkpoint-note")
    return Parts(
        place=place,
        stepper=stepper,
        prompt=prompt,
        layer=layer,
        chips=chips,
        written=written,
        heading=heading,
        grid=grid,
        map=big,
        open=opened,
        lens=lens,
        working=working,
        look=gr.State(Look()),
    )


def wire_panel(
    ctx: AppContext,
    head: TabHead,
    tab: gr.Tab,
    parts: Parts,
    choice: RunChoice,
    live: LiveParts,
) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: The inner tab: what nobody looks at is not computed.
        parts: What `build` gave.
        choice: The run that is looked at.
        live: The panel "live", which hears of new checkpoints.
    """
    on = CheckpointHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    outputs = parts.outputs()
    inputs = [parts.look, choice.run, parts.prompt, ctx.owner]
    wire(tab.select, on.enter, inputs, outputs, **options)
    for event in (live.live.run_change, choice.run.change):
        wire(event, on.follow, inputs, outputs, **options)
    wire(parts.stepper.step, on.step, inputs, outputs, **options)
    wire(parts.prompt.submit, on.read, inputs, outputs, **options)
    moves = (
        (parts.layer.pick, on.layer),
        (parts.grid.head_select, on.head),
        (parts.map.row_select, on.query),
        (parts.chips.token_click, on.unit),
    )
    for event, handler in moves:
        wire(event, handler, [parts.look, ctx.owner], outputs, **options)
    wire(parts.open.click, on.open, [parts.look], [ctx.wanted_model], **options)
    expose(on.sample, "pretrain_sample")
