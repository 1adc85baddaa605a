"""The panel "before": words, characters and bytes, and what each loses on the way back."""

from dataclasses import dataclass
from typing import Any

import gradio as gr

from components.api import expose
from components.context import AppContext
from components.errors import make_error_card, wire
from components.kit.cards import build_note
from components.kit.examples import build_examples
from components.kit.number_matrix import build_number_matrix
from components.kit.working import Working, build_working
from components.tabs.tab import TabHead
from components.tabs.tokens.drawer import Numbers, fill_drawer
from components.text import locale_of
from explorer.tokenizer_lab.before_bpe import RoundTrip, compare_round_trips
from explorer.tokenizer_lab.snippets import make_round_trip_snippet

EXAMPLE_KEYS = (
    "tokens.before.example_known",
    "tokens.before.example_unknown",
    "tokens.before.example_blanks",
)
LEARNT_FROM = (
    "Ada has a red ball. The ball is round, and it is new. Ben has no ball; "
    "Ben asks: Is it your ball? Ada says: Yes, it is my ball!"
)
EXAMPLE_TEXTS = (
    "Ada has a new ball.",
    "Ada has a blue kite, 玛丽 has none.",
    "Ada  has\ta ball .\n",
)
FORMULA = r"""
$$\text{decode}(\text{encode}(x)) = x \quad \text{for every text } x \text{ only with bytes}$$
"""
COLUMNS = ("vocabulary", "tokens", "pieces", "ids", "back", "exact")
MOST_SHOWN = 160  # characters of a cell


@dataclass(frozen=True, eq=False)
class Parts:
    """Components of the panel."""

    learnt: gr.Textbox
    text: gr.Textbox
    examples: gr.HTML
    table: gr.HTML
    working: Working

    def outputs(self) -> list[Any]:
        """What `BeforeHandlers.show` fills."""
        return [self.table, self.working.facts, self.working.table, self.working.exports]


def build(ctx: AppContext, head: TabHead, tab: gr.Tab) -> None:
    """Build the panel and connect its events.

    Args:
        ctx: The page's context.
        head: Head of the tab, with its card slot.
        tab: The inner tab.
    """
    t, words = ctx.words.t, ctx.words
    with gr.Row(elem_classes=["tab-body"]):
        with gr.Column(elem_classes=["controls", "tokens-controls"], min_width=0):
            learnt = gr.Textbox(
                LEARNT_FROM,
                label=t("tokens.before.learnt"),
                info=t("tokens.before.learnt_info"),
                lines=5,
                max_lines=10,
                elem_id="before-learnt",
            )
            text = gr.Textbox(
                EXAMPLE_TEXTS[1], label=t("tokens.before.text"), lines=2, elem_id="before-text"
            )
            examples = build_examples(words, EXAMPLE_KEYS, elem_id="before-examples")
        with gr.Column(elem_classes=["figure"], min_width=0):
            table = build_number_matrix(words, elem_id="before-table")
            working = build_working(words, elem_id="before-working", formula=FORMULA)
    build_note(words, "tokens.before.look_for", elem_id="before-note")
    parts = Parts(learnt, text, examples, table, working)
    on = BeforeHandlers(ctx)
    options: dict[str, Any] = {"card": head.card, "words": words}
    for event in (tab.select, learnt.change, text.change):
        wire(event, on.show, [learnt, text], parts.outputs(), trigger_mode="always_last", **options)
    wire(examples.example, on.example, [], [text], queue=False, **options)
    expose(on.round_trips, "tokens_before")
    ctx.address.register("tokens", "learnt", learnt)
    ctx.address.register("tokens", "back", text)


class BeforeHandlers:
    """Handlers of the panel's events.

    Args:
        ctx: The page's context.
    """

    def __init__(self, ctx: AppContext) -> None:
        self._ctx = ctx

    def example(self, event: gr.EventData) -> str:
        """Type one of the examples."""
        return EXAMPLE_TEXTS[int(event._data["index"])]

    def show(self, learnt: str, text: str, request: gr.Request) -> tuple[Any, ...]:
        """Send the text through each tokenizer and back."""
        locale = locale_of(request)
        trips = compare_round_trips(learnt, text)
        numbers = self._table(trips, locale)
        drawer = fill_drawer(
            self._ctx,
            self._lengths(trips, locale),
            tensor="ids",
            shape=[len(trips)],
            dtype="int64",
            function=compare_round_trips,
            snippet=make_round_trip_snippet(learnt, text),
        )
        return numbers.as_value(), *drawer

    def round_trips(self, learnt_from: str, text: str) -> list[dict[str, Any]]:
        """Send a text through words, words with unknowns, characters and bytes, and back."""
        return [
            {
                "kind": trip.kind,
                "vocab_size": trip.vocab_size,
                "ids": list(trip.ids),
                "decoded": trip.decoded,
                "exact": trip.is_exact,
                "error": None if trip.error is None else trip.error.message,
            }
            for trip in compare_round_trips(learnt_from, text)
        ]

    def _table(self, trips: tuple[RoundTrip, ...], locale: str) -> Numbers:
        say = self._ctx.words.say
        return Numbers(
            corner="",
            rows=[say(locale, f"tokens.before.kind_{trip.kind}") for trip in trips],
            columns=[say(locale, f"tokens.before.column_{name}") for name in COLUMNS],
            cells=[self._row(trip, locale) for trip in trips],
            tokens=[4],
        )

    def _row(self, trip: RoundTrip, locale: str) -> list[Any]:
        say = self._ctx.words.say
        vocabulary = f"{trip.vocab_size:,}"
        if trip.error is not None:
            said = make_error_card(self._ctx.words, locale, trip.error)["text"]
            return [vocabulary, "–", _cut(said), "–", "–", say(locale, "tokens.no")]
        return [
            vocabulary,
            f"{len(trip.ids):,}",
            _cut(" | ".join(trip.tokens)),
            _cut(" ".join(map(str, trip.ids))),
            _cut(trip.decoded),
            say(locale, "tokens.yes" if trip.is_exact else "tokens.no"),
        ]

    def _lengths(self, trips: tuple[RoundTrip, ...], locale: str) -> Numbers:
        say = self._ctx.words.say
        columns = ("vocabulary", "tokens", "unknown")
        return Numbers(
            corner="",
            rows=[say(locale, f"tokens.before.kind_{trip.kind}") for trip in trips],
            columns=[say(locale, f"tokens.before.column_{name}") for name in columns],
            cells=[[trip.vocab_size, len(trip.ids), trip.n_unknown] for trip in trips],
        )


def _cut(text: str) -> str:
    return text if len(text) <= MOST_SHOWN else text[: MOST_SHOWN - 1] + "…"
