"""The panel "extend": more tokens for a vocabulary, more rows for the model."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.bars import build_bar_list
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.choice import TokenizerChoice, list_choices, open_tokenizer
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from components.token_units import make_units
from explorer.tokenizer_lab.extension import (
    NEW_ROWS,
    GrownModel,
    NextToken,
    compare_extended,
    extend,
    grow_and_predict,
    read_new_tokens,
)
from explorer.tokenizer_lab.snippets import make_model_snippet
from explorer.tokens import TokenUnit

EXAMPLE_KEYS = (
    "tokens.extend.example_two",
    "tokens.extend.example_tool",
    "tokens.extend.example_name",
)
EXAMPLES = (
    ("MyNewToken_1\nMyNewToken_2", "Sample text with MyNewToken_1 and MyNewToken_2. <|endoftext|>"),
    ("<|tool_call|>\n<|tool_result|>", "The weather tool says: <|tool_result|> It is"),
    ("antidisestablishmentarianism", "The longest word is antidisestablishmentarianism, and"),
)
MOST_IDS = 200
FORMULA = r"""
$$E \in \mathbb{R}^{V \times D} \;\to\; \begin{pmatrix} E \\ E_{\text{new}} \end{pmatrix}
\in \mathbb{R}^{(V + n) \times D} \qquad
p_i = \frac{e^{z_i}}{\sum_{j < V} e^{z_j} + \sum_{j \ge V} e^{z_j}}$$
"""


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    new: gr.Textbox
    text: gr.Textbox
    rows: gr.Radio
    examples: gr.HTML
    said: gr.HTML
    ids: list[gr.HTML]
    chips: list[gr.HTML]
    grow: gr.Button
    grown: gr.HTML
    before: gr.HTML
    after: gr.HTML
    keep: gr.Button
    kept: gr.HTML
    working: Working

    def drawer(self) -> list[Any]:
        """What is in the drawer."""
        return [self.working.facts, self.working.table, self.working.exports]


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
            new = gr.Textbox(
                EXAMPLES[0][0],
                label=t("tokens.extend.new"),
                info=t("tokens.extend.new_info"),
                lines=3,
                elem_id="extend-new",
            )
            text = gr.Textbox(
                EXAMPLES[0][1], label=t("tokens.text"), lines=3, elem_id="extend-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="extend-examples")
            rows = gr.Radio(
                [(t(f"tokens.extend.rows_{name}"), name) for name in NEW_ROWS],
                value=NEW_ROWS[0],
                label=t("tokens.extend.rows"),
                info=t("tokens.extend.rows_info"),
                elem_id="extend-rows",
            )
        with gr.Column(elem_classes=["figure"], min_width=0):
            said = build_line(words, elem_id="extend-said", look="heading")
            ids, chips = [], []
            for name in ("before", "after"):
                chips.append(
                    build_token_chips(words, elem_id=f"extend-chips-{name}", readout="popover")
                )
                ids.append(build_line(words, elem_id=f"extend-ids-{name}", look="help"))
            with gr.Row(elem_classes=["button-row"]):
                grow = gr.Button(
                    t("tokens.extend.grow"), variant="primary", elem_id="extend-grow", min_width=0
                )
                keep = gr.Button(t("tokens.extend.keep"), elem_id="extend-keep", min_width=0)
            kept = build_line(words, elem_id="extend-kept", look="help")
            grown = build_line(words, elem_id="extend-grown", look="text")
            gr.HTML(t("tokens.extend.before"), elem_classes=["heading"])
            before = build_bar_list(words, elem_id="extend-before")
            gr.HTML(t("tokens.extend.after"), elem_classes=["heading"])
            after = build_bar_list(words, elem_id="extend-after")
            working = build_working(words, elem_id="extend-working", formula=FORMULA)
    build_note(words, "tokens.extend.look_for", elem_id="extend-note")
    parts = Parts(
        new, text, rows, examples, said, ids, chips, grow, grown, before, after, keep, kept, working
    )
    _wire(ctx, head, parts, choice, tab)
    ctx.address.register("tokens", "new", new)
    ctx.address.register("tokens", "extended", text)


def _wire(
    ctx: AppContext, head: TabHead, parts: Parts, choice: TokenizerChoice, tab: gr.Tab
) -> None:
    on = ExtendHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    asked = [parts.new, parts.text, choice.one, ctx.model_id, ctx.owner]
    shown = [parts.said, *parts.chips, *parts.ids]
    for event in (tab.select, parts.new.change, parts.text.change, choice.one.change):
        wire(event, on.show, asked, shown, trigger_mode="always_last", **options)
    filled = [parts.new, parts.text]
    wire(parts.examples.example, on.example, [], filled, queue=False, **options)
    inputs = [parts.new, parts.text, parts.rows, ctx.model_id, ctx.owner]
    grown = [parts.grown, parts.before, parts.after, *parts.drawer()]
    wire(parts.grow.click, on.grow, inputs, grown, **options)
    kept = [parts.kept, *choice.lists]
    wire(parts.keep.click, on.keep, asked, kept, **options)
    expose(on.extend_ids, "tokens_extend")
    expose(on.grow_model, "tokens_grow")


class ExtendHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> tuple[str, str]:
        """Type one of the examples."""
        return EXAMPLES[int(event._data["index"])]

    def show(
        self,
        new: str,
        text: str,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Ids of the text before and after."""
        tokenizer = open_tokenizer(self._ctx, choice, model_id, owner, request)
        found, locale = compare_extended(tokenizer, read_new_tokens(new), text), locale_of(request)
        listed = ", ".join(f"{token} = {i:,}" for token, i in found.new_ids.items())
        said = self._ctx.words.say(
            locale,
            "tokens.extend.said",
            before=len(found.before),
            after=len(found.after),
            listed=listed,
        )
        sides = (("before", found.before), ("after", found.after))
        return (
            said,
            _make_chips(found.before_units),
            _make_chips(found.after_units),
            *(self._say_ids(name, ids, locale) for name, ids in sides),
        )

    def grow(
        self,
        new: str,
        text: str,
        rows: str,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Give the model of the page more rows, and compare what it says."""
        ctx, locale = self._ctx, locale_of(request)
        source, tokens = ctx.source_of(model_id), read_new_tokens(new)
        found = self._grown(source, tokens, text, rows, owner, request)
        arguments = f"{list(tokens)!r}, {text!r}, rows={rows!r}"
        drawer = fill_drawer(
            ctx,
            self._predictions(found, locale),
            tensor="embed.weight",
            shape=[found.rows_after, found.width],
            dtype="float32",
            function=grow_and_predict,
            snippet=make_model_snippet(source, grow_and_predict, arguments, ["found"]),
        )
        return (
            self._say_grown(found, locale),
            _make_bars(found.before),
            _make_bars(found.after),
            *drawer,
        )

    def keep(
        self,
        new: str,
        text: str,
        choice: str | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Keep the extended tokenizer, for all panels and for pretraining."""
        ctx = self._ctx
        tokenizer = open_tokenizer(ctx, choice, model_id, owner, request)
        tokens = read_new_tokens(new)
        name = f"{Path(tokenizer.name).name} + {len(tokens)}"
        visitor = ctx.owner_of(owner, request)
        kept = ctx.runs.tokenizers.keep(extend(tokenizer, tokens), name, "extended", visitor)
        choices = list_choices(ctx, owner, request)
        return (
            ctx.words.say(locale_of(request), "tokens.train.kept", name=kept.name),
            gr.update(choices=choices),
            gr.update(choices=choices),
        )

    def extend_ids(
        self, new_tokens: str, text: str, tokenizer: str, request: gr.Request
    ) -> dict[str, Any]:
        """Ids of a text before and after tokens (one a line) are added to a tokenizer."""
        opened = open_tokenizer(self._ctx, tokenizer or None, None, None, request)
        found = compare_extended(opened, read_new_tokens(new_tokens), text)
        return {
            "new_ids": found.new_ids,
            "before": list(found.before),
            "after": list(found.after),
        }

    def grow_model(
        self, new_tokens: str, text: str, rows: str, request: gr.Request
    ) -> dict[str, Any]:
        """Give the page's first model rows for new tokens (one a line), and ask it."""
        source = self._ctx.source_of(None)
        return asdict(self._grown(source, read_new_tokens(new_tokens), text, rows, None, request))

    def _grown(
        self,
        source: str,
        tokens: tuple[str, ...],
        text: str,
        rows: str,
        owner: str | None,
        request: gr.Request,
    ) -> GrownModel:
        ctx = self._ctx
        with ctx.store.lease(source, ctx.owner_of(owner, request)) as loaded:
            return grow_and_predict(loaded, tokens, text, rows=rows, turn=ctx.slots.turn)

    def _say_grown(self, found: GrownModel, locale: str) -> str:
        say = self._ctx.words.say
        return say(
            locale,
            "tokens.extend.grown",
            rows_before=f"{found.rows_before:,}",
            rows_after=f"{found.rows_after:,}",
            parameters_before=f"{found.parameters_before:,}",
            parameters_after=f"{found.parameters_after:,}",
            equal=say(locale, "tokens.yes" if found.old_rows_equal else "tokens.no"),
            tied=say(locale, "tokens.yes" if found.is_tied else "tokens.no"),
            change=f"{found.largest_logit_change:.1e}",
            share=f"{found.new_probability:.1e}",
        )

    def _say_ids(self, name: str, ids: tuple[int, ...], locale: str) -> str:
        shown = " ".join(map(str, ids[:MOST_IDS])) + (" …" if len(ids) > MOST_IDS else "")
        return f"{self._ctx.words.say(locale, f'tokens.extend.row_{name}')}: {shown}"

    def _predictions(self, found: GrownModel, locale: str) -> Numbers:
        say = self._ctx.words.say
        both = list(zip(found.before, found.after, strict=True))
        sides = [say(locale, f"tokens.extend.row_{name}") for name in ("before", "after")]
        return Numbers(
            corner=say(locale, "tokens.extend.column_rank"),
            rows=[str(i + 1) for i in range(len(both))],
            columns=[text for side in sides for text in (side, f"p ({side})")],
            cells=[[a.label, a.probability, b.label, b.probability] for a, b in both],
            digits=6,
        )


def _make_chips(units: tuple[TokenUnit, ...]) -> dict[str, Any]:
    shown = units[:MOST_IDS]
    more = sum(len(unit.ids) for unit in units[MOST_IDS:])
    total = sum(len(unit.ids) for unit in units)
    return {"units": make_units(shown), "more": more, "total": total}


def _make_bars(tokens: tuple[NextToken, ...]) -> dict[str, Any]:
    bars = [
        {"label": t.label, "value": t.probability, "note": f"{t.id}{' +' if t.is_new else ''}"}
        for t in tokens
    ]
    return {"bars": bars, "unit": "%", "digits": 2}
