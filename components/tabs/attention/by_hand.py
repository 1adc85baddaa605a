"""The panel "by hand": attention of six words, stage by stage."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_choice, parse_switch
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.matrices import build_matrices
from components.kit.seen import build_seen
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.attention.by_hand_handlers import (
    FIRST_WORD,
    HandHandlers,
    HandState,
    parse_stage,
)
from components.tabs.attention.by_hand_stages import STAGES
from components.tabs.tab import TabHead
from explorer.attention_lab.by_hand import WORDS, HandSettings

KATEX: list[Any] = [{"left": "$$", "right": "$$", "display": True}]
EXAMPLE_KEYS = tuple(f"attention.hand.example_{name}" for name in ("overflow", "mask", "course"))


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    word: gr.Radio
    predict: gr.Checkbox
    form: Form
    reset: gr.Button
    examples: gr.HTML
    stepper: gr.HTML
    title: gr.HTML
    formula: gr.Markdown
    code: gr.Markdown
    matrices: gr.HTML
    said: gr.HTML
    working: Working
    stage: gr.Textbox
    state: gr.State
    seen: gr.HTML

    def outputs(self) -> list[Any]:
        """What `HandHandlers.show` fills."""
        shown = [self.title, self.formula, self.code, self.matrices, self.said]
        return [*shown, *self.working.outputs, self.stage, self.state]


def build(ctx: AppContext) -> Parts:
    """Build the panel, without its events.

    Args:
        ctx: The page's context.
    """
    words, t = ctx.words, ctx.words.t
    seen = build_seen(words, elem_id="lab-hand-seen")
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "lab-controls"], min_width=0):
            word, predict = _build_guess(ctx)
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="lab-hand-examples")
            with gr.Accordion(t("attention.hand.more"), open=False, elem_id="lab-hand-more"):
                form = build_form(words, HandSettings, prefix="attention.hand", elem_id="lab-hand")
            reset = gr.Button(t("attention.hand.reset"), elem_id="lab-hand-reset", min_width=0)
        with gr.Column(elem_classes=["figure"], min_width=0):
            first = {"index": 0, "count": len(STAGES)}
            stepper = build_stepper(words, elem_id="lab-hand-stepper", value=first)
            title = build_line(words, elem_id="lab-hand-title", look="heading")
            with gr.Row(elem_classes=["lab-side"]):
                formula = gr.Markdown(
                    STAGES[0].formula, latex_delimiters=KATEX, elem_id="lab-hand-formula"
                )
                code = gr.Markdown("", elem_id="lab-hand-code")
            matrices = build_matrices(words, elem_id="lab-hand-matrices")
            said = build_line(words, elem_id="lab-hand-said", look="text")
            working = build_working(
                words,
                elem_id="lab-hand-working",
                formula="\n".join(stage.formula for stage in STAGES),
            )
    build_note(words, "attention.look_for_hand", elem_id="lab-hand-note")
    stage = gr.Textbox(STAGES[0].key, visible=False)
    return Parts(
        word=word,
        predict=predict,
        form=form,
        reset=reset,
        examples=examples,
        stepper=stepper,
        title=title,
        formula=formula,
        code=code,
        matrices=matrices,
        said=said,
        working=working,
        stage=stage,
        state=gr.State(HandState()),
        seen=seen,
    )


def _build_guess(ctx: AppContext) -> tuple[gr.Radio, gr.Checkbox]:
    t = ctx.words.t
    word = gr.Radio(
        list(WORDS),
        value=WORDS[FIRST_WORD],
        label=t("attention.hand.word"),
        elem_id="lab-hand-word",
    )
    predict = gr.Checkbox(
        False,
        label=t("attention.hand.predict"),
        info=t("attention.hand.predict_info"),
        elem_id="lab-hand-predict",
    )
    return word, predict


def wire_panel(ctx: AppContext, head: TabHead, parts: Parts) -> None:
    """Connect the panel's events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        parts: What `build` gave.
    """
    on = HandHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    options["trigger_mode"] = "always_last"
    form = parts.form.inputs
    inputs = [parts.stepper, parts.state, parts.word, parts.predict, *form]
    show = with_form(on.show, HandSettings)
    moves = [parts.stepper.step, parts.word.input, parts.predict.input]
    for event in (parts.seen.seen, *moves, *(control.input for control in form)):
        wire(event, show, inputs, parts.outputs(), **options)
    for event, handler in (
        (parts.matrices.edit, on.edit),
        (parts.matrices.pick, on.pick),
        (parts.reset.click, on.reset),
    ):
        wire(event, with_form(handler, HandSettings), inputs, parts.outputs(), **options)
    chosen = wire(parts.examples.example, on.example, [], [parts.stepper, *form], **options)
    wire(chosen.then, show, inputs, parts.outputs(), card=head.card, words=ctx.words)
    expose(with_form(on.attention_by_hand, HandSettings), "attention_by_hand")
    address = ctx.address
    address.register("attention", "stage", parts.stepper, parse_stage, shared=parts.stage)
    address.register("attention", "word", parts.word, parse_choice(WORDS))
    address.register("attention", "predict", parts.predict, parse_switch)
