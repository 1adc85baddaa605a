"""The panel "by hand": loss, gradient and one AdamW step of a net with fifteen weights."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.cards import build_note
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.pretrain.by_hand_handlers import FORMULAS, STAGES, ByHandHandlers
from components.tabs.tab import TabHead
from explorer.training.by_hand import FIRST_NET, N_TOKENS, TinySettings
from explorer.training.by_hand_snippet import say_matrix

PREFIX = "pretrain.hand"
KATEX: list[Any] = [{"left": "$$", "right": "$$", "display": True}]


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    x: gr.Textbox
    w1: gr.Textbox
    w2: gr.Textbox
    target: gr.Radio
    form: Form
    stepper: gr.HTML
    title: gr.HTML
    formula: gr.Markdown
    numbers: gr.HTML
    said: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `ByHandHandlers.show` fills."""
        drawer = self.working
        shown = [self.title, self.formula, self.numbers, self.said]
        return [*shown, drawer.facts, drawer.table, drawer.exports]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "pretrain-controls"], min_width=0):
            x, w1, w2 = (_build_box(ctx, name, n) for name, n in (("x", 1), ("w1", 3), ("w2", 3)))
            target = gr.Radio(
                [str(i) for i in range(N_TOKENS)],
                value=str(FIRST_NET.target),
                label=t("pretrain.hand.target"),
                info=t("pretrain.hand.target_info"),
                elem_id="hand-target",
            )
            form = build_form(words, TinySettings, prefix=PREFIX, elem_id="hand")
        with gr.Column(elem_classes=["figure"], min_width=0):
            stepper = build_stepper(
                words, elem_id="hand-stepper", value={"index": 0, "count": len(STAGES)}
            )
            title = build_line(words, elem_id="hand-title", look="heading")
            formula = gr.Markdown(
                FORMULAS[STAGES[0]], latex_delimiters=KATEX, elem_id="hand-formula"
            )
            numbers = build_number_matrix(words, elem_id="hand-numbers")
            said = build_line(words, elem_id="hand-said", look="help")
            working = build_working(
                words, elem_id="hand-working", formula="\n".join(FORMULAS.values())
            )
    build_note(words, "pretrain.look_for_hand", elem_id="hand-note")
    return Parts(x, w1, w2, target, form, stepper, title, formula, numbers, said, working)


def _build_box(ctx: AppContext, name: str, lines: int) -> gr.Textbox:
    return gr.Textbox(
        say_matrix(getattr(FIRST_NET, name)),
        label=ctx.words.t(f"pretrain.hand.{name}"),
        info=ctx.words.t(f"pretrain.hand.{name}_info"),
        lines=lines,
        max_lines=lines + 1,
        elem_id=f"hand-{name}",
        elem_classes=["numbers"],
    )


def wire_panel(ctx: AppContext, head: TabHead, tab: gr.Tab, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: The inner tab: torch is not needed before somebody opens it.
        parts: What `build` gave.
    """
    on = ByHandHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    net = [parts.x, parts.w1, parts.w2, parts.target]
    inputs = [parts.stepper, *net, *parts.form.inputs]
    show = with_form(on.show, TinySettings)
    edits = [control.input for control in (*net, *parts.form.inputs)]
    for event in (tab.select, parts.stepper.step, *edits):
        wire(event, show, inputs, parts.outputs(), **options)
    expose(with_form(on.step_by_hand, TinySettings), "pretrain_by_hand")
