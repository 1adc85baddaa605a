"""The panel "train": byte pairs learnt from a text, each step shown."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.address import parse_choice, parse_integer
from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.plotly_panel import build_plotly_panel
from components.kit.stepper import build_stepper
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.choice import TokenizerChoice
from components.tabs.tokens.train_handlers import EXAMPLES, OWN_TEXT, TEXTS, TrainHandlers
from explorer.tokenizer_lab.bpe_training import MOST_VOCABULARY, BpeSetup

PREFIX = "tokens.train.form"
EXAMPLE_KEYS = (
    "tokens.train.example_low",
    "tokens.train.example_village",
    "tokens.train.example_chinese",
)
FORMULA = r"""
$$(a, b)^{*} = \arg\max_{(a,\,b)} \sum_{\text{words}\,w} \text{count}(w)\cdot
\#\{\,i : w_i w_{i+1} = a\,b\,\} \qquad V \leftarrow V \cup \{ab\}$$
$$\text{compression} = \frac{\text{bytes of the text}}{\text{tokens of the text}}$$
"""

_TRAIN_FIRST = """() => {
  const status = document.querySelector('#train-status');
  if (status && !status.innerText.trim()) document.querySelector('#train-begin').click();
}"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text_choice: gr.Dropdown
    text: gr.Textbox
    upload: gr.UploadButton
    form: Form
    examples: gr.HTML
    begin: gr.Button
    stop: gr.Button
    status: gr.HTML
    stepper: gr.HTML
    said: gr.HTML
    bars: gr.HTML
    curve: gr.HTML
    name: gr.Textbox
    keep: gr.Button
    download: gr.DownloadButton
    kept: gr.HTML
    working: Working
    result: gr.State

    def outputs(self) -> list[Any]:
        """What `TrainHandlers.train` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        shown = [self.status, self.stepper, self.said, self.bars, self.curve]
        return [*shown, *drawer, self.result, self.stop]


def build(ctx: AppContext, head: TabHead, choice: TokenizerChoice, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        choice: The tokenizers of the tab, to which what is kept is added.
        tab: The inner tab.
    """
    words = ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="train-examples")
            text_choice, text, upload = _build_text(ctx)
            form = build_form(words, BpeSetup, prefix=PREFIX, elem_id="train")
        with gr.Column(elem_classes=["figure"], min_width=0):
            with gr.Row(elem_classes=["button-row"]):
                begin = gr.Button(
                    words.t("tokens.train.begin"),
                    variant="primary",
                    elem_id="train-begin",
                    min_width=0,
                )
                stop = gr.Button(
                    words.t("tokens.train.stop"), visible=False, elem_id="train-stop", min_width=0
                )
            status = build_line(words, elem_id="train-status", look="help")
            stepper = build_stepper(words, elem_id="train-stepper")
            said = build_line(words, elem_id="train-said", look="heading")
            bars = build_bar_list(words, elem_id="train-pairs")
            gr.HTML(words.t("tokens.train.curve"), elem_classes=["heading"])
            curve = build_plotly_panel(
                words, elem_id="train-curve", label_key="tokens.train.curve", height=280
            )
            name, keep, download, kept = _build_keeping(ctx)
            working = build_working(
                words, elem_id="train-working", formula=FORMULA, png="train-curve"
            )
    build_note(words, "tokens.train.look_for", elem_id="train-note")
    result = gr.State(None)
    parts = Parts(
        text_choice, text, upload, form, examples, begin, stop, status, stepper, said, bars, curve,
        name, keep, download, kept, working, result,
    )  # fmt: skip
    _wire(ctx, head, parts, choice)
    # who comes for the first time sees the small example, not an empty picture
    tab.select(None, None, None, js=_TRAIN_FIRST)
    ctx.address.register("tokens", "sample", text_choice, parse_choice(TEXTS))
    size = form.controls["vocab_size"]
    ctx.address.register("tokens", "vocab_size", size, parse_integer(1, MOST_VOCABULARY))


def _build_text(ctx: AppContext) -> tuple[gr.Dropdown, gr.Textbox, gr.UploadButton]:
    t = ctx.words.t
    text_choice = gr.Dropdown(
        [
            (t("tokens.train.text_own"), OWN_TEXT),
            *((t(f"pretrain.text.{name}"), name) for name in TEXTS if name != OWN_TEXT),
        ],
        value=OWN_TEXT,
        label=t("tokens.train.source"),
        elem_id="train-source",
    )
    text = gr.Textbox(
        EXAMPLES[0].text,
        label=t("tokens.train.text"),
        info=t("tokens.train.text_info"),
        lines=4,
        max_lines=8,
        elem_id="train-text",
    )
    upload = gr.UploadButton(
        t("tokens.train.upload"),
        file_types=["text"],
        type="filepath",
        size="sm",
        elem_id="train-upload",
    )
    return text_choice, text, upload


def _build_keeping(ctx: AppContext) -> tuple[gr.Textbox, gr.Button, gr.DownloadButton, gr.HTML]:
    t = ctx.words.t
    name = gr.Textbox(
        "",
        label=t("tokens.train.name"),
        info=t("tokens.train.name_info"),
        max_lines=1,
        elem_id="train-name",
    )
    with gr.Row(elem_classes=["button-row"]):
        keep = gr.Button(t("tokens.train.keep"), elem_id="train-keep", min_width=0)
        download = gr.DownloadButton(
            t("tokens.train.download"), visible=False, elem_id="train-download", min_width=0
        )
    kept = build_line(ctx.words, elem_id="train-kept", look="help")
    return name, keep, download, kept


def _wire(ctx: AppContext, head: TabHead, parts: Parts, choice: TokenizerChoice) -> None:
    on = TrainHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    source = [parts.text_choice, parts.text, parts.upload]
    train = with_form(on.train, BpeSetup)
    inputs = [*source, ctx.owner, *parts.form.inputs]
    wire(parts.begin.click, train, inputs, parts.outputs(), **options)
    wire(parts.stop.click, on.stop, [], [], queue=False, **options)
    wire(
        parts.stepper.step,
        on.step,
        [parts.stepper, parts.result],
        [parts.said, parts.bars],
        trigger_mode="always_last",
        queue=False,
        **options,
    )
    filled = [parts.text_choice, parts.text, *parts.form.inputs]
    loaded = wire(parts.examples.example, on.example, [], filled, queue=False, **options)
    loaded.then(None, None, None, js="() => document.querySelector('#train-begin').click()")
    wire(parts.upload.upload, on.choose_upload, [], [parts.text_choice], queue=False, **options)
    kept = [parts.kept, parts.download, *choice.lists]
    wire(parts.keep.click, on.keep, [parts.result, parts.name, ctx.owner], kept, **options)
    expose(with_form(on.train_text, BpeSetup), "tokens_train")
