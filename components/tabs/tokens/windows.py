"""The panel "windows": how a text becomes pairs of input and target, drawn on the text."""

from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.forms import Form, build_form, with_form
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.window_strip import build_window_strip
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.choice import TokenizerChoice, open_tokenizer, source_of_choice
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from explorer.tokenizer_lab.snippets import make_tokenizer_snippet
from explorer.tokenizer_lab.window_view import (
    WindowSetup,
    WindowView,
    compute_window_view,
)
from explorer.training.sample_texts import SAMPLE_TEXTS

PREFIX = "tokens.windows.form"
EXAMPLE_KEYS = (
    "tokens.windows.example_next",
    "tokens.windows.example_apart",
    "tokens.windows.example_shuffled",
)
EXAMPLES = (
    WindowSetup(),
    WindowSetup(context=8, stride=8, batch_size=2),
    WindowSetup(context=8, stride=4, batch_size=4, shuffle=True),
)
FORMULA = r"""
$$\text{input}_i = x_{is} \dots x_{is+c-1} \qquad \text{target}_i = x_{is+1} \dots x_{is+c}
\qquad \text{windows} = \left\lceil \frac{n - c}{s} \right\rceil$$
"""
N_SAMPLE_CHARACTERS = 600


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    form: Form
    examples: gr.HTML
    said: gr.HTML
    strip: gr.HTML
    batches: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `WindowHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [self.said, self.strip, self.batches, *drawer]


def first_text() -> str:
    """The beginning of a sample text."""
    path = SAMPLE_TEXTS["village"].path
    assert path is not None
    return path.read_text(encoding="utf-8")[:N_SAMPLE_CHARACTERS]


def build(ctx: AppContext, head: TabHead, choice: TokenizerChoice, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        choice: The tokenizer of the tab.
        tab: The inner tab.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            text = gr.Textbox(
                first_text(), label=t("tokens.text"), lines=4, max_lines=8, elem_id="windows-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="windows-examples")
            form = build_form(words, WindowSetup, prefix=PREFIX, elem_id="windows")
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="windows-said", look="text")
            strip = build_window_strip(words, elem_id="windows-strip")
            gr.HTML(t("tokens.windows.batches"), elem_classes=["heading"])
            batches = build_number_matrix(words, elem_id="windows-batches")
            working = build_working(words, elem_id="windows-working", formula=FORMULA)
    build_note(words, "tokens.windows.look_for", elem_id="windows-note")
    parts = Parts(text, form, examples, said, strip, batches, working)
    _wire(ctx, head, parts, choice, tab)
    ctx.address.register("tokens", "windowed", text)


def _wire(
    ctx: AppContext, head: TabHead, parts: Parts, choice: TokenizerChoice, tab: gr.Tab
) -> None:
    on = WindowHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    show = with_form(on.show, WindowSetup)
    inputs = [parts.text, choice.one, ctx.model_id, ctx.owner, *parts.form.inputs]
    changes = [control.change for control in (parts.text, choice.one, *parts.form.inputs)]
    for event in (tab.select, *changes):
        wire(event, show, inputs, parts.outputs(), trigger_mode="always_last", **options)
    wire(parts.examples.example, on.example, [], parts.form.inputs, queue=False, **options)
    expose(with_form(on.read_windows, WindowSetup), "tokens_windows")


class WindowHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> tuple[Any, ...]:
        """Fill the form with one of the examples."""
        return tuple(asdict(EXAMPLES[int(event._data["index"])]).values())

    def show(
        self,
        text: str,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
        settings: WindowSetup,
    ) -> tuple[Any, ...]:
        """Cut the text into windows and batches."""
        locale = locale_of(request)
        tokenizer = open_tokenizer(self._ctx, choice, model_id, owner, request)
        view = compute_window_view(tokenizer, text, settings)
        numbers = self._table(view, locale)
        drawer = fill_drawer(
            self._ctx,
            numbers,
            tensor="inputs, targets",
            shape=[view.n_batches, settings.batch_size, view.context],
            dtype="int64",
            function=compute_window_view,
            snippet=make_tokenizer_snippet(
                source_of_choice(self._ctx, choice, model_id),
                compute_window_view,
                text,
                ["found.n_windows, found.n_batches", "found.batches[0].inputs"],
                f", {settings!r}",
                uses=(WindowSetup,),
            ),
        )
        return self._say(view, locale), self._strip(view, locale), numbers.as_value(), *drawer

    def read_windows(
        self, text: str, tokenizer: str, request: gr.Request, *, settings: WindowSetup
    ) -> dict[str, Any]:
        """Inputs and targets of the first and last batches of a text."""
        opened = open_tokenizer(self._ctx, tokenizer or None, None, None, request)
        view = compute_window_view(opened, text, settings)
        return {
            "windows": view.n_windows,
            "batches": view.n_batches,
            "shown": [
                {"batch": n, "inputs": b.inputs.tolist(), "targets": b.targets.tolist()}
                for n, b in zip(view.batch_numbers, view.batches, strict=True)
            ],
        }

    def _say(self, view: WindowView, locale: str) -> str:
        return self._ctx.words.say(
            locale,
            "tokens.windows.said",
            tokens=f"{len(view.ids):,}",
            windows=f"{view.n_windows:,}",
            batches=f"{view.n_batches:,}",
            overlap=f"{view.overlap:,}",
            left_out=f"{view.n_left_out:,}",
            unused=f"{view.n_unused:,}",
        )

    def _strip(self, view: WindowView, locale: str) -> dict[str, Any]:
        """The windows that begin under the tokens shown, in the order of the text."""
        say = self._ctx.words.say
        rows = []
        for window, batch in enumerate(view.batch_of):
            start = window * view.stride
            if start < len(view.labels):
                left_out = say(locale, "tokens.windows.left_out")
                named = say(locale, "tokens.windows.in_batch", batch=(batch or 0) + 1)
                label = left_out if batch is None else named
                row = {"name": str(window), "start": start, "batch": batch, "label": label}
                rows.append(row)
        more = say(
            locale,
            "tokens.windows.more",
            windows=f"{len(rows):,}",
            all=f"{view.n_windows:,}",
            tokens=f"{len(view.labels):,}",
            all_tokens=f"{len(view.ids):,}",
        )
        return {
            "tokens": list(view.labels),
            "reads": list(view.reads),
            "context": view.context,
            "rows": rows,
            "more": more,
        }

    def _table(self, view: WindowView, locale: str) -> Numbers:
        say = self._ctx.words.say
        rows, cells = [], []
        for number, batch in zip(view.batch_numbers, view.batches, strict=True):
            for window, inputs, targets in zip(
                batch.windows, batch.inputs.tolist(), batch.targets.tolist(), strict=True
            ):
                rows.append(f"{number + 1}")
                cells.append([window, _join(inputs), _join(targets)])
        columns = ("window", "inputs", "targets")
        return Numbers(
            corner=say(locale, "tokens.windows.column_batch"),
            rows=rows,
            columns=[say(locale, f"tokens.windows.column_{name}") for name in columns],
            cells=cells,
        )


def _join(ids: list[int], most: int = 32) -> str:
    shown = " ".join(map(str, ids[:most]))
    return shown if len(ids) <= most else f"{shown} … ({len(ids)})"
