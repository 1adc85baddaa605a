"""The panel "compare": one text through up to four tokenizers, and what a language costs."""

from dataclasses import asdict, dataclass
from typing import Any

import gradio as gr
import plotly.graph_objects as go

from components.api import expose
from components.context import AppContext
from components.errors import wire
from components.kit.cards import build_note
from components.kit.chips import build_token_chips
from components.kit.examples import build_examples
from components.kit.line import build_line
from components.kit.number_matrix import build_number_matrix
from components.kit.plotly_panel import build_plotly_panel, figure_message, plain
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.choice import (
    TokenizerChoice,
    name_tokenizer,
    open_tokenizer,
    source_of_choice,
)
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from components.token_units import make_units
from explorer.tokenizer_lab.comparison import (
    MOST_COMPARED,
    LanguageCosts,
    TokenCounts,
    compare_tokenizers,
    count_languages,
    pair_labels,
)
from explorer.tokenizer_lab.snippets import make_compare_snippet
from explorer.tokens import compute_token_pieces

EXAMPLE_KEYS = (
    "tokens.compare.example_mixed",
    "tokens.compare.example_code",
    "tokens.compare.example_numbers",
)
EXAMPLE_TEXTS = (
    "The best way to learn is to teach. 学习的最好方法是教。 सबसे अच्छा तरीका है सिखाना।",
    "for i in range(10):\n        if i % 2 == 0:\n            print(f'{i} is even')",
    "3.14159265358979, 1,000,000, 2026-11-30, 0x1F600, 127 + 677 = 804",
)
FORMULA = r"""
$$\text{fertility} = \frac{\text{tokens}}{\text{words}} \qquad
\text{premium} = \frac{\text{tokens of a text}}{\text{tokens of the same text in English}}$$
"""
MOST_UNITS = 200
COLUMNS = ("vocabulary", "tokens", "characters", "bytes", "fertility", "share", "exact")


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    text: gr.Textbox
    several: gr.Dropdown
    examples: gr.HTML
    table: gr.HTML
    names: list[gr.HTML]
    chips: list[gr.HTML]
    languages: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `CompareHandlers.show` fills."""
        drawer = [self.working.facts, self.working.table, self.working.exports]
        return [self.table, *self.names, *self.chips, self.languages, *drawer]


def build(ctx: AppContext, head: TabHead, choice: TokenizerChoice, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        choice: The tokenizers of the tab.
        tab: The inner tab.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            text = gr.Textbox(
                EXAMPLE_TEXTS[0], label=t("tokens.text"), lines=5, elem_id="compare-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="compare-examples")
            choice.several.render()
        with gr.Column(elem_classes=["figure"], min_width=0):
            table = build_number_matrix(words, elem_id="compare-table")
            names, chips = [], []
            for i in range(MOST_COMPARED):
                names.append(build_line(words, elem_id=f"compare-name-{i}", look="heading"))
                chips.append(
                    build_token_chips(words, elem_id=f"compare-chips-{i}", readout="popover")
                )
            gr.HTML(t("tokens.compare.languages"), elem_classes=["heading"])
            languages = build_plotly_panel(
                words, elem_id="compare-languages", label_key="tokens.compare.languages", height=360
            )
            working = build_working(
                words, elem_id="compare-working", formula=FORMULA, png="compare-languages"
            )
    build_note(words, "tokens.compare.look_for", elem_id="compare-note")
    parts = Parts(text, choice.several, examples, table, names, chips, languages, working)
    _wire(ctx, head, parts, tab)
    ctx.address.register("tokens", "compared", text)


def _wire(ctx: AppContext, head: TabHead, parts: Parts, tab: gr.Tab) -> None:
    on = CompareHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": ctx.words}
    inputs = [parts.text, parts.several, ctx.model_id, ctx.owner]
    for event in (tab.select, parts.text.change, parts.several.change):
        wire(event, on.show, inputs, parts.outputs(), trigger_mode="always_last", **options)
    wire(parts.examples.example, on.example, [], [parts.text], queue=False, **options)
    expose(on.compare, "tokens_compare")


class CompareHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> str:
        """Type one of the examples."""
        return EXAMPLE_TEXTS[int(event._data["index"])]

    def show(
        self,
        text: str,
        several: list[str] | None,
        model_id: str | None,
        owner: str | None,
        request: gr.Request,
    ) -> tuple[Any, ...]:
        """Count the text with each tokenizer, and the languages."""
        chosen, locale = several or [], locale_of(request)
        opened = self._open(chosen, model_id, owner, request)
        context = self._context_of(model_id, owner, request)
        counts = compare_tokenizers(opened, text, context_length=context)
        costs = count_languages(opened)
        numbers = self._table(counts, locale)
        sources = {
            name: source_of_choice(self._ctx, one, model_id)
            for name, one in zip(opened, chosen, strict=True)
        }
        names = [f"{one.name}: {one.n_tokens:,}" for one in counts]
        chips = [_make_chips(tokenizer, text) for tokenizer in opened.values()]
        padding = [""] * (MOST_COMPARED - len(names)), [_NO_CHIPS] * (MOST_COMPARED - len(chips))
        drawer = fill_drawer(
            self._ctx,
            self._language_table(costs, locale),
            tensor="tokens[tokenizer, language]",
            shape=[len(opened), len(costs.languages)],
            dtype="int64",
            function=count_languages,
            snippet=make_compare_snippet(sources, text, context),
            png="compare-languages",
        )
        figure = figure_message(self._figure(costs, locale))
        return (
            numbers.as_value(), *names, *padding[0], *chips, *padding[1], figure, *drawer,
        )  # fmt: skip

    def compare(self, text: str, tokenizers: str, request: gr.Request) -> dict[str, Any]:
        """Count a text with several tokenizers, given by names with commas between them."""
        chosen = [one.strip() for one in tokenizers.split(",") if one.strip()]
        opened = self._open(chosen, None, None, request)
        costs = count_languages(opened)
        return {
            "counts": [asdict(one) for one in compare_tokenizers(opened, text)],
            "languages": list(costs.languages),
            "language_tokens": {name: list(row) for name, row in costs.counts.items()},
        }

    def _open(
        self, chosen: list[str], model_id: str | None, owner: str | None, request: gr.Request
    ) -> dict[str, Any]:
        names = pair_labels([name_tokenizer(self._ctx, one, model_id) for one in chosen])
        return {
            name: open_tokenizer(self._ctx, one, model_id, owner, request)
            for name, one in zip(names, chosen[: MOST_COMPARED + 1], strict=False)
        }

    def _context_of(
        self, model_id: str | None, owner: str | None, request: gr.Request
    ) -> int | None:
        source = self._ctx.source_of(model_id)
        summary = self._ctx.store.summary(source, self._ctx.owner_of(owner, request))
        return None if summary is None else summary.context_length

    def _table(self, counts: tuple[TokenCounts, ...], locale: str) -> Numbers:
        say = self._ctx.words.say
        return Numbers(
            corner=say(locale, "tokens.tokenizer"),
            rows=[one.name for one in counts],
            columns=[say(locale, f"tokens.compare.column_{name}") for name in COLUMNS],
            cells=[
                [
                    f"{one.vocab_size:,}",
                    f"{one.n_tokens:,}",
                    f"{one.characters_per_token:.2f}",
                    f"{one.bytes_per_token:.2f}",
                    f"{one.fertility:.2f}",
                    "–" if one.context_share is None else f"{one.context_share:.2%}",
                    say(locale, "tokens.yes" if one.is_exact else "tokens.no"),
                ]
                for one in counts
            ],
        )

    def _language_table(self, costs: LanguageCosts, locale: str) -> Numbers:
        say = self._ctx.words.say
        columns, cells = [], []
        for name in costs.counts:
            columns += [name, say(locale, "tokens.compare.premium", name=name)]
        for i in range(len(costs.languages)):
            row: list[Any] = []
            for name, tokens in costs.counts.items():
                premium = costs.premiums(name)[i]
                row += [tokens[i], None if premium is None else round(premium, 2)]
            cells.append(row)
        return Numbers(
            corner=say(locale, "tokens.compare.language"),
            rows=costs.names,
            columns=columns,
            cells=cells,
            digits=2,
        )

    def _figure(self, costs: LanguageCosts, locale: str) -> go.Figure:
        bars = [
            go.Bar(name=plain(name), x=[plain(n) for n in costs.names], y=list(tokens))
            for name, tokens in costs.counts.items()
        ]
        figure = go.Figure(bars)
        figure.update_layout(
            barmode="group",
            showlegend=True,
            yaxis_title=self._ctx.words.say(locale, "tokens.compare.axis"),
        )
        return figure


_NO_CHIPS: dict[str, Any] = {"units": [], "more": 0, "total": 0}


def _make_chips(tokenizer: Any, text: str) -> dict[str, Any]:
    pieces = compute_token_pieces(tokenizer, text, limit=MOST_UNITS)
    more = pieces.n_tokens - pieces.shown
    return {"units": make_units(pieces.units), "more": more, "total": pieces.n_tokens}
