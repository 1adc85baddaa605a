"""The Layers tab: what a model thinks on its way to the next token."""

from typing import Any

import gradio as gr

from components.address import parse_choice, parse_integer, parse_number, parse_picker, parse_switch
from components.context import AppContext
from components.errors import wire
from components.kit.examples import build_examples
from components.kit.numbers import Number
from components.kit.page_style import build_page_style
from components.tabs.asking import build_asking
from components.tabs.layers import attribution, checkpoints, gradients, lens, losses, space, steer
from components.tabs.tab import Tab, TabHead, build_tab_head
from explorer.salience import METHODS

PANELS = ("lens", "checkpoints", "attribution", "gradients", "losses", "space", "steer")
FIRST_TEXT = "The Eiffel Tower stands in the city of"
EXAMPLE_KEYS = ("layers.example_fact", "layers.example_name", "layers.example_pattern")
EXAMPLE_TEXTS = (
    FIRST_TEXT,
    "When Mary and John went to the store, John gave a drink to",
    "Monday Tuesday Wednesday Thursday Friday Saturday",
)


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "layers")
    build_page_style("inspector")
    asking = build_asking(ctx, head, "layers", PANELS)
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "inspector-controls"], min_width=0):
            text, position, target = _build_controls(ctx, head)
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Tabs(elem_id="layers-panels", overflow_behavior="wrap") as panels:
                for name in PANELS:
                    asking.tabs[name] = gr.Tab(ctx.words.t(f"layers.panel.{name}"), id=name)
            with asking.tabs["lens"]:
                lens.build(asking, position)
            with asking.tabs["checkpoints"]:
                checkpoints.build(asking)
            with asking.tabs["attribution"]:
                attribution.build(asking)
            with asking.tabs["gradients"]:
                method = gradients.build(asking)
            with asking.tabs["losses"]:
                losses.build(asking)
            with asking.tabs["space"]:
                scaled = space.build(asking)
            with asking.tabs["steer"]:
                steering = steer.build(asking)
    asking.wire({"text": text, "position": position, "target": target})
    ctx.address.register_panels("layers", panels, PANELS, card=head.card)
    ctx.address.register("layers", "text", text)
    ctx.address.register("layers", "position", position, parse_integer(-1, 8_191))
    ctx.address.register("layers", "target", target)
    ctx.address.register("layers", "method", method, parse_choice(METHODS))
    ctx.address.register("layers", "scaled", scaled, parse_switch)
    ctx.address.register("layers", "towards", steering.towards)
    ctx.address.register("layers", "away", steering.away)
    ctx.address.register("layers", "layer", steering.layer, parse_picker)
    for name, control in steering.form.controls.items():
        ends = parse_number(control.minimum, control.maximum)
        ctx.address.register("layers", name, control, ends)


def _build_controls(ctx: AppContext, head: TabHead) -> tuple[Any, ...]:
    words, t = ctx.words, ctx.words.t
    text = gr.Textbox(
        FIRST_TEXT, label=t("layers.text"), lines=4, max_lines=12, elem_id="layers-text"
    )
    examples = build_examples(words, EXAMPLE_KEYS, elem_id="layers-examples")
    position = Number(
        -1,
        precision=0,
        minimum=-1,
        label=t("layers.position"),
        info=t("layers.position_info"),
        elem_id="layers-position",
    )
    target = gr.Textbox(
        "",
        label=t("layers.target"),
        info=t("layers.target_info"),
        max_lines=1,
        elem_id="layers-target",
    )
    options: dict[str, Any] = {"card": head.card, "words": words, "queue": False}
    wire(examples.example, _on_example, [], [text, position], **options)
    return text, position, target


def _on_example(event: gr.EventData) -> tuple[str, int]:
    """Type one of the examples, and look at its end."""
    return EXAMPLE_TEXTS[int(event._data["index"])], -1


TAB = Tab("layers", "layers.title", build)
