"""The Next token tab: how one token is chosen, and then the next."""

from typing import Any

import gradio as gr

from components.address import parse_choice, parse_number, parse_picker, parse_switch
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form
from components.kit.examples import build_examples
from components.kit.next_bars import dials_script
from components.kit.page_style import build_page_style
from components.tabs.asking import build_asking
from components.tabs.next import bars, beam, draws, game, pairs, step
from components.tabs.tab import Tab, TabHead, build_tab_head
from explorer.next_token import SamplingSettings

PANELS = ("bars", "draws", "pairs", "beam", "step", "game")
FIRST_TEXT = "The capital of France is"
EXAMPLE_KEYS = ("next.example_sure", "next.example_open", "next.example_nine")
NINE_WORDS = """closer 4.51
every 0.89
effort -1.90
forward 6.75
inches 1.63
moves -1.62
pizza -1.89
toward 6.28
you 1.79"""
# For each example: text, typed logits, temperature. The published table of nine words goes with
# the beginning of a sentence, "every effort moves you".
EXAMPLES = (
    (FIRST_TEXT, "", 1.0),
    ("Once upon a time there was a", "", 1.0),
    ("every effort moves you", NINE_WORDS, 1.0),
)


def build(ctx: AppContext) -> None:
    """Build the tab.

    Args:
        ctx: The page's context.
    """
    head = build_tab_head(ctx, "next")
    build_page_style("inspector")
    asking = build_asking(ctx, head, "next", PANELS)
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "inspector-controls"], min_width=0):
            text, chat, typed, dials = _build_controls(ctx, head)
            _wire_dials(dials)  # before all else that follows them: Gradio takes them in this order
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Tabs(elem_id="next-panels", overflow_behavior="wrap") as panels:
                for name in PANELS:
                    asking.tabs[name] = gr.Tab(ctx.words.t(f"next.panel.{name}"), id=name)
            with asking.tabs["bars"]:
                bars.build(asking, dials)
            with asking.tabs["draws"]:
                n_draws = draws.build(asking, dials)
            with asking.tabs["pairs"]:
                pair = pairs.build(asking, dials)
            with asking.tabs["beam"]:
                width = beam.build(asking, dials.controls["seed"])
            with asking.tabs["step"]:
                steps = step.build(asking, dials)
            with asking.tabs["game"]:
                game_text = game.build(asking, dials.controls["seed"])
    asking.wire({"text": text, "chat": chat, "logits": typed})
    ctx.address.register_panels("next", panels, PANELS, card=head.card)
    ctx.address.register("next", "text", text)
    ctx.address.register("next", "chat", chat, parse_switch)
    ctx.address.register("next", "logits", typed)
    ctx.address.register("next", "draws", n_draws, parse_number(10, 10_000))
    ctx.address.register("next", "change", pair["change"], parse_choice(list(pairs.CHANGES)))
    ctx.address.register("next", "length", pair["length"], parse_number(1, 100))
    ctx.address.register("next", "speed", steps.speed, step.parse_speed)
    ctx.address.register("next", "layer", steps.layer, parse_picker)
    ctx.address.register("next", "game", game_text)
    for name, control in {**dials.controls, **width.controls}.items():
        ends = parse_number(control.minimum, control.maximum)
        ctx.address.register("next", name, control, ends)


def _build_controls(ctx: AppContext, head: TabHead) -> tuple[Any, Any, Any, Form]:
    words, t = ctx.words, ctx.words.t
    text = gr.Textbox(FIRST_TEXT, label=t("next.text"), lines=3, max_lines=10, elem_id="next-text")
    chat = gr.Checkbox(False, label=t("next.chat"), info=t("next.chat_info"), elem_id="next-chat")
    examples = build_examples(words, EXAMPLE_KEYS, elem_id="next-examples")
    dials = build_form(words, SamplingSettings, prefix="next.dial", elem_id="next-dial")
    with gr.Accordion(t("next.typed_title"), open=False, elem_id="next-typed-drawer"):
        typed = gr.Textbox(
            "",
            label=t("next.typed"),
            info=t("next.typed_info"),
            lines=4,
            max_lines=12,
            elem_id="next-typed",
        )
    wire(
        examples.example,
        _on_example,
        [],
        [text, typed, dials.controls["temperature"]],
        card=head.card,
        words=words,
        queue=False,
    )
    return text, chat, typed, dials


def _on_example(event: gr.EventData) -> tuple[Any, ...]:
    """Type one of the examples."""
    return EXAMPLES[int(event._data["index"])]


def _wire_dials(dials: Form) -> None:
    """Bars follow a moving slider without Python."""
    gr.on(
        [control.change for control in dials.inputs],
        None,
        dials.inputs,
        None,
        js=dials_script(list(dials.controls)),
        api_visibility="private",
    )


TAB = Tab("next", "next.title", build)
